//! A collection for tests whose documents take several turns to verify.

use std::sync::{Arc, Mutex};

use lookalike::Threshold;
use lookalike::plan::{MatchSettings, SimilarityMeasure};
use lookalike::stream::Timestamp;
use lookalike::text::AnalysisScratch;
use lookalike_store::{
    Collection, CollectionOptions, CollectionSettings, DiskFolder, VerificationLimits,
};

use super::open_collection::OpenCollection;

/// Documents in the collection, with each of which a permuted text is compared.
const FIRST_DOCUMENTS: u64 = 8;

/// Called in every turn with its number.
type TurnHook = Box<dyn FnMut(usize) + Send>;

/// A collection that compares by edit distance and ends a turn after each step.
pub(crate) struct CostlyCollection {
    pub(crate) open: Arc<OpenCollection>,
    hook: Arc<Mutex<Option<(TurnHook, usize)>>>,
    _folder: tempfile::TempDir,
}

impl CostlyCollection {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let hook: Arc<Mutex<Option<(TurnHook, usize)>>> = Arc::default();
        let called = Arc::clone(&hook);
        let options = CollectionOptions {
            headroom: 0,
            // Each turn asks for the time once.
            clock: Arc::new(move || {
                if let Some((hook, turn)) = &mut *called.lock().unwrap() {
                    *turn += 1;
                    hook(*turn);
                }
                Timestamp(0)
            }),
            verification: VerificationLimits {
                document_steps: u64::MAX,
                turn_steps: 0,
            },
            ..CollectionOptions::default()
        };
        let settings = CollectionSettings {
            matching: MatchSettings {
                measure: SimilarityMeasure::Levenshtein,
                threshold: Threshold::new(0.8).unwrap(),
                ..MatchSettings::default()
            },
            ..CollectionSettings::default()
        };
        let disk = Arc::new(DiskFolder::open(folder.path()).unwrap());
        let collection = Collection::create_empty(disk, &settings, options).unwrap();
        let open = Arc::new(OpenCollection::new("a", collection));
        let documents = (0..FIRST_DOCUMENTS).map(|number| {
            let text = permuted_text(1000 + number);
            let sent = serde_json::json!({ "id": format!("first-{number}"), "text": text });
            open.prepare_document(sent.to_string().as_bytes(), &mut AnalysisScratch::default())
        });
        let admitted = open.admit_while(documents.collect(), &mut || Ok(()));
        assert!(open.wait_for_turns(admitted).iter().all(Result::is_ok));
        Self {
            open,
            hook,
            _folder: folder,
        }
    }

    /// Lets a function be called in every turn from now on, with its number from 1.
    pub(crate) fn on_turn(&self, hook: impl FnMut(usize) + Send + 'static) {
        *self.hook.lock().unwrap() = Some((Box::new(hook), 0));
    }
}

/// Returns a text of the same blocks as all others, in an order of its own: they share most of their features, and are
/// far from one another by edit distance.
pub(crate) fn permuted_text(seed: u64) -> String {
    let mut blocks: Vec<String> = (0..10)
        .map(|block| {
            let words = (0..30).map(|word| format!("b{block}w{} ", word * block));
            words.collect()
        })
        .collect();
    // A linear congruential generator (D. E. Knuth, MMIX).
    let mut state = seed;
    for at in (1..blocks.len()).rev() {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        blocks.swap(at, (state >> 33) as usize % (at + 1));
    }
    blocks.concat()
}
