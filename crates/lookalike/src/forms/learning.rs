//! Learns forms from groups of similar texts.
//!
//! A sample of a group is aligned with one of its texts, the base. A place of the base is a *candidate slot* if at least
//! half of the texts replace it between equal runs on both sides. Copies of one article differ too, but at their edges,
//! or at scattered places where most copies agree. So a candidate is a slot if no value has the majority and there are
//! at least [`LEAST_VALUES`] values, and a group has a form if it has at least half as many different combinations of
//! values as texts.
//!
//! Cost: one alignment for each text of the sample, so a group costs no more than [`MOST_SAMPLED_TEXTS`] texts of it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use super::alignment::{EqualRun, align_tokens};
use super::form_index::{FormIndex, LEAST_FRAME_SHARE};
use super::table::{Form, FormTable};
use crate::candidates::UnionFind;
use crate::error::Result;
use crate::hash;
use crate::recipe::Recipe;
use crate::text::{SpanTokenizer, SpannedTokens};

/// Least number of different texts of a group that can have a form.
pub const LEAST_TEXTS: usize = 6;

/// Largest number of texts of a group that are aligned.
pub const MOST_SAMPLED_TEXTS: usize = 48;

/// Least number of different values of a slot.
const LEAST_VALUES: usize = 3;

/// Conditions under which a group has a form.
#[derive(Clone, Copy, Debug)]
struct LearningLimits {
    /// Least number of different texts.
    least_texts: usize,
    /// Least number of different values of a slot.
    least_values: usize,
    /// `true` to reject a slot in which one value has the majority, and a group with fewer than half as many combinations
    /// of values as texts.
    rejects_repeated_values: bool,
}

/// Limits that copies of an article do not reach.
const LEARNED_FORM_LIMITS: LearningLimits = LearningLimits {
    least_texts: LEAST_TEXTS,
    least_values: LEAST_VALUES,
    rejects_repeated_values: true,
};

/// Limits that copies of an article reach, too, so that a person decides.
const POSSIBLE_FORM_LIMITS: LearningLimits = LearningLimits {
    least_texts: 3,
    least_values: 2,
    rejects_repeated_values: false,
};

/// Least length of the first and the last equal run, between which the slots are, in texts of at least [`LONG_TEXT`]
/// tokens. It is 1 in shorter texts.
const LEAST_CONTEXT: usize = 2;

/// Least number of tokens of a long text.
const LONG_TEXT: usize = 48;

/// Slots with fewer tokens of the frame between them are one.
const LEAST_GAP: usize = 2;

/// Least number of tokens of the frame before and behind a slot of a long text.
const LEAST_EDGE_FRAME: usize = 4;

/// Least number of adjacent tokens of the frame that count towards [`LEAST_EDGE_FRAME`]. Shorter runs do not count, because
/// unrelated headers share single words.
const LEAST_EDGE_RUN: usize = 3;

/// Largest number of tokens of a value at an edge.
const MOST_EDGE_TOKENS: usize = 8;

/// Largest share of the base's tokens in slots.
const MOST_SLOT_SHARE: f64 = 0.5;

/// Largest number of examples of the values of a slot.
const MOST_EXAMPLES: usize = 5;

/// Smallest hashes of features by which groups without a form are compared with each other.
pub const COMPARED_HASHES: usize = 16;

/// Least number of smallest hashes that joined documents share. It stands for a Jaccard index of about one third.
const LEAST_SHARED_HASHES: usize = 5;

const NAME_DOMAIN: u64 = 0x666f_726d_5f6e_616d;

/// Learns forms from groups of similar texts, by the normalisation of a recipe.
#[derive(Clone, Debug)]
pub struct FormLearner {
    tokenizer: SpanTokenizer,
    recipe: Recipe,
    limits: LearningLimits,
}

/// A text of a group with its tokens.
struct GroupText<'t> {
    text: &'t str,
    tokens: SpannedTokens,
}

