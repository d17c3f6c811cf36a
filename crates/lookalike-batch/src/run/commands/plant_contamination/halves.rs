//! The items of benchmarks in two halves: one is searched for, the other is held out.

use std::collections::HashSet;

use lookalike::contamination::ItemTokenizer;
use lookalike::quality::plant::EditPlanter;
use lookalike_io::error::{Error, Result};

use crate::run::reading::benchmarks::{BenchmarkItem, BenchmarkSet};

/// An item of a half.
#[derive(Debug, Clone, Copy)]
pub(super) struct HalfItem {
    /// Index in [`BenchmarkSet::items`].
    pub(super) index: usize,
    /// Words and single characters of its question.
    pub(super) words: u64,
}

/// The items of benchmarks, divided by their questions.
///
/// The half of an item follows from the seed and the tokens of its question. So equal questions are in one half whatever
/// their case, punctuation or script, and no held-out item has the question of an indexed one. Only the first item of a
/// question is used, because a text with the question is a text with all items that have it.
pub(super) struct ItemHalves {
    /// In the order of the benchmarks.
    pub(super) indexed: Vec<HalfItem>,
    pub(super) held_out: Vec<HalfItem>,
    /// Items with the question of an earlier one, or with a question that has no word.
    pub(super) unused: u64,
}

impl ItemHalves {
    /// Divides all items.
    ///
    /// # Errors
    /// If a half is empty, or a question has 4 GiB.
    pub(super) fn new(set: &BenchmarkSet, planter: &EditPlanter) -> Result<Self> {
        let mut halves = Self {
            indexed: Vec::new(),
            held_out: Vec::new(),
            unused: 0,
        };
        let mut tokenizer = ItemTokenizer::new();
        let mut questions = HashSet::new();
        for (index, item) in set.items.iter().enumerate() {
            let tokens = tokenizer.tokenize_text(&item.question)?.values();
            let bytes: Vec<u8> = tokens
                .iter()
                .flat_map(|token| token.to_le_bytes())
                .collect();
            let words = tokens.len() as u64;
            let question = lookalike::value_hash(&bytes);
            if words == 0 || !questions.insert(question) {
                halves.unused += 1;
                continue;
            }
            let rank = planter.document_rank(&format!("question {question:016x}"));
            let half = if rank.is_multiple_of(2) {
                &mut halves.indexed
            } else {
                &mut halves.held_out
            };
            half.push(HalfItem { index, words });
        }
        if halves.indexed.is_empty() || halves.held_out.is_empty() {
            return Err(Error::input_error(format!(
                "the benchmarks have {} different questions, too few for one half that is searched for and another that \
                 is held out: give more items, or another seed",
                questions.len()
            )));
        }
        Ok(halves)
    }
}

/// Returns the items of a half with the smallest ranks, at most `limit`, in the order of their ranks.
pub(super) fn draw_items(
    half: &[HalfItem],
    set: &BenchmarkSet,
    planter: &EditPlanter,
    limit: usize,
) -> Vec<HalfItem> {
    let mut ranked: Vec<(u64, HalfItem)> = half
        .iter()
        .map(|&item| {
            let name = item_name(set, &set.items[item.index]);
            (planter.document_rank(&format!("item {name}")), item)
        })
        .collect();
    ranked.sort_unstable_by_key(|&(rank, item)| (rank, item.index));
    ranked.truncate(limit);
    ranked.into_iter().map(|(_, item)| item).collect()
}

/// Returns a name that only this item has.
pub(super) fn item_name(set: &BenchmarkSet, item: &BenchmarkItem) -> String {
    let benchmark = &set.benchmarks[item.benchmark as usize].name;
    format!("{benchmark}\n{}", item.id)
}
