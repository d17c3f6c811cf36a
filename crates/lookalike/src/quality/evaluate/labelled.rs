//! Texts with labels that say which pairs are similar.

use std::collections::HashMap;

use super::classes::TextClass;
use crate::candidates::UnionFind;
use crate::error::{Error, ErrorKind, Result};
use crate::hash::{mix_bits, value_hash};
use crate::types::DocId;

/// Largest number of pairs within groups, and of pairs found across groups: 20 bytes each.
pub const MOST_PAIRS: usize = 100_000_000;

/// A pair and its label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LabelledPair {
    /// Position of a text.
    pub a: DocId,
    /// Position of the other text.
    pub b: DocId,
    /// `true` if the two are similar.
    pub similar: bool,
    /// Kind of edit between the two, as a position in [`LabelledTexts::edit_kinds`].
    pub kind: Option<u32>,
}

/// Texts of which it is known which pairs are similar.
///
/// ```
/// use lookalike::quality::evaluate::LabelledTexts;
///
/// let texts = ["The boat left at dawn.", "The boat left at noon.", "Snow fell on the pass."];
/// // The first two are one group. All pairs across groups are not similar.
/// let labelled = LabelledTexts::from_groups(texts.map(String::from).to_vec(), vec![0, 0, 1])?;
/// assert_eq!((labelled.count_similar_pairs(), labelled.count_different_pairs()), (1, 2));
/// # Ok::<_, lookalike::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct LabelledTexts {
    texts: Vec<String>,
    pairs: Vec<LabelledPair>,
    kinds: Vec<String>,
    /// Group of each text, if all pairs count. Pairs across groups are not similar.
    groups: Option<Vec<u32>>,
    /// Unit of each text. Texts connected by pairs or groups, or equal, are one unit.
    units: Vec<u32>,
    unit_count: usize,
}

impl LabelledTexts {
    /// Creates labelled texts from pairs. `kinds` holds the names of the kinds of edits.
    ///
    /// # Errors
    /// Fails if there are no pairs or all labels are the same, because precision and recall need both
    /// labels.
    pub fn from_pairs(
        texts: Vec<String>,
        pairs: Vec<LabelledPair>,
        kinds: Vec<String>,
    ) -> Result<Self> {
        let similar = pairs.iter().filter(|pair| pair.similar).count();
        check_classes(similar as u64, (pairs.len() - similar) as u64)?;
        let links = pairs.iter().map(|pair| (pair.a, pair.b));
        let (units, unit_count) = connect_units(&texts, links);
        Ok(Self {
            texts,
            pairs,
            kinds,
            groups: None,
            units,
            unit_count,
        })
    }

    /// Creates labelled texts from groups: all pairs within a group are similar, and all others are
    /// not. `groups` holds the group of every text.
    ///
    /// # Errors
    /// Fails if no group has two texts, if there is only one group, or if the groups contain more than
    /// [`MOST_PAIRS`] pairs.
    pub fn from_groups(texts: Vec<String>, groups: Vec<u32>) -> Result<Self> {
        let members = group_members(&groups);
        let choose = |count: u64| count * count.saturating_sub(1) / 2;
        let within: u64 = members.iter().map(|group| choose(group.len() as u64)).sum();
        check_classes(within, choose(texts.len() as u64) - within)?;
        if within > MOST_PAIRS as u64 {
            return Err(Error::new(
                ErrorKind::Limit,
                format!(
                    "the groups contain {within} pairs, more than the limit of {MOST_PAIRS}: give \
                     smaller groups, or label pairs"
                ),
            ));
        }
        let pairs = members.iter().flat_map(|group| {
            let later = |at: usize| group[at + 1..].iter();
            (0..group.len()).flat_map(move |at| later(at).map(move |&b| (group[at], b)))
        });
        let pairs = pairs
            .map(|(a, b)| LabelledPair {
                a,
                b,
                similar: true,
                kind: None,
            })
            .collect();
        let links = members
            .iter()
            .flat_map(|group| group.windows(2).map(|pair| (pair[0], pair[1])));
        let (units, unit_count) = connect_units(&texts, links);
        Ok(Self {
            texts,
            pairs,
            kinds: Vec::new(),
            groups: Some(groups),
            units,
            unit_count,
        })
    }

