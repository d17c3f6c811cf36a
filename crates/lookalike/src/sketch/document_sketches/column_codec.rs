//! Serialisation of the sketches of many documents, column by column, to be read under the same recipe and
//! plan.
//!
//! | column | bytes for each document | written if |
//! |---|---|---|
//! | number of documents | 4 in all | always |
//! | text keys, text states | 16, 1 | always |
//! | set sizes, parities | 4, 8 | the plan has an exact join |
//! | whether features are kept, features | 1, 8 each | the plan has an exact join and the store a budget |
//! | whether there is a signature, its slots | 1, 4 each | the plan has bands |
//! | fingerprint | 8, or 16 above 64 bits | the plan has a Hamming distance |
//! | length and parities of the sequence | 4, 8 | the measure compares sequences |
//! | whether the sequence is kept, the sequence | 1, 4 or 8 a symbol | the measure compares sequences |
//! | key in common, such as the signature of the longest sentences | 8 | the plan compares such keys |
//! | number of smallest hashes, the hashes | 4, 8 each | the plan compares them |
//! | length of form and values, these | 4, 8 each | the recipe has a table of forms |
//!
//! Guarantee: reading never panics, whatever the bytes are. The caller detects damage by a checksum.

use super::{
    BudgetedLists, DocumentSketcher, DocumentSketches, FingerprintColumn, LONG_SIZE, ListColumn,
    NO_ENTRY, SetSummary, TEXT_STATES,
};
use crate::byte_reader::ByteReader;
use crate::plan::EditUnit;
use crate::similarity::SequenceOutline;
use crate::types::DocId;

/// Appends little-endian numbers of `N` bytes.
fn put_numbers<T: Copy, const N: usize>(
    numbers: &[T],
    to_bytes: fn(T) -> [u8; N],
    into: &mut Vec<u8>,
) {
    let start = into.len();
    into.resize(start + N * numbers.len(), 0);
    for (bytes, &number) in into[start..].chunks_exact_mut(N).zip(numbers) {
        bytes.copy_from_slice(&to_bytes(number));
    }
}

/// Appends a flag for each list, and then the lists that are there.
fn put_lists<'a, T: Copy + 'a, const N: usize>(
    documents: usize,
    list: impl Fn(DocId) -> Option<&'a [T]>,
    to_bytes: fn(T) -> [u8; N],
    into: &mut Vec<u8>,
) {
    let documents = || (0..documents as u32).map(DocId);
    into.extend(documents().map(|document| u8::from(list(document).is_some())));
    for list in documents().filter_map(&list) {
        put_numbers(list, to_bytes, into);
    }
}

/// Reads what [`put_lists`] has written: the start of each list, or [`NO_ENTRY`], and all lists together.
/// `length` returns the length of a list, or `None` if it cannot be there.
fn read_lists<T, const N: usize>(
    reader: &mut ByteReader<'_>,
    documents: usize,
    length: impl Fn(usize) -> Option<usize>,
    read: fn([u8; N]) -> T,
) -> Option<(Vec<u32>, Vec<T>)> {
    let flags = reader.read_bytes(documents)?;
    let mut at = Vec::with_capacity(documents);
    let mut total = 0usize;
    for (document, &flag) in flags.iter().enumerate() {
        match flag {
            0 => at.push(NO_ENTRY),
            1 => {
                at.push(
                    u32::try_from(total)
                        .ok()
                        .filter(|&start| start < NO_ENTRY)?,
                );
                total = total.checked_add(length(document)?)?;
            }
            _ => return None,
        }
    }
    Some((at, reader.read_list(total, read)?))
}

impl DocumentSketcher {
    /// Appends the sketches of all documents of a store that this sketcher filled. Without `keeps_lists`, the
    /// features and sequences that the store keeps within its budget are left out; they are then made again
    /// from the texts, with the same results.
    pub fn encode_columns(&self, from: &DocumentSketches, keeps_lists: bool, into: &mut Vec<u8>) {
        let documents = from.len();
        into.extend((documents as u32).to_le_bytes());
        put_numbers(&from.keys, u128::to_le_bytes, into);
        let number = |state| {
            TEXT_STATES
                .iter()
                .position(|known| known == state)
                .unwrap_or(0) as u8
        };
        into.extend(from.states.iter().map(number));
        if self.plan.join_plan().is_some() {
            put_numbers(&from.summaries, |summary| summary.size.to_le_bytes(), into);
            put_numbers(
                &from.summaries,
                |summary| summary.parities.to_le_bytes(),
                into,
            );
            if from.feature_budget > 0 {
                let features = |document| from.kept_features(document).filter(|_| keeps_lists);
                put_lists(documents, features, u64::to_le_bytes, into);
            }
        }
        if self.minhash.is_some() {
            let signature = |document| from.minhash_signature(document);
            put_lists(documents, signature, u32::to_le_bytes, into);
        }
        if self.simhash.is_some() {
            match &from.fingerprints {
                FingerprintColumn::Narrow(codes) => put_numbers(codes, u64::to_le_bytes, into),
                FingerprintColumn::Wide(codes) => put_numbers(codes, u128::to_le_bytes, into),
            }
        }
        if self.plan.sequence_measure().is_some() {
            put_numbers(&from.outlines, SequenceOutline::to_bytes, into);
            match self.plan.match_settings().unit {
                EditUnit::Characters => {
                    let characters = |document| from.characters(document).filter(|_| keeps_lists);
                    put_lists(documents, characters, u32::to_le_bytes, into);
                }
                EditUnit::Words => {
                    let words = |document| from.kept_words(document).filter(|_| keeps_lists);
                    put_lists(documents, words, u64::to_le_bytes, into);
                }
            }
        }
        if self.plan.equal_key().is_some() {
            put_numbers(&from.equal_keys, u64::to_le_bytes, into);
        }
        if self.plan.bottom_k_plan().is_some() {
            from.smallest.encode_column(into);
        }
        if self.plan.compares_forms() {
            from.forms.encode_column(into);
        }
    }

