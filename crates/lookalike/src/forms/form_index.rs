//! The index of a table of forms: finds the form of a text and the values of its slots.
//!
//! A text is *of a form* if at least [`LEAST_FRAME_SHARE`] of the tokens of the frame stand in it in their order, and
//! they are at least [`LEAST_TEXT_SHARE`] of its tokens. Of several forms it is the one of which most tokens are in the
//! text; among equals the first one in the table.
//!
//! Cost: some nanoseconds per token. A text that shares grams with frames is also aligned with at most
//! [`MOST_ALIGNED_FORMS`] frames.

use std::collections::HashMap;
use std::ops::Range;

use super::alignment::{EqualRun, align_tokens};
use super::differences::append_marked_tokens;
use super::frame_grams::{FrameGrams, choose_grams};
use super::table::FormTable;
use crate::hash::{self, mix_bits};
use crate::recipe::Recipe;
use crate::text::{SpanTokenizer, SpannedTokens};

/// Least share of the tokens of a frame that a text of the form has.
pub(super) const LEAST_FRAME_SHARE: f64 = 0.8;

/// Least share of the tokens of a text that belong to the frame.
const LEAST_TEXT_SHARE: f64 = 0.4;

/// Largest number of frames with which a text is aligned: those with which it shares most grams.
const MOST_ALIGNED_FORMS: usize = 6;

/// Domains of hashes.
const FRAME_DOMAIN: u64 = 0x666f_726d_5f66_7261;
const VALUE_DOMAIN: u64 = 0x666f_726d_5f76_616c;

/// The frames of a table as tokens.
#[derive(Debug, Default)]
pub(crate) struct FormIndex {
    frames: Vec<IndexedFrame>,
    /// Position of each frame by its identity. Of equal frames, the first.
    positions: HashMap<FormId, usize>,
    grams: FrameGrams,
    /// Cuts texts that are compared by [`find_difference`](super::find_difference); `None` without a table.
    tokenizer: Option<SpanTokenizer>,
}

/// Identity of a form: a hash of its frame. It is the same in all tables that have the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FormId(u64);

impl FormId {
    /// Returns the form of a list of [`FormIndex::append_values`].
    pub(crate) fn from_values(values: &[u64]) -> Option<Self> {
        values.first().copied().map(Self)
    }
}

#[derive(Debug)]
pub(super) struct IndexedFrame {
    id: FormId,
    name: String,
    tokens: Vec<u64>,
    /// For each slot the number of tokens of the frame before it.
    slot_starts: Vec<usize>,
    /// Number of grams of the frame in the index.
    pub(super) gram_count: usize,
}

/// A text of a form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FormMatch {
    /// Position of the form in the table.
    pub(crate) form: usize,
    /// Tokens of the text that stand in each slot.
    pub(crate) values: Vec<std::ops::Range<usize>>,
}

impl FormIndex {
    /// Builds the index of a table for texts of a recipe. `tokenize` appends the tokens of a part of a frame.
    pub(crate) fn new(
        recipe: &Recipe,
        table: &FormTable,
        mut tokenize: impl FnMut(&str, &mut Vec<u64>),
    ) -> Self {
        let mut frames = Vec::with_capacity(table.forms().len());
        let mut grams_of_forms = Vec::with_capacity(table.forms().len());
        for form in table.forms() {
            let (mut tokens, mut slots) = (Vec::new(), Vec::new());
            let mut parts = Vec::new();
            for part in &form.frame {
                let start = tokens.len();
                tokenize(part, &mut tokens);
                parts.push(start..tokens.len());
                slots.push(tokens.len());
            }
            // After the last part there is no slot.
            slots.pop();
            grams_of_forms.push(choose_grams(&tokens, &parts));
            frames.push(IndexedFrame {
                id: frame_id(&tokens, &slots),
                name: form.name.clone(),
                tokens,
                slot_starts: slots,
                gram_count: 0,
            });
        }
        let grams = FrameGrams::new(grams_of_forms, &mut frames);
        let of_frames = frames.iter().enumerate().rev();
        Self {
            positions: of_frames.map(|(at, frame)| (frame.id, at)).collect(),
            frames,
            grams,
            tokenizer: Some(SpanTokenizer::new(recipe)),
        }
    }