impl GroupText<'_> {
    fn spelling(&self, tokens: Range<usize>) -> &str {
        &self.text[self.tokens.byte_range(tokens)]
    }
}

impl FormLearner {
    /// Creates a learner.
    pub fn new(recipe: &Recipe) -> Self {
        Self {
            tokenizer: SpanTokenizer::new(recipe),
            recipe: recipe.clone(),
            limits: LEARNED_FORM_LIMITS,
        }
    }

    /// Creates a learner of possible forms, which a person is asked about: three texts and two values of a slot are
    /// enough, whatever their majority. Copies of an article can have such a form.
    pub fn for_possible_forms(recipe: &Recipe) -> Self {
        Self {
            limits: POSSIBLE_FORM_LIMITS,
            ..Self::new(recipe)
        }
    }

    /// Returns the least number of documents of a group that can have a form.
    pub(super) fn least_texts(&self) -> usize {
        self.limits.least_texts
    }

    /// Returns the form of a group of similar texts, if it has one. Of more than [`MOST_SAMPLED_TEXTS`] `texts`
    /// the first ones are used. Equal texts count as one. `documents` is the number of documents of the whole group.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`](crate::ErrorKind::Limit) if a text has 4 GiB or more.
    pub fn learn_form(&self, texts: &[&str], documents: u64) -> Result<Option<Form>> {
        let mut sampled: Vec<GroupText<'_>> = Vec::new();
        let mut known = HashSet::new();
        for text in texts.iter().take(MOST_SAMPLED_TEXTS) {
            let text = self.tokenize_text(text)?;
            if known.insert(hash::hash_sequence(NAME_DOMAIN, text.tokens.values())) {
                sampled.push(text);
            }
        }
        if sampled.len() < self.limits.least_texts {
            return Ok(None);
        }
        let group = AlignedGroup::align_texts(&sampled, self.limits);
        let slots = group.find_slots();
        if slots.is_empty() {
            return Ok(None);
        }
        Ok(group.make_form(&slots, documents))
    }

    fn tokenize_text<'t>(&self, text: &'t str) -> Result<GroupText<'t>> {
        let mut tokens = SpannedTokens::default();
        self.tokenizer.tokenize_text(text, &mut tokens)?;
        Ok(GroupText { text, tokens })
    }

    /// Builds a table, the form of most documents first. A form whose frame matches an earlier form is dropped.
    pub fn make_table(&self, mut forms: Vec<Form>) -> FormTable {
        forms.sort_by(|a, b| (b.documents, &a.name).cmp(&(a.documents, &b.name)));
        self.drop_repeated_frames(forms)
    }

    /// Returns a table as a person has decided: the `added` forms come first, and `rejected` ones and those whose frame matches
    /// an added one are left out.
    pub fn correct_table(
        &self,
        table: FormTable,
        added: &[Form],
        rejected: Vec<Form>,
    ) -> FormTable {
        if added.is_empty() && rejected.is_empty() {
            return table;
        }
        let rejected = RejectedForms::new(self, rejected);
        let learned = table.forms().iter();
        let learned = learned.filter(|form| !rejected.has_form(self, form));
        self.drop_repeated_frames(added.iter().chain(learned).cloned().collect())
    }

    /// Returns the table of some forms without those whose frame matches an earlier one. A form with the name of an earlier
    /// one gets a further name.
    fn drop_repeated_frames(&self, forms: Vec<Form>) -> FormTable {
        let all = FormTable::default().extend_with(&FormTable::from_forms(forms));
        let index = self.index_forms(&all);
        let is_first = |&(at, form): &(usize, &Form)| {
            let matching = index.find_forms(&self.tokenize_frame(form));
            matching.first().is_none_or(|&first| first >= at)
        };
        let kept = all.forms().iter().enumerate().filter(is_first);
        FormTable::from_forms(kept.map(|(_, form)| form.clone()).collect())
    }

    fn index_forms(&self, table: &FormTable) -> FormIndex {
        FormIndex::new(&self.recipe, table, |part, into| {
            self.append_tokens(part, into)
        })
    }

    fn tokenize_frame(&self, form: &Form) -> Vec<u64> {
        let mut tokens = Vec::new();
        for part in &form.frame {
            self.append_tokens(part, &mut tokens);
        }
        tokens
    }

    fn append_tokens(&self, text: &str, into: &mut Vec<u64>) {
        let mut tokens = SpannedTokens::default();
        // A part of a frame is a part of a text that was tokenized.
        if self.tokenizer.tokenize_text(text, &mut tokens).is_ok() {
            into.extend_from_slice(tokens.values());
        }
    }
}

