//! MinHash by hand: sets of shingles under explicit permutations.
//!
//! The rows of the table are all shingles in the order of a permutation, the columns are the documents. The
//! minimum of a document is the first shingle in that order that it has. Two documents have the same minimum
//! with a probability that is their Jaccard index, over all permutations (Broder 1997), so the share of
//! equal minima estimates it. Instead of permutations, real signatures use hash functions.

use std::collections::{HashMap, HashSet};

use lookalike::similarity::jaccard_index;
use serde_json::{Value, json};

/// Largest number of documents, of shingles, and of permutations in a table.
pub const MOST_ENTRIES: usize = 100;

/// Documents as sets of shingles, and the order of all shingles in every permutation.
#[derive(Clone, Debug, PartialEq)]
pub struct ShingleSets {
    documents: Vec<(String, HashSet<String>)>,
    permutations: Vec<Vec<String>>,
}

/// The similarity of two documents by their columns.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnSimilarity {
    /// Places of the two documents.
    pub documents: (usize, usize),
    /// Number of permutations under which the minima are equal.
    pub equal_minima: usize,
    /// Jaccard index of the two sets.
    pub jaccard: f64,
}

impl ShingleSets {
    /// Parses documents, each `NAME=SHINGLE SHINGLE …`, and permutations, each a list of all shingles.
    ///
    /// # Errors
    ///
    /// If a document has no name or no shingle, if a name or a shingle is repeated, if a permutation does not
    /// list every shingle exactly once, or if there are more than [`MOST_ENTRIES`] of any.
    pub fn parse_sets(documents: &[String], permutations: &[String]) -> Result<Self, String> {
        check_count("documents", documents.len())?;
        check_count("permutations", permutations.len())?;
        let mut parsed: Vec<(String, HashSet<String>)> = Vec::new();
        for given in documents {
            let (name, shingles) = parse_named_set(given)?;
            if parsed.iter().any(|(other, _)| *other == name) {
                return Err(format!(
                    "the document '{name}' is given twice: give each a name of its own"
                ));
            }
            parsed.push((name, shingles));
        }
        let mut all: Vec<&String> = parsed.iter().flat_map(|(_, set)| set).collect();
        all.sort_unstable();
        all.dedup();
        check_count("shingles", all.len())?;
        let permutations = permutations
            .iter()
            .map(|given| parse_permutation(given, &all))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            documents: parsed,
            permutations,
        })
    }

    /// Returns the names of the documents.
    pub fn document_names(&self) -> impl Iterator<Item = &str> {
        self.documents.iter().map(|(name, _)| &**name)
    }

    /// Returns the permutations: all shingles in their order.
    pub fn permutations(&self) -> &[Vec<String>] {
        &self.permutations
    }

    /// Returns for every document `true` if it has the shingle: a row of the table.
    pub fn table_row(&self, shingle: &str) -> Vec<bool> {
        let documents = self.documents.iter();
        documents.map(|(_, set)| set.contains(shingle)).collect()
    }

    /// Returns the minimum of every document under a permutation: its first shingle in that order.
    pub fn find_minima<'a>(&self, permutation: &'a [String]) -> Vec<&'a str> {
        let first = |set: &HashSet<String>| {
            let found = permutation.iter().find(|shingle| set.contains(*shingle));
            &**found.expect("a permutation has every shingle, and no set is empty")
        };
        self.documents.iter().map(|(_, set)| first(set)).collect()
    }

    /// Returns the similarity of every pair of documents, in the order in which they are given.
    pub fn compare_columns(&self) -> Vec<ColumnSimilarity> {
        let minima: Vec<_> = self
            .permutations
            .iter()
            .map(|order| self.find_minima(order))
            .collect();
        let compare = |a: usize, b: usize| ColumnSimilarity {
            documents: (a, b),
            equal_minima: minima.iter().filter(|of| of[a] == of[b]).count(),
            jaccard: self.jaccard_of_columns(a, b),
        };
        let count = self.documents.len();
        (0..count)
            .flat_map(|a| (a + 1..count).map(move |b| compare(a, b)))
            .collect()
    }

    fn jaccard_of_columns(&self, a: usize, b: usize) -> f64 {
        let numbers: HashMap<&str, u64> = (self.permutations.iter().flatten())
            .map(|shingle| &**shingle)
            .zip(0..)
            .collect();
        let features = |at: usize| {
            let set = self.documents[at].1.iter();
            let mut features: Vec<u64> = set.map(|shingle| numbers[&**shingle]).collect();
            features.sort_unstable();
            features
        };
        jaccard_index(&features(a), &features(b)).get()
    }

    /// Returns the documents, the minima under every permutation, and the similarities of all pairs.
    pub fn to_json(&self) -> Value {
        let names: Vec<_> = self.document_names().collect();
        let permutation = |order: &Vec<String>| {
            let rows = order.iter();
            let rows = rows.map(|shingle| {
                let row: Vec<u8> = self.table_row(shingle).into_iter().map(u8::from).collect();
                json!({ "shingle": shingle, "in": row })
            });
            json!({ "rows": rows.collect::<Vec<_>>(), "minima": self.find_minima(order) })
        };
        let pair = |columns: &ColumnSimilarity| {
            json!({
                "a": names[columns.documents.0],
                "b": names[columns.documents.1],
                "equal_minima": columns.equal_minima,
                "estimate": columns.equal_minima as f64 / self.permutations.len() as f64,
                "jaccard": columns.jaccard,
            })
        };
        json!({
            "documents": names,
            "permutations": self.permutations.iter().map(permutation).collect::<Vec<_>>(),
            "pairs": self.compare_columns().iter().map(pair).collect::<Vec<_>>(),
        })
    }
}