    /// Returns the form of a text and the places of its values.
    pub(crate) fn find_form(&self, tokens: &[u64]) -> Option<FormMatch> {
        let mut best: Option<(usize, FormMatch)> = None;
        for form in self.candidate_forms(tokens) {
            let longest = self.frames[form].tokens.len();
            if best.as_ref().is_some_and(|(most, _)| longest < *most) {
                continue;
            }
            // More tokens win; of equally many, the earlier form.
            if let Some((matched, found)) = self.match_frame(form, tokens)
                && best
                    .as_ref()
                    .is_none_or(|(most, best)| (matched, best.form) > (*most, form))
            {
                best = Some((matched, found));
            }
        }
        best.map(|(_, found)| found)
    }

    /// Appends the identity of the form of a text and a hash of the value of each slot, or nothing if the text is of no
    /// form.
    pub(crate) fn append_values(&self, tokens: &[u64], into: &mut Vec<u64>) {
        let Some(found) = self.find_form(tokens) else {
            return;
        };
        into.push(self.frames[found.form].id.0);
        let values = found.values.into_iter();
        into.extend(values.map(|value| hash::hash_sequence(VALUE_DOMAIN, &tokens[value]) as u64));
    }

    /// Returns the number of forms in the table.
    pub(crate) fn form_count(&self) -> usize {
        self.frames.len()
    }

    /// Returns the name of a form of the table.
    pub(crate) fn name_of_form(&self, form: FormId) -> Option<&str> {
        let position = *self.positions.get(&form)?;
        Some(&self.frames[position].name)
    }

    /// Returns `true` if texts are compared by what they say, too.
    pub(crate) fn compares_contents(&self) -> bool {
        self.tokenizer.is_some()
    }

    /// Appends the tokens of a text by which [`find_difference`](super::find_difference) compares it; nothing without a
    /// table.
    pub(crate) fn append_marked_tokens(&self, text: &str, into: &mut Vec<u64>) {
        if let Some(tokenizer) = &self.tokenizer {
            append_marked_tokens(text, tokenizer, into);
        }
    }

    /// Returns the spelling of some tokens of a text, as [`append_marked_tokens`](Self::append_marked_tokens) counts them.
    pub(crate) fn spell_tokens<'t>(&self, text: &'t str, tokens: Range<usize>) -> &'t str {
        let mut spanned = SpannedTokens::default();
        match &self.tokenizer {
            Some(tokenizer) if tokenizer.tokenize_text(text, &mut spanned).is_ok() => {
                &text[spanned.byte_range(tokens)]
            }
            _ => "",
        }
    }

    /// Returns the spelling of tokens of a text at some places. `tokens` are those of its analysis. Returns `None` if these
    /// are no words and characters, so that they have no places in the text.
    pub(crate) fn spell_places(
        &self,
        text: &str,
        tokens: &[u64],
        places: &[Range<usize>],
    ) -> Option<Vec<String>> {
        let mut spanned = SpannedTokens::default();
        let tokenizer = self.tokenizer.as_ref()?;
        tokenizer.tokenize_text(text, &mut spanned).ok()?;
        let end = places.iter().map(|place| place.end).max()?;
        if spanned.values().get(..end)? != tokens.get(..end)? {
            return None;
        }
        let spell = |place: &Range<usize>| text[spanned.byte_range(place.clone())].to_owned();
        Some(places.iter().map(spell).collect())
    }

    /// Returns the forms with which a text shares most grams, and enough of them for a text of the form.
    fn candidate_forms(&self, tokens: &[u64]) -> Vec<usize> {
        let mut shared: Vec<u32> = Vec::new();
        for gram in self.grams.find_grams(tokens) {
            shared.extend_from_slice(self.grams.forms_of(gram));
        }
        shared.sort_unstable();
        let counts = shared
            .chunk_by(|a, b| a == b)
            .map(|same| (same[0], same.len()));
        let is_enough =
            |&(form, count): &(u32, usize)| 4 * count >= self.frames[form as usize].gram_count;
        let mut counts: Vec<(u32, usize)> = counts.filter(is_enough).collect();
        counts.sort_unstable_by_key(|&(form, count)| (std::cmp::Reverse(count), form));
        counts.truncate(MOST_ALIGNED_FORMS);
        counts.into_iter().map(|(form, _)| form as usize).collect()
    }

    /// Returns the forms that a text matches, by their positions in the table, ascending.
    pub(super) fn find_forms(&self, tokens: &[u64]) -> Vec<usize> {
        let mut matching = self.candidate_forms(tokens);
        matching.retain(|&form| self.match_frame(form, tokens).is_some());
        matching.sort_unstable();
        matching
    }

    fn match_frame(&self, form: usize, tokens: &[u64]) -> Option<(usize, FormMatch)> {
        let frame = &self.frames[form];
        let is_enough = |matched: usize| {
            matched as f64 >= LEAST_FRAME_SHARE * frame.tokens.len() as f64
                && matched as f64 >= LEAST_TEXT_SHARE * tokens.len() as f64
        };
        if !is_enough(frame.tokens.len().min(tokens.len())) {
            return None;
        }
        let runs = align_tokens(&frame.tokens, tokens);
        let matched: usize = runs.iter().map(|run| run.length).sum();
        if !is_enough(matched) {
            return None;
        }
        let slots = frame.slot_starts.iter();
        let values = slots.map(|&slot| locate_value(&runs, slot, tokens.len()));
        let values = values.collect();
        Some((matched, FormMatch { form, values }))
    }
}