/// Forms that a person has decided to be those of copies.
pub struct RejectedForms {
    index: FormIndex,
    /// Number of tokens of each frame.
    frame_tokens: Vec<usize>,
}

impl RejectedForms {
    /// Indexes forms by the normalisation of a learner.
    pub fn new(learner: &FormLearner, forms: Vec<Form>) -> Self {
        let frame_tokens = forms
            .iter()
            .map(|form| learner.tokenize_frame(form).len())
            .collect();
        Self {
            frame_tokens,
            index: learner.index_forms(&FormTable::from_forms(forms)),
        }
    }

    /// Returns `true` if a form is one of these: its frame has four fifths of the tokens of a rejected frame, and is at most
    /// a quarter longer.
    pub fn has_form(&self, learner: &FormLearner, form: &Form) -> bool {
        let tokens = learner.tokenize_frame(form);
        let matching = self.index.find_forms(&tokens);
        matching
            .into_iter()
            .any(|at| 4 * tokens.len() <= 5 * self.frame_tokens[at])
    }
}

/// Returns sets of documents that chains of similar documents connect, by their positions in `smallest`; documents that are
/// similar to no other are left out. `smallest` holds the [`COMPARED_HASHES`] smallest hashes of each document.
///
/// Cost: a sort of all hashes. Of the documents that share a hash, each is compared with the next one alone.
pub(super) fn join_similar(smallest: &[Vec<u64>]) -> Vec<Vec<usize>> {
    let numbered = smallest.iter().zip(0_u32..);
    let hashes =
        numbered.flat_map(|(hashes, document)| hashes.iter().map(move |&hash| (hash, document)));
    let mut hashes: Vec<(u64, u32)> = hashes.collect();
    hashes.sort_unstable();
    let neighbours = hashes.windows(2).filter(|pair| pair[0].0 == pair[1].0);
    let mut neighbours: Vec<(u32, u32)> = neighbours.map(|pair| (pair[0].1, pair[1].1)).collect();
    neighbours.sort_unstable();
    let mut sets = UnionFind::with_members(smallest.len());
    for shared in neighbours.chunk_by(|a, b| a == b) {
        if shared.len() >= LEAST_SHARED_HASHES {
            sets.union_sets(shared[0].0, shared[0].1);
        }
    }
    let mut joined: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for document in 0..smallest.len() {
        joined
            .entry(sets.find_root(document as u32))
            .or_default()
            .push(document);
    }
    joined
        .into_values()
        .filter(|members| members.len() > 1)
        .collect()
}

/// The texts of a group, aligned with the first one.
struct AlignedGroup<'g, 't> {
    base: &'g GroupText<'t>,
    texts: &'g [GroupText<'t>],
    /// For each text but the base the runs that it shares with the base.
    runs: Vec<Vec<EqualRun>>,
    /// Least length of the first and the last equal run.
    context: usize,
    limits: LearningLimits,
}

/// A slot of the base with the values of all texts.
struct GroupSlot {
    /// Tokens of the base.
    place: Range<usize>,
    /// Tokens of each text, the base first; `None` if the text does not have the place.
    values: Vec<Option<Range<usize>>>,
}