fn check_count(what: &str, count: usize) -> Result<(), String> {
    match count {
        0 => Err(format!("there are no {what}: give at least one")),
        1..=MOST_ENTRIES => Ok(()),
        _ => Err(format!(
            "{count} {what} are more than the {MOST_ENTRIES} of a table: give fewer"
        )),
    }
}

fn parse_named_set(given: &str) -> Result<(String, HashSet<String>), String> {
    let (name, shingles) = given
        .split_once('=')
        .filter(|(name, shingles)| !name.trim().is_empty() && !shingles.trim().is_empty())
        .ok_or_else(|| {
            format!(
                "'{given}' is not of the form NAME=SHINGLE SHINGLE …: give, for example, S1='a d'"
            )
        })?;
    let name = name.trim().to_owned();
    let mut set = HashSet::new();
    for shingle in shingles.split_whitespace() {
        if !set.insert(shingle.to_owned()) {
            return Err(format!(
                "the document '{name}' has the shingle '{shingle}' twice: a set has it once"
            ));
        }
    }
    Ok((name, set))
}

/// Parses a permutation of `all` shingles, which ascend.
fn parse_permutation(given: &str, all: &[&String]) -> Result<Vec<String>, String> {
    let order: Vec<String> = given.split_whitespace().map(str::to_owned).collect();
    let mut seen = HashSet::new();
    for shingle in &order {
        if all.binary_search(&shingle).is_err() {
            return Err(format!(
                "the permutation '{given}' has the shingle '{shingle}', which no document has: leave \
                 it out"
            ));
        }
        if !seen.insert(shingle) {
            return Err(format!(
                "the permutation '{given}' has the shingle '{shingle}' twice: list each once"
            ));
        }
    }
    match all.iter().find(|shingle| !seen.contains(**shingle)) {
        Some(missing) => Err(format!(
            "the permutation '{given}' lacks the shingle '{missing}': list all {} shingles of the \
             documents",
            all.len()
        )),
        None => Ok(order),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(documents: &[&str], permutations: &[&str]) -> Result<ShingleSets, String> {
        let owned = |all: &[&str]| all.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        ShingleSets::parse_sets(&owned(documents), &owned(permutations))
    }

    const SAMPLE_SETS: [&str; 4] = ["S1=a d", "S2=c", "S3=b d e", "S4=a c d"];

    #[test]
    fn article_example_has_its_minima() {
        let sets = parse(&SAMPLE_SETS, &["b e a d c"]).unwrap();
        assert_eq!(
            sets.find_minima(&sets.permutations()[0]),
            ["a", "c", "b", "a"]
        );
        assert_eq!(sets.table_row("d"), [true, false, true, true]);
        let pairs = sets.compare_columns();
        assert_eq!(pairs.len(), 6);
        assert_eq!((pairs[2].documents, pairs[2].equal_minima), ((0, 3), 1));
        assert!((pairs[2].jaccard - 2.0 / 3.0).abs() < 1e-12);
    }

    /// The share of equal minima over all 120 orders of five shingles is the Jaccard index.
    #[test]
    fn all_permutations_give_the_jaccard_index() {
        fn append_orders(left: &[&str], order: &str, into: &mut Vec<String>) {
            if left.is_empty() {
                into.push(order.to_owned());
            }
            for at in 0..left.len() {
                let rest = [&left[..at], &left[at + 1..]].concat();
                append_orders(&rest, &format!("{order} {}", left[at]), into);
            }
        }
        let mut orders = Vec::new();
        append_orders(&["a", "b", "c", "d", "e"], "", &mut orders);
        let mut equal = vec![0; 6];
        for some in orders.chunks(MOST_ENTRIES) {
            let some: Vec<&str> = some.iter().map(|order| &**order).collect();
            let sets = parse(&SAMPLE_SETS, &some).unwrap();
            for (count, pair) in equal.iter_mut().zip(sets.compare_columns()) {
                *count += pair.equal_minima;
            }
        }
        let sets = parse(&SAMPLE_SETS, &["a b c d e"]).unwrap();
        for (count, pair) in equal.into_iter().zip(sets.compare_columns()) {
            assert!((count as f64 / 120.0 - pair.jaccard).abs() < 1e-12);
        }
    }

    #[test]
    fn malformed_tables_name_the_value() {
        let many: Vec<String> = (0..=MOST_ENTRIES).map(|at| format!("d{at}=a")).collect();
        let many: Vec<&str> = many.iter().map(|set| &**set).collect();
        let long: String = (0..=MOST_ENTRIES).map(|at| format!(" s{at}")).collect();
        let long = format!("d={long}");
        for (documents, permutations, message) in [
            (&[][..], &["a"][..], "no documents"),
            (&["S1=a"], &[], "no permutations"),
            (&["S1"], &["a"], "'S1' is not of the form"),
            (&["S1= "], &["a"], "is not of the form"),
            (&["=a"], &["a"], "is not of the form"),
            (&["S1=a a"], &["a"], "'a' twice"),
            (&["S1=a", "S1=a"], &["a"], "'S1' is given twice"),
            (&["S1=a b"], &["a"], "lacks the shingle 'b'"),
            (&["S1=a"], &["a a"], "'a' twice"),
            (&["S1=a"], &["a z"], "'z', which no document has"),
            (&many[..], &["a"], "101 documents"),
            (&[&*long], &["s0"], "101 shingles"),
        ] {
            let error = parse(documents, permutations).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }
}