    /// Returns the texts.
    pub fn texts(&self) -> &[String] {
        &self.texts
    }

    /// Returns the listed pairs: all with a label, or all within groups.
    pub fn listed_pairs(&self) -> &[LabelledPair] {
        &self.pairs
    }

    /// Returns the number of pairs that are not similar and not listed: those across groups.
    pub fn count_unlisted_pairs(&self) -> u64 {
        let Some(groups) = &self.groups else { return 0 };
        let texts = groups.len() as u64;
        texts * texts.saturating_sub(1) / 2 - self.pairs.len() as u64
    }

    /// Returns the number of similar pairs.
    pub fn count_similar_pairs(&self) -> u64 {
        self.pairs.iter().filter(|pair| pair.similar).count() as u64
    }

    /// Returns the number of pairs that are not similar.
    pub fn count_different_pairs(&self) -> u64 {
        self.pairs.len() as u64 - self.count_similar_pairs() + self.count_unlisted_pairs()
    }

    /// Returns the names of the kinds of edits.
    pub fn edit_kinds(&self) -> &[String] {
        &self.kinds
    }

    /// Returns the number of units: texts connected by pairs or groups, or equal, which are drawn and
    /// divided as a whole.
    pub fn unit_count(&self) -> usize {
        self.unit_count
    }

    /// Returns the unit of a text.
    pub(super) fn unit_of(&self, document: DocId) -> u32 {
        self.units[document.index()]
    }

    /// Returns the group of each text, if there are groups.
    pub(super) fn text_groups(&self) -> Option<&[u32]> {
        self.groups.as_deref()
    }

    /// Returns the script and length of every text.
    pub(super) fn classify_texts(&self) -> Vec<TextClass> {
        self.texts
            .iter()
            .map(|text| TextClass::classify_text(text))
            .collect()
    }

    /// Returns two parts, drawn from a seed: one to choose a setting by, and one that is held back to judge
    /// it. Both get about half of the similar pairs and half of the others. A unit is not cut: texts that
    /// are connected by pairs, in one group or equal are in the same part. The parts do not depend on the
    /// order of the rows.
    ///
    /// # Errors
    /// Fails if a part would lack similar pairs or others.
    pub fn split_in_halves(&self, seed: u64) -> Result<[Self; 2]> {
        let part_of = self.assign_parts(seed);
        let part = |part: usize| {
            self.select_part(|document| part_of[self.unit_of(document) as usize] == part)
                .map_err(|_| {
                    Error::setting_error(format!(
                        "{} units of connected texts cannot be split into two halves that both \
                         have similar and other pairs (one for choosing, one held back): label \
                         more pairs of other texts",
                        self.unit_count
                    ))
                })
        };
        Ok([part(0)?, part(1)?])
    }

    /// The part of every unit: in an order drawn from the seed, each goes to the part that has fewer
    /// pairs of its sort so far.
    fn assign_parts(&self, seed: u64) -> Vec<usize> {
        let mut pairs = vec![[0u64; 2]; self.unit_count];
        for pair in &self.pairs {
            pairs[self.unit_of(pair.a) as usize][usize::from(pair.similar)] += 1;
        }
        if self.groups.is_some() {
            // Every text brings pairs with those of other groups.
            for &unit in &self.units {
                pairs[unit as usize][0] += 1;
            }
        }
        let mut order: Vec<usize> = (0..self.unit_count).collect();
        // Units are numbered by their texts, so this order is that of no row.
        order.sort_by_key(|&unit| mix_bits(seed ^ mix_bits(unit as u64 + 1)));
        let mut parts = vec![0; self.unit_count];
        let mut filled = [[0u64; 2]; 2];
        for sort in [1, 0] {
            for &unit in &order {
                let is_of_sort = pairs[unit][1] > 0;
                if is_of_sort != (sort == 1) {
                    continue;
                }
                let part = usize::from(filled[1][sort] < filled[0][sort]);
                parts[unit] = part;
                filled[part][0] += pairs[unit][0];
                filled[part][1] += pairs[unit][1];
            }
        }
        parts
    }

