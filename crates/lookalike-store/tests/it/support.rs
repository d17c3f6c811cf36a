//! Documents, clocks and random numbers that are the same in every run.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use lookalike::Threshold;
use lookalike::plan::{self, MatchMethod};
use lookalike::stream::{DocumentSlot, StreamWindow, Timestamp};
use lookalike::text::AnalysisScratch;
use lookalike_store::{
    ClusterPage, ClusterSelection, Collection, CollectionOptions, CollectionSettings,
    DocumentContent, NewDocument, PendingInsert,
};

pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

pub(crate) const S: i64 = 1_000_000;

/// A clock that is set by hand.
#[derive(Clone, Default)]
pub(crate) struct Hand(Arc<AtomicI64>);

impl Hand {
    pub(crate) fn set(&self, time: i64) {
        self.0.store(time, Ordering::SeqCst);
    }

    pub(crate) fn get(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }

    pub(crate) fn options(&self) -> CollectionOptions {
        let hand = self.clone();
        CollectionOptions {
            clock: Arc::new(move || Timestamp(hand.get())),
            headroom: 0,
            ..CollectionOptions::default()
        }
    }
}

/// Returns settings by which documents are joined exactly, so that a scan can check the matches.
pub(crate) fn settings(window: Option<(u64, bool)>) -> CollectionSettings {
    let seconds = Duration::from_secs;
    CollectionSettings {
        matching: plan::MatchSettings {
            method: MatchMethod::Join,
            threshold: Threshold::new(0.6).unwrap(),
            ..plan::MatchSettings::default()
        },
        window: window.map(|(width, refresh)| {
            StreamWindow::new(seconds(width), seconds(5), refresh).unwrap()
        }),
        ..CollectionSettings::default()
    }
}

/// Returns a text, often an edit of the text for a nearby seed.
pub(crate) fn text(seed: usize) -> String {
    let mut random = Random(seed as u64 / 4);
    let length = 3 + random.below(9);
    let mut words: Vec<String> = (0..length)
        .map(|_| format!("w{}", random.below(300)))
        .collect();
    for edit in 0..seed % 4 {
        let at = Random((seed + edit) as u64).below(words.len());
        words[at] = format!("e{edit}");
    }
    match seed % 23 {
        0 => String::new(),
        1 => "!!".to_owned(),
        2 => "a".to_owned(),
        3 => words.join(" ").repeat(40),
        _ => words.join(" "),
    }
}

pub(crate) fn document(id: &str, text: &str, time: Option<i64>) -> NewDocument {
    NewDocument {
        id: id.to_owned(),
        content: DocumentContent::Text(text.to_owned()),
        time: time.map(Timestamp),
        meta: None,
    }
}

pub(crate) fn prepare(collection: &Collection, documents: Vec<NewDocument>) -> Vec<PendingInsert> {
    let mut scratch = AnalysisScratch::default();
    documents
        .into_iter()
        .map(|document| collection.prepare_document(document, &mut scratch).unwrap())
        .collect()
}

/// Returns a page of all clusters.
pub(crate) fn page_of_clusters(
    collection: &Collection,
    after: Option<DocumentSlot>,
    count: usize,
    most_members: usize,
) -> ClusterPage {
    let selection = ClusterSelection {
        count,
        most_members,
        accepts: &|_| true,
    };
    collection.list_clusters(after, &selection).unwrap()
}