    /// Reads a store that [`encode_columns`](Self::encode_columns) has written under the same recipe and plan,
    /// from a store with a budget of the same kind: none, or some. Returns `None` if the bytes do not fit.
    pub fn decode_columns(
        &self,
        reader: &mut ByteReader<'_>,
        feature_budget: usize,
    ) -> Option<DocumentSketches> {
        let mut to = self.new_sketches(feature_budget);
        let documents = reader.read_u32()? as usize;
        to.keys = reader.read_list(documents, u128::from_le_bytes)?;
        let states = reader.read_bytes(documents)?.iter();
        to.states = states
            .map(|&state| TEXT_STATES.get(usize::from(state)).copied())
            .collect::<Option<_>>()?;
        if let Some(join) = self.plan.join_plan() {
            let sizes = reader.read_list(documents, u32::from_le_bytes)?;
            let parities = reader.read_list(documents, u64::from_le_bytes)?;
            let fits =
                |&size: &u32| size == LONG_SIZE || size as usize <= join.max_partner_features;
            if !sizes.iter().all(fits) {
                return None;
            }
            let summaries = to.keys.iter().zip(&sizes).zip(parities);
            to.summaries = summaries
                .map(|((&key, &size), parities)| SetSummary {
                    key: key as u32,
                    size,
                    parities,
                })
                .collect();
            if feature_budget > 0 {
                let length = |document: usize| Some(sizes[document]).filter(|&it| it != LONG_SIZE);
                let length = |document| length(document).map(|length| length as usize);
                (to.features_at, to.features) =
                    read_lists(reader, documents, length, u64::from_le_bytes)?;
            }
        }
        if self.minhash.is_some() {
            let slots = to.slots;
            let (at, signatures) =
                read_lists(reader, documents, |_| Some(slots), u32::from_le_bytes)?;
            // The start of a signature is counted in signatures.
            let in_signatures = |start: u32| match start {
                NO_ENTRY => NO_ENTRY,
                start => start / slots as u32,
            };
            to.signature_at = at.into_iter().map(in_signatures).collect();
            to.signatures = signatures;
        }
        if self.simhash.is_some() {
            match &mut to.fingerprints {
                FingerprintColumn::Narrow(codes) => {
                    *codes = reader.read_list(documents, u64::from_le_bytes)?;
                }
                FingerprintColumn::Wide(codes) => {
                    *codes = reader.read_list(documents, u128::from_le_bytes)?;
                }
            }
        }
        if self.plan.sequence_measure().is_some() {
            to.outlines = reader.read_list(documents, SequenceOutline::from_bytes)?;
            let length = |document: usize| to.outlines[document].symbol_count();
            match self.plan.match_settings().unit {
                EditUnit::Characters => {
                    let (at, items) = read_lists(reader, documents, length, u32::from_le_bytes)?;
                    to.characters = BudgetedLists { at, items };
                }
                EditUnit::Words => {
                    let (at, items) = read_lists(reader, documents, length, u64::from_le_bytes)?;
                    to.words = BudgetedLists { at, items };
                }
            }
        }
        if self.plan.equal_key().is_some() {
            to.equal_keys = reader.read_list(documents, u64::from_le_bytes)?;
        }
        if self.plan.bottom_k_plan().is_some() {
            to.smallest = ListColumn::decode_column(reader, documents)?;
        }
        if self.plan.compares_forms() {
            to.forms = ListColumn::decode_column(reader, documents)?;
        }
        Some(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Cpu;
    use crate::plan::{MatchMethod, MatchPlan, MatchSettings, SimilarityMeasure};
    use crate::recipe::Recipe;
    use crate::text::{AnalysisScratch, TextAnalyzer};

    fn plans() -> Vec<(Recipe, MatchPlan)> {
        let methods = MatchMethod::ALL;
        let with = |settings: MatchSettings, bits: u32| {
            let mut recipe = Recipe::default();
            recipe.simhash.bits = bits;
            let plan = MatchPlan::new(&recipe, settings).unwrap();
            (recipe, plan)
        };
        let default = MatchSettings::default();
        let mut plans: Vec<_> = methods
            .map(|method| with(MatchSettings { method, ..default }, 64))
            .into();
        let method = MatchMethod::SimHash;
        plans.push(with(MatchSettings { method, ..default }, 128));
        for unit in [EditUnit::Characters, EditUnit::Words] {
            let measure = SimilarityMeasure::Levenshtein;
            let settings = MatchSettings {
                measure,
                unit,
                ..default
            };
            plans.push(with(settings, 64));
        }
        plans
    }

    fn texts() -> Vec<String> {
        let counts = [0, 1, 2, 3, 40, 63, 64, 65, 90, 400, 2000];
        let text = |count: usize| {
            let words = (0..count).map(|word| format!("w{}", word * 7919 % 1009));
            words.collect::<Vec<_>>().join(" ")
        };
        let symbols = ["!?", "  "].map(str::to_owned);
        counts.map(text).into_iter().chain(symbols).collect()
    }

    fn sketch(sketcher: &DocumentSketcher, recipe: &Recipe, budget: usize) -> DocumentSketches {
        let analyzer = TextAnalyzer::new(recipe).with_extras(sketcher.required_extras());
        let mut sketches = sketcher.new_sketches(budget);
        let mut scratch = AnalysisScratch::default();
        for text in texts() {
            sketcher.add_document(&analyzer.analyze_text(&text, &mut scratch), &mut sketches);
        }
        sketches
    }

    #[test]
    fn columns_are_read_back() {
        for (recipe, plan) in plans() {
            let sketcher = DocumentSketcher::new(&recipe, &plan, Cpu::detect_best());
            for (budget, keeps_lists) in [(0, true), (4096, true), (4096, false)] {
                let sketches = sketch(&sketcher, &recipe, budget);
                let mut bytes = Vec::new();
                sketcher.encode_columns(&sketches, keeps_lists, &mut bytes);
                let mut reader = ByteReader::new(&bytes);
                let read = sketcher.decode_columns(&mut reader, budget).unwrap();
                assert!(reader.is_at_end());
                let mut again = Vec::new();
                sketcher.encode_columns(&read, keeps_lists, &mut again);
                assert_eq!(bytes, again, "{plan:?}");
                let mut lists = 0;
                for document in (0..sketches.len() as u32).map(DocId) {
                    assert_eq!(read.text_key(document), sketches.text_key(document));
                    assert_eq!(read.text_state(document), sketches.text_state(document));
                    let (one, other) = (&read, &sketches);
                    assert_eq!(
                        one.optional_summary(document),
                        other.optional_summary(document)
                    );
                    assert_eq!(
                        one.minhash_signature(document),
                        other.minhash_signature(document)
                    );
                    assert_eq!(one.fingerprint(document), other.fingerprint(document));
                    assert_eq!(one.equal_key(document), other.equal_key(document));
                    assert_eq!(
                        one.smallest_hashes(document),
                        other.smallest_hashes(document)
                    );
                    assert_eq!(one.outlines, other.outlines);
                    let kept = |it: &DocumentSketches| {
                        let features = it.kept_features(document).map(<[u64]>::to_vec);
                        let characters = it.characters(document).map(<[u32]>::to_vec);
                        (
                            features,
                            characters,
                            it.kept_words(document).map(<[u64]>::to_vec),
                        )
                    };
                    lists += usize::from(kept(one) != (None, None, None));
                    if keeps_lists {
                        assert_eq!(kept(one), kept(other));
                    }
                }
                assert!(keeps_lists || lists == 0);
            }
        }
    }

    #[test]
    fn bytes_of_something_else_are_refused() {
        for (recipe, plan) in plans() {
            let sketcher = DocumentSketcher::new(&recipe, &plan, Cpu::detect_best());
            let sketches = sketch(&sketcher, &recipe, 4096);
            let mut bytes = Vec::new();
            sketcher.encode_columns(&sketches, true, &mut bytes);
            for length in (0..bytes.len()).step_by(7) {
                let mut reader = ByteReader::new(&bytes[..length]);
                assert!(sketcher.decode_columns(&mut reader, 4096).is_none());
            }
            for at in (0..bytes.len()).step_by(5) {
                let mut flipped = bytes.clone();
                flipped[at] ^= 0x81;
                // Either it is refused, or every list can be read.
                let read = sketcher.decode_columns(&mut ByteReader::new(&flipped), 4096);
                let Some(read) = read else { continue };
                for document in (0..read.len() as u32).map(DocId) {
                    let _ = (read.kept_features(document), read.characters(document));
                    let _ = (read.kept_words(document), read.smallest_hashes(document));
                    let _ = read.minhash_signature(document);
                }
            }
        }
    }
}
