//! Learns a table of forms from the groups of similar documents of a corpus.

use rayon::prelude::*;

use super::learning::{COMPARED_HASHES, FormLearner, MOST_SAMPLED_TEXTS, join_similar};
use super::table::{Form, FormTable};
use crate::error::Error;

/// The documents of which forms are learned.
pub trait FormCorpus: Sync {
    /// A document.
    type Document: Copy + Send + Sync;
    /// Buffers of a thread that reads texts.
    type Scratch: Default;
    /// An error of reading, or of learning.
    type Error: From<Error> + Send;

    /// Returns the text of a document; `None` if it has none any more.
    ///
    /// # Errors
    /// If it cannot be read.
    fn read_text(
        &self,
        document: Self::Document,
        scratch: &mut Self::Scratch,
    ) -> Result<Option<String>, Self::Error>;

    /// Appends hashes of the features of a document, ascending. The smallest [`COMPARED_HASHES`] are used.
    ///
    /// # Errors
    /// If they cannot be read.
    fn append_features(
        &self,
        document: Self::Document,
        scratch: &mut Self::Scratch,
        into: &mut Vec<u64>,
    ) -> Result<(), Self::Error>;
}

impl FormLearner {
    /// Learns the forms of groups of similar documents, on all threads. A group has the document with which the others
    /// match first. Groups without a form are joined with groups whose first documents are similar, and tried again: the
    /// documents of a form with long values are in many small groups.
    ///
    /// The table depends on the texts and the order of the groups and of their documents, and not on the number of
    /// threads. Cost: up to [`MOST_SAMPLED_TEXTS`] texts of a group are read and aligned.
    ///
    /// # Errors
    /// Those of the corpus, and those of [`learn_form`](Self::learn_form).
    pub fn learn_table<C: FormCorpus>(
        &self,
        corpus: &C,
        groups: &[Vec<C::Document>],
    ) -> Result<FormTable, C::Error> {
        let mut forms = self.learn_each_group(corpus, groups)?;
        let with_forms = groups.iter().zip(&forms);
        let without_form = with_forms.filter(|(_, form)| form.is_none());
        let without_form: Vec<&[C::Document]> = without_form
            .map(|(group, _)| group.as_slice())
            .filter(|group| !group.is_empty())
            .collect();
        let joined = join_similar_groups(corpus, &without_form)?;
        forms.extend(self.learn_each_group(corpus, &joined)?);
        Ok(self.make_table(forms.into_iter().flatten().collect()))
    }

    /// Learns the form of each group of similar documents, if it has one. A group has the document with which the others
    /// match first.
    ///
    /// # Errors
    /// As [`learn_table`](Self::learn_table).
    pub fn learn_each_group<C: FormCorpus>(
        &self,
        corpus: &C,
        groups: &[Vec<C::Document>],
    ) -> Result<Vec<Option<Form>>, C::Error> {
        let groups = groups.par_iter();
        groups
            .map_init(C::Scratch::default, |scratch, group| {
                if group.len() < self.least_texts() {
                    return Ok(None);
                }
                self.learn_of_group(corpus, group, scratch)
            })
            .collect()
    }

    fn learn_of_group<C: FormCorpus>(
        &self,
        corpus: &C,
        group: &[C::Document],
        scratch: &mut C::Scratch,
    ) -> Result<Option<Form>, C::Error> {
        let sampled = sample_evenly(&group[1..], MOST_SAMPLED_TEXTS - 1);
        let mut texts = Vec::new();
        for document in std::iter::once(group[0]).chain(sampled) {
            texts.extend(corpus.read_text(document, scratch)?);
        }
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        Ok(self.learn_form(&texts, group.len() as u64)?)
    }
}

/// Joins groups of which the first documents are similar, though less than they would have to be to match. Returns the
/// joined groups alone.
fn join_similar_groups<C: FormCorpus>(
    corpus: &C,
    groups: &[&[C::Document]],
) -> Result<Vec<Vec<C::Document>>, C::Error> {
    let smallest = groups.par_iter().map_init(
        <(C::Scratch, Vec<u64>)>::default,
        |(scratch, features), group| {
            features.clear();
            corpus.append_features(group[0], scratch, features)?;
            features.truncate(COMPARED_HASHES);
            Ok(features.clone())
        },
    );
    let smallest = smallest.collect::<Result<Vec<_>, C::Error>>()?;
    let joined = join_similar(&smallest).into_iter();
    let documents = |members: Vec<usize>| {
        let members = members.into_iter();
        members
            .flat_map(|group| groups[group].iter().copied())
            .collect()
    };
    Ok(joined.map(documents).collect())
}

/// Returns at most `most` documents, at equal distances.
fn sample_evenly<D: Copy>(documents: &[D], most: usize) -> impl Iterator<Item = D> {
    let count = documents.len().min(most);
    (0..count).map(move |at| documents[at * documents.len() / count])
}