impl<'g, 't> AlignedGroup<'g, 't> {
    fn align_texts(texts: &'g [GroupText<'t>], limits: LearningLimits) -> Self {
        let base = &texts[0];
        let context = if base.tokens.len() >= LONG_TEXT {
            LEAST_CONTEXT
        } else {
            1
        };
        let align = |text: &GroupText<'_>| align_tokens(base.tokens.values(), text.tokens.values());
        Self {
            base,
            texts,
            runs: texts[1..].iter().map(align).collect(),
            context,
            limits,
        }
    }

    fn find_slots(&self) -> Vec<GroupSlot> {
        let candidates = self.candidate_places();
        let slots = candidates.into_iter().map(|place| self.read_slot(place));
        let slots = slots.filter(|slot| self.can_be_slot(slot));
        let mut slots: Vec<GroupSlot> = self.drop_edge_places(slots.collect());
        if slots.is_empty() && self.base.tokens.len() < LONG_TEXT {
            slots = self.find_edge_slots();
        }
        let in_slots: usize = slots.iter().map(|slot| slot.place.len()).sum();
        let is_mostly_frame = in_slots as f64 <= MOST_SLOT_SHARE * self.base.tokens.len() as f64;
        let is_distinct_enough =
            !self.limits.rejects_repeated_values || self.has_enough_combinations(&slots);
        if is_mostly_frame && is_distinct_enough {
            slots
        } else {
            Vec::new()
        }
    }

    /// Drops slots of long texts too near an edge: they may be part of a header or a footer that many copies share.
    fn drop_edge_places(&self, mut slots: Vec<GroupSlot>) -> Vec<GroupSlot> {
        if self.base.tokens.len() >= LONG_TEXT {
            let is_frame = self.frame_tokens();
            let count = |tokens: Range<usize>| {
                let runs = is_frame[tokens].split(|&is_frame| !is_frame);
                let runs = runs.map(<[bool]>::len);
                runs.filter(|&run| run >= LEAST_EDGE_RUN).sum::<usize>()
            };
            slots.retain(|slot| {
                count(0..slot.place.start) >= LEAST_EDGE_FRAME
                    && count(slot.place.end..is_frame.len()) >= LEAST_EDGE_FRAME
            });
        }
        slots
    }

    /// Returns the slots at the edges of short texts, such as titles. Nearly all texts have a value of their own there,
    /// while only some copies of a text have a header or a footer.
    fn find_edge_slots(&self) -> Vec<GroupSlot> {
        let is_frame = self.frame_tokens();
        let (Some(first), Some(last)) = (
            is_frame.iter().position(|&is_frame| is_frame),
            is_frame.iter().rposition(|&is_frame| is_frame),
        ) else {
            return Vec::new();
        };
        let edges = [0..first, last + 1..is_frame.len()];
        let slots = edges.into_iter().map(|place| self.read_edge(place));
        slots.filter(|slot| self.is_edge_slot(slot)).collect()
    }

    /// Reads what every text has before the first or behind the last token of the frame.
    fn read_edge(&self, place: Range<usize>) -> GroupSlot {
        let others = self.runs.iter().zip(&self.texts[1..]).map(|(runs, text)| {
            if place.start == 0 {
                let first = runs.iter().find(|run| run.a == place.end)?;
                Some(0..first.b)
            } else {
                let last = runs.iter().find(|run| run.a + run.length == place.start)?;
                Some(last.b + last.length..text.tokens.len())
            }
        });
        let values = std::iter::once(Some(place.clone())).chain(others).collect();
        GroupSlot { place, values }
    }

    /// Returns `true` if nine texts in ten have a short value at an edge, and two values in three are different.
    fn is_edge_slot(&self, slot: &GroupSlot) -> bool {
        let is_short = |value: &Range<usize>| (1..=MOST_EDGE_TOKENS).contains(&value.len());
        let values = slot.values.iter().enumerate();
        let short = values.filter_map(|(text, value)| {
            let value = value.as_ref().filter(|value| is_short(value))?;
            Some(self.hash_value(text, value))
        });
        let short: Vec<u64> = short.collect();
        let distinct: HashSet<u64> = short.iter().copied().collect();
        10 * short.len() >= 9 * self.texts.len() && 3 * distinct.len() >= 2 * short.len()
    }

    /// Returns the places of the base that at least half of the other texts replace between equal runs.
    fn candidate_places(&self) -> Vec<Range<usize>> {
        let length = self.base.tokens.len();
        let mut replaced = vec![0_usize; length];
        for runs in &self.runs {
            let long = |run: &&EqualRun| run.length >= self.context;
            let (Some(first), Some(last)) = (runs.iter().find(long), runs.iter().rfind(long))
            else {
                continue;
            };
            let mut end = first.a + first.length;
            let inner = runs.iter().filter(|run| run.a >= end && run.a <= last.a);
            for run in inner.copied().collect::<Vec<_>>() {
                replaced[end..run.a]
                    .iter_mut()
                    .for_each(|count| *count += 1);
                end = run.a + run.length;
            }
        }
        let is_slot = |at: &usize| 2 * replaced[*at] >= self.runs.len();
        join_places((0..length).filter(is_slot))
    }

    /// Reads what every text has at a place of the base.
    fn read_slot(&self, place: Range<usize>) -> GroupSlot {
        let others = self.runs.iter().map(|runs| {
            let before = runs.iter().rfind(|run| run.a < place.start)?;
            let after = runs.iter().find(|run| run.a + run.length > place.end)?;
            let start = before.b + before.length.min(place.start - before.a);
            let end = after.b + place.end.saturating_sub(after.a);
            // Where the frame beside the place is missing, what stands there is no value.
            let is_beside = before.a + before.length >= place.start && after.a <= place.end;
            (is_beside && start <= end).then_some(start..end)
        });
        let values = std::iter::once(Some(place.clone())).chain(others).collect();
        GroupSlot { place, values }
    }

    fn hash_value(&self, text: usize, value: &Range<usize>) -> u64 {
        let tokens = self.texts[text].tokens.values();
        hash::hash_sequence(NAME_DOMAIN, &tokens[value.clone()]) as u64
    }

    /// Returns `true` if at least half of the texts have a value, enough values differ, and none has a majority that the
    /// limits forbid.
    fn can_be_slot(&self, slot: &GroupSlot) -> bool {
        let mut counts: HashMap<u64, usize> = HashMap::new();
        let mut all = 0;
        for (text, value) in slot.values.iter().enumerate() {
            if let Some(value) = value {
                *counts.entry(self.hash_value(text, value)).or_default() += 1;
                all += 1;
            }
        }
        let most = counts.values().max().copied().unwrap_or(0);
        let has_majority = 2 * most > all;
        2 * all >= self.texts.len()
            && counts.len() >= self.limits.least_values
            && !(self.limits.rejects_repeated_values && has_majority)
    }

    /// Returns `true` if there are at least half as many different combinations of values as texts.
    fn has_enough_combinations(&self, slots: &[GroupSlot]) -> bool {
        if slots.is_empty() {
            return false;
        }
        let distinct: HashSet<Vec<Option<u64>>> = (0..self.texts.len())
            .map(|text| {
                let value = |slot: &GroupSlot| {
                    let value = slot.values[text].as_ref();
                    value.map(|value| self.hash_value(text, value))
                };
                slots.iter().map(value).collect()
            })
            .collect();
        2 * distinct.len() >= self.texts.len()
    }

    /// Returns the tokens of the base that are in at least half of the other texts.
    fn frame_tokens(&self) -> Vec<bool> {
        let mut counts = vec![0_usize; self.base.tokens.len()];
        for run in self.runs.iter().flatten() {
            let run = run.a..run.a + run.length;
            counts[run].iter_mut().for_each(|count| *count += 1);
        }
        let others = self.runs.len();
        counts
            .into_iter()
            .map(|count| 2 * count >= others)
            .collect()
    }

    /// Returns the form, if enough texts have its frame: in a group of joined groups, others may share a sentence of it alone.
    /// Its number of documents is the share of `documents` that the texts with the frame have among the aligned ones.
    fn make_form(&self, slots: &[GroupSlot], documents: u64) -> Option<Form> {
        let is_frame = self.frame_tokens();
        let with_frame = self.count_texts_with_frame(&is_frame, slots);
        if with_frame < self.limits.least_texts {
            return None;
        }
        let starts = std::iter::once(0).chain(slots.iter().map(|slot| slot.place.end));
        let length = self.base.tokens.len();
        let ends = slots.iter().map(|slot| slot.place.start).chain([length]);
        let parts = starts.zip(ends).map(|(start, end)| {
            let runs = join_adjacent((start..end).filter(|&at| is_frame[at]));
            let runs: Vec<&str> = runs
                .into_iter()
                .map(|run| self.base.spelling(run))
                .collect();
            runs.join(" ")
        });
        let frame: Vec<String> = parts.collect();
        let inner = &frame[1..frame.len() - 1];
        if inner.iter().any(String::is_empty) || frame.iter().all(String::is_empty) {
            return None;
        }
        let name = hash::hash_bytes(NAME_DOMAIN, frame.join("\0").as_bytes()) as u32;
        Some(Form {
            name: format!("f{name:08x}"),
            documents: documents * with_frame as u64 / self.texts.len() as u64,
            frame,
            values: slots.iter().map(|slot| self.list_examples(slot)).collect(),
        })
    }

    /// Returns the number of texts that have so much of the frame that they are documents of the form.
    fn count_texts_with_frame(&self, is_frame: &[bool], slots: &[GroupSlot]) -> usize {
        let mut is_frame = is_frame.to_vec();
        for slot in slots {
            is_frame[slot.place.clone()].fill(false);
        }
        let count = |tokens: &[bool]| tokens.iter().filter(|&&is_frame| is_frame).count();
        let least = LEAST_FRAME_SHARE * count(&is_frame) as f64;
        let has_frame = |runs: &&Vec<EqualRun>| {
            let runs = runs.iter();
            let shared = runs.map(|run| count(&is_frame[run.a..run.a + run.length]));
            shared.sum::<usize>() as f64 >= least
        };
        1 + self.runs.iter().filter(has_frame).count()
    }

    fn list_examples(&self, slot: &GroupSlot) -> Vec<String> {
        let mut seen = HashSet::new();
        let values = slot.values.iter().enumerate();
        let values = values.filter_map(|(text, value)| Some((text, value.clone()?)));
        values
            .filter(|(text, value)| seen.insert(self.hash_value(*text, value)))
            .take(MOST_EXAMPLES)
            .map(|(text, value)| self.texts[text].spelling(value).to_owned())
            .collect()
    }
}

/// Joins ascending positions to places; positions with fewer than [`LEAST_GAP`] others between them are one place.
fn join_places(positions: impl Iterator<Item = usize>) -> Vec<Range<usize>> {
    join_within(positions, LEAST_GAP)
}

fn join_adjacent(positions: impl Iterator<Item = usize>) -> Vec<Range<usize>> {
    join_within(positions, 1)
}

fn join_within(positions: impl Iterator<Item = usize>, gap: usize) -> Vec<Range<usize>> {
    let mut places: Vec<Range<usize>> = Vec::new();
    for at in positions {
        match places.last_mut() {
            Some(last) if at < last.end + gap => last.end = at + 1,
            _ => places.push(at..at + 1),
        }
    }
    places
}