/// Returns the tokens of a text that stand in a slot. `runs` align the frame with the text, and `slot` is the number of
/// tokens of the frame before the slot.
///
/// Words of the frame beside the slot may be replaced by others. So as many tokens as the frame misses there are no part of
/// the value, if there are more.
fn locate_value(runs: &[EqualRun], slot: usize, text_tokens: usize) -> Range<usize> {
    let before = runs.iter().rfind(|run| run.a < slot);
    let (start, missing_before) = before.map_or((0, 0), |run| {
        let aligned = run.length.min(slot - run.a);
        (run.b + aligned, slot - run.a - aligned)
    });
    let after = runs.iter().find(|run| run.a + run.length > slot);
    let (end, missing_after) = after.map_or((text_tokens, 0), |run| {
        (
            run.b + slot.saturating_sub(run.a),
            run.a.saturating_sub(slot),
        )
    });
    let end = end.max(start);
    if end - start > missing_before + missing_after {
        start + missing_before..end - missing_after
    } else {
        start..end
    }
}

/// Returns `true` if two documents may match by their forms: neither has a form, or both have the same form and its slots
/// agree. Each list is that of [`FormIndex::append_values`].
pub(crate) fn do_forms_agree(a: &[u64], b: &[u64]) -> bool {
    let (Some((a_form, a_values)), Some((b_form, b_values))) = (a.split_first(), b.split_first())
    else {
        return a.is_empty() && b.is_empty();
    };
    if a_form != b_form || a_values.len() != b_values.len() {
        return false;
    }
    let pairs = a_values.iter().zip(b_values);
    let differing = pairs.filter(|(a, b)| a != b).count();
    differing <= most_differing_slots(a_values.len())
}

/// Largest number of slots that may differ, however many there are, because each makes further bucket keys.
const MOST_DIFFERING_SLOTS: usize = 7;

/// Returns the number of slots that may differ in two documents of one form: one in five, up to
/// [`MOST_DIFFERING_SLOTS`], and none of fewer than five.
fn most_differing_slots(slots: usize) -> usize {
    (slots / 5).min(MOST_DIFFERING_SLOTS)
}

/// Calls `visit` with the keys of a document's form, of which two documents that may match by their forms have at least
/// one in common. `values` are those of [`FormIndex::append_values`].
///
/// The slots are divided into one group more than slots may differ, so all slots of at least one group are equal (the
/// pigeonhole principle).
pub(crate) fn visit_form_keys(values: &[u64], mut visit: impl FnMut(u64)) {
    let Some((&form, values)) = values.split_first() else {
        return visit(0);
    };
    let groups = most_differing_slots(values.len()) + 1;
    for group in 0..groups {
        let slots = values.iter().skip(group).step_by(groups);
        let key = slots.fold(form ^ group as u64, |key, &value| mix_bits(key ^ value));
        visit(key);
    }
}

fn frame_id(tokens: &[u64], slots: &[usize]) -> FormId {
    let slots = slots.iter().map(|&slot| slot as u64);
    let values: Vec<u64> = slots.chain(tokens.iter().copied()).collect();
    FormId(hash::hash_sequence(FRAME_DOMAIN, &values) as u64)
}
