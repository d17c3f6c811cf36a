//! Deduplicates a slice of texts and prints the verdict on each.
//!
//! ```text
//! cargo run -p lookalike --example dedup_slice
//! ```
#![expect(clippy::print_stdout, reason = "an example")]

use std::error::Error;

use lookalike::dedup::{DocumentRemoval, DocumentSource, MatchCorpus, find_verdicts};
use lookalike::plan::{MatchPlan, MatchSettings};
use lookalike::text::{AnalysisScratch, TextAnalyzer};
use lookalike::{Cpu, DocId, DocumentSketcher, Recipe, Result, Threshold};

const TEXTS: [&str; 8] = [
    "Heavy rain closed the coast road between the two harbours on Monday morning.",
    "暴雨使两个港口之间的沿海公路在星期一早上关闭。",
    // The first text in other letters and with other punctuation.
    "HEAVY RAIN closed the coast road between the two harbours on Monday morning!!",
    // The second text in traditional characters.
    "暴雨使兩個港口之間的沿海公路在星期一早上關閉。",
    // One word more than the first text.
    "Heavy rain closed the coast road between the two harbours early on Monday morning.",
    // Another day: this sentence says something else, and shares too few pairs of words.
    "Heavy rain closed the coast road between the two harbours on Tuesday morning.",
    // One character more than the second text.
    "暴雨使两个港口之间的沿海公路在星期一早上关闭了。",
    "The library is open as usual.",
];

/// Provides texts again, because candidate pairs are verified on their features.
struct SliceOfTexts<'a> {
    analyzer: &'a TextAnalyzer,
    texts: &'a [&'a str],
}

impl DocumentSource for SliceOfTexts<'_> {
    fn append_features(&self, document: DocId, into: &mut Vec<u64>) -> Result<()> {
        let text = self.texts[document.index()];
        self.analyzer
            .analyze_text(text, &mut AnalysisScratch::default())
            .append_features(into);
        Ok(())
    }
}

/// Returns the removed documents with the kept ones that they repeat, in the order of the slice.
fn deduplicate(texts: &[&str], threshold: Threshold) -> Result<Vec<DocumentRemoval>> {
    // The recipe defines which features a text has: here pairs of adjacent words, and in Chinese pairs of
    // adjacent characters, after case, punctuation and Chinese script are made equal.
    let recipe = Recipe::built_in("default")?;
    // The plan defines how candidate pairs are found and from which similarity on they match.
    let settings = MatchSettings {
        threshold,
        ..MatchSettings::default()
    };
    let plan = MatchPlan::new(&recipe, settings)?;

    // Each text is analysed once. Only its sketches stay in memory, with up to 2^20 features of short
    // texts, so that few texts are analysed again.
    let analyzer = TextAnalyzer::new(&recipe);
    let sketcher = DocumentSketcher::new(&recipe, &plan, Cpu::detect_best());
    let mut sketches = sketcher.new_sketches(1 << 20);
    let mut scratch = AnalysisScratch::default();
    for text in texts {
        sketcher.add_document(&analyzer.analyze_text(text, &mut scratch), &mut sketches);
    }

    let corpus = MatchCorpus {
        plan: &plan,
        sketches: &sketches,
        texts: &SliceOfTexts {
            analyzer: &analyzer,
            texts,
        },
        order: None,      // Of two similar texts, the one that comes first is kept.
        partitions: None, // Every text may match every other one,
        window: None,     // whatever their times are.
        known_prefix: 0,  // No text is known to be kept before the run.
        decisions: None,  // No person has decided about a pair.
    };
    Ok(find_verdicts(&corpus, &|_| {})?.removals)
}

fn main() -> Result<(), Box<dyn Error>> {
    let removals = deduplicate(&TEXTS, Threshold::new(0.75)?)?;

    for (at, text) in TEXTS.iter().enumerate() {
        match removals
            .iter()
            .find(|removal| removal.document.index() == at)
        {
            None => println!("{at} kept                        {text}"),
            Some(removal) => println!(
                "{at} duplicate of {}, {:.2}, {:<5} {text}",
                removal.kept.with.index(),
                removal.kept.similarity.get(),
                removal.kept.route.name(),
            ),
        }
    }

    let removed: Vec<_> = removals
        .iter()
        .map(|removal| (removal.document.index(), removal.kept.with.index()))
        .collect();
    assert_eq!(removed, [(2, 0), (3, 1), (4, 0), (6, 1)]);

    // Texts 0 and 4 have 12 and 13 pairs of adjacent words and share 11 of them: 11 / (12 + 13 − 11).
    assert_eq!(removals[2].kept.similarity.get(), 11.0 / 14.0);
    // Texts 0 and 5 have 12 each and share 10: 10 / 14 is below 0.75, so text 5 is kept.
    Ok(())
}

#[test]
fn example_holds() -> Result<(), Box<dyn Error>> {
    main()
}
