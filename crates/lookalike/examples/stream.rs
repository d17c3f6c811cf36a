//! Checks and inserts documents one after another, within a window of one hour.
//!
//! ```text
//! cargo run -p lookalike --example stream
//! ```
#![expect(clippy::print_stdout, reason = "an example")]

use std::collections::HashMap;
use std::error::Error;
use std::time::Duration;

use lookalike::plan::{MatchPlan, MatchSettings};
use lookalike::stream::{DocumentSlot, StreamMatcher, StreamTexts, StreamWindow, Timestamp};
use lookalike::text::AnalysisScratch;
use lookalike::{Recipe, Result};

/// A post with the minute in which it arrives and the minute in which it was written.
struct Post {
    arrived: i64,
    written: i64,
    text: &'static str,
}

const POSTS: [Post; 8] = [
    Post {
        arrived: 0,
        written: 0,
        text: "The lighthouse will be open to visitors on Saturday afternoon.",
    },
    Post {
        arrived: 20,
        written: 20,
        text: "The lighthouse will be OPEN to visitors on Saturday afternoon!",
    },
    Post {
        arrived: 30,
        written: 30,
        text: "灯塔星期六下午对游客开放。",
    },
    Post {
        arrived: 50,
        written: 50,
        text: "燈塔星期六下午對遊客開放！",
    },
    // Exactly one hour after the kept post: the window includes it.
    Post {
        arrived: 60,
        written: 60,
        text: "The lighthouse will be open to visitors on Saturday afternoon.",
    },
    // A minute later the kept post is out of reach, so the same text is kept again.
    Post {
        arrived: 61,
        written: 61,
        text: "The lighthouse will be open to visitors on Saturday afternoon.",
    },
    Post {
        arrived: 100,
        written: 100,
        text: "A new ferry serves the northern islands.",
    },
    // Written more than an hour before the newest post: it is late and not stored.
    Post {
        arrived: 101,
        written: 35,
        text: "Fresh bread from eight o'clock.",
    },
];

#[derive(Debug, PartialEq)]
enum Verdict {
    Kept,
    DuplicateOf(u64),
    Late,
}

fn minute(minute: i64) -> Timestamp {
    Timestamp(minute * 60 * 1_000_000)
}

/// The texts of kept posts, which the matcher asks for where it verifies a candidate.
#[derive(Default)]
struct KeptTexts(HashMap<DocumentSlot, &'static str>);

impl StreamTexts for KeptTexts {
    fn visit_text(&self, slot: DocumentSlot, visit: &mut dyn FnMut(&str)) -> Result<()> {
        visit(self.0[&slot]);
        Ok(())
    }
}

struct Stream {
    matcher: StreamMatcher,
    texts: KeptTexts,
    next_section: u64,
}

impl Stream {
    fn new(window: StreamWindow) -> Result<Self> {
        let recipe = Recipe::built_in("default")?;
        let plan = MatchPlan::new(&recipe, MatchSettings::default())?;
        Ok(Self {
            matcher: StreamMatcher::new(&recipe, &plan, Some(window))?,
            texts: KeptTexts::default(),
            next_section: 0,
        })
    }

    /// Checks a post and inserts it. `order` is its place in the stream.
    fn insert(&mut self, post: &Post, order: u64) -> Result<Verdict> {
        let matcher = &mut self.matcher;
        // Preparing takes nearly all of the time. A service does it on many threads.
        let document = matcher
            .document_preparer()
            .prepare_text(post.text, &mut AnalysisScratch::default());
        let arrival = matcher.resolve_arrival(Some(minute(post.written)), minute(post.arrived));
        if arrival.late {
            return Ok(Verdict::Late);
        }

        // Kept posts are stored in sections of a 24th of the window. A section whose posts have all expired
        // is dropped as a whole, and its texts with it.
        if matcher.is_partition_due(&arrival) {
            matcher.begin_partition(self.next_section, arrival.clock)?;
            self.next_section += 1;
        }
        while let Some(expired) = matcher.expired_partition(&arrival) {
            matcher.drop_partition();
            self.texts.0.retain(|slot, _| slot.partition != expired);
        }

        Ok(
            match matcher.find_match(&document, &arrival, &self.texts)? {
                None => {
                    let slot = matcher.keep_document(&document, order, arrival.time)?;
                    self.texts.0.insert(slot, post.text);
                    Verdict::Kept
                }
                Some(found) => {
                    // The clock of the window follows all stored posts, and so duplicates too.
                    matcher.note_time(arrival.time);
                    Verdict::DuplicateOf(found.order)
                }
            },
        )
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let (one_hour, no_skew, refresh) = (Duration::from_secs(3600), Duration::ZERO, false);
    let mut stream = Stream::new(StreamWindow::new(one_hour, no_skew, refresh)?)?;

    let mut verdicts = Vec::new();
    for (order, post) in (0..).zip(&POSTS) {
        let verdict = stream.insert(post, order)?;
        let shown = match &verdict {
            Verdict::Kept => "kept".to_owned(),
            Verdict::DuplicateOf(kept) => format!("duplicate of {kept}"),
            Verdict::Late => "late, not stored".to_owned(),
        };
        println!(
            "{order} minute {:3}  {shown:<16} {}",
            post.written, post.text
        );
        verdicts.push(verdict);
    }

    use Verdict::{DuplicateOf, Kept, Late};
    assert_eq!(
        verdicts,
        [
            Kept,
            DuplicateOf(0),
            Kept,
            DuplicateOf(2),
            DuplicateOf(0),
            Kept,
            Kept,
            Late,
        ]
    );
    // Only the posts of minutes 61 and 100 are left; the others have expired with their texts.
    assert_eq!((stream.matcher.len(), stream.texts.0.len()), (2, 2));
    Ok(())
}

#[test]
fn example_holds() -> Result<(), Box<dyn Error>> {
    main()
}