    fn select_part(&self, is_in: impl Fn(DocId) -> bool) -> Result<Self> {
        let mut texts = Vec::new();
        let mut place = vec![DocId(0); self.texts.len()];
        let mut groups = Vec::new();
        for (at, text) in self.texts.iter().enumerate() {
            let document = DocId(at as u32);
            if is_in(document) {
                place[at] = DocId(texts.len() as u32);
                texts.push(text.clone());
                groups.extend(self.groups.as_ref().map(|groups| groups[at]));
            }
        }
        if self.groups.is_some() {
            return Self::from_groups(texts, renumber_groups(&groups));
        }
        let pairs = self.pairs.iter().filter(|pair| is_in(pair.a));
        let pairs = pairs.map(|pair| LabelledPair {
            a: place[pair.a.index()],
            b: place[pair.b.index()],
            ..*pair
        });
        Self::from_pairs(texts, pairs.collect(), self.kinds.clone())
    }
}

/// Returns the same groups, numbered in the order of their first texts.
fn renumber_groups(groups: &[u32]) -> Vec<u32> {
    let mut numbers = HashMap::new();
    groups
        .iter()
        .map(|group| {
            let next = numbers.len() as u32;
            *numbers.entry(group).or_insert(next)
        })
        .collect()
}

/// Returns the texts of every group.
fn group_members(groups: &[u32]) -> Vec<Vec<DocId>> {
    let count = groups.iter().max().map_or(0, |&last| last as usize + 1);
    let mut members = vec![Vec::new(); count];
    for (at, &group) in groups.iter().enumerate() {
        members[group as usize].push(DocId(at as u32));
    }
    members
}

fn check_classes(similar: u64, different: u64) -> Result<()> {
    let lacking = match (similar, different) {
        (0, 0) => "there is no labelled pair".to_owned(),
        (0, others) => format!("none of the {others} labelled pairs is similar"),
        (similar, 0) => format!("all {similar} labelled pairs are similar"),
        _ => return Ok(()),
    };
    Err(Error::setting_error(format!(
        "{lacking}: precision and recall need pairs that are similar and pairs that are not"
    )))
}

/// Numbers the connected components of texts, where equal texts are connected. The numbers follow from
/// the texts alone, and not from their order.
fn connect_units(
    texts: &[String],
    links: impl Iterator<Item = (DocId, DocId)>,
) -> (Vec<u32>, usize) {
    let mut sets = UnionFind::with_members(texts.len());
    links.for_each(|(a, b)| sets.union_sets(a.0, b.0));
    let mut first_of: HashMap<&str, u32> = HashMap::new();
    for (at, text) in (0..).zip(texts) {
        sets.union_sets(*first_of.entry(text).or_insert(at), at);
    }
    let mut least: HashMap<u32, u64> = HashMap::new();
    for (at, text) in (0..).zip(texts) {
        let hash = value_hash(text.as_bytes());
        let least = least.entry(sets.find_root(at)).or_insert(hash);
        *least = hash.min(*least);
    }
    let mut roots: Vec<(u64, u32)> = least.iter().map(|(&root, &hash)| (hash, root)).collect();
    roots.sort_unstable();
    let number: HashMap<u32, u32> = (0..)
        .zip(&roots)
        .map(|(number, &(_, root))| (root, number))
        .collect();
    let units = (0..texts.len() as u32)
        .map(|at| number[&sets.find_root(at)])
        .collect();
    (units, roots.len())
}
