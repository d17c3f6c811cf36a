//! Weights of kept documents by the number of documents that they stand for.

use std::path::Path;

use lookalike_io::error::{Error, Result, display_path};

/// Largest size of a file of weights in bytes.
const LARGEST_FILE: u64 = 16 << 20;

/// Decimal places of a weight. Weights are rounded, so that they do not depend on the machine.
const PLACES: f64 = 1e6;

/// The way in which the weight of a kept document follows from the number of documents that it stands for.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum CopyWeight {
    /// 1 + the natural logarithm of the number.
    #[default]
    Logarithm,
    /// The square root of the number.
    SquareRoot,
    /// A step function.
    Table(WeightTable),
}

/// A step function from numbers of copies to weights.
#[derive(Debug, Clone, PartialEq)]
pub struct WeightTable {
    /// Numbers of copies, ascending from 1, with their weights.
    steps: Vec<(u64, f64)>,
}

impl CopyWeight {
    /// Returns the rule `log` or `sqrt`, or that of a file.
    ///
    /// # Errors
    /// If the file cannot be read or is not a table of weights.
    pub fn from_name_or_file(name: &str) -> Result<Self> {
        match name {
            "log" => Ok(Self::Logarithm),
            "sqrt" => Ok(Self::SquareRoot),
            path => WeightTable::read_file(Path::new(path)).map(Self::Table),
        }
    }

    /// Returns the weight of a document that stands for `copies` documents, from 1, rounded to six decimal places.
    pub fn weight_of(&self, copies: u64) -> f64 {
        let weight = match self {
            Self::Logarithm => 1.0 + (copies as f64).ln(),
            Self::SquareRoot => (copies as f64).sqrt(),
            Self::Table(table) => return table.weight_of(copies),
        };
        (weight * PLACES).round() / PLACES
    }
}

impl WeightTable {
    /// Makes a table of numbers of copies with their weights.
    ///
    /// # Errors
    /// A phrase that says why the steps are no table: they are not ascending, do not begin at 1, or a weight is no finite
    /// number of at least 0.
    pub fn from_steps(steps: Vec<(u64, f64)>) -> Result<Self, String> {
        match steps.first() {
            None => return Err("it has no weight: give that of 1 copy at least".to_owned()),
            Some(&(1, _)) => {}
            Some(&(first, _)) => {
                return Err(format!(
                    "it begins at {first} copies: begin with 1, because a document without copies needs a weight too"
                ));
            }
        }
        if let Some(pair) = steps.windows(2).find(|pair| pair[0].0 >= pair[1].0) {
            return Err(format!(
                "{} copies come after {}: order the numbers of copies, and give each once",
                pair[1].0, pair[0].0
            ));
        }
        let is_weight = |weight: f64| weight.is_finite() && weight >= 0.0;
        match steps.iter().find(|&&(_, weight)| !is_weight(weight)) {
            Some((copies, weight)) => Err(format!(
                "the weight of {copies} copies is {weight}: give a finite number of at least 0"
            )),
            None => Ok(Self { steps }),
        }
    }

    fn read_file(path: &Path) -> Result<Self> {
        let failed = |reason: &dyn std::fmt::Display| {
            Error::usage_error(format!(
                "the table of weights {}: {reason}; give log, sqrt, or a file with a number of copies and a weight in \
                 each line, separated by a tab",
                display_path(path)
            ))
        };
        let bytes = std::fs::metadata(path)
            .map_err(|cause| failed(&cause))?
            .len();
        if bytes > LARGEST_FILE {
            return Err(failed(&format!(
                "it has {bytes} bytes, and at most {LARGEST_FILE} are read"
            )));
        }
        let text = std::fs::read_to_string(path).map_err(|cause| failed(&cause))?;
        let steps = parse_steps(&text).map_err(|reason| failed(&reason))?;
        Self::from_steps(steps).map_err(|reason| failed(&reason))
    }

    fn weight_of(&self, copies: u64) -> f64 {
        let after = self.steps.partition_point(|&(from, _)| from <= copies);
        self.steps[after.saturating_sub(1)].1
    }
}

/// Parses lines of a number of copies and a weight. The first line can have the names of the columns.
fn parse_steps(text: &str) -> Result<Vec<(u64, f64)>, String> {
    let mut steps = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.trim_end_matches('\r');
        if line.is_empty() || at == 0 && line == "copies\tweight" {
            continue;
        }
        let step = line.split_once('\t').and_then(|(copies, weight)| {
            Some((copies.trim().parse().ok()?, weight.trim().parse().ok()?))
        });
        steps.push(step.ok_or_else(|| {
            let shown: String = line.chars().take(40).collect();
            format!("line {} is '{shown}'", at + 1)
        })?);
    }
    Ok(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_grow_with_copies() {
        assert_eq!(CopyWeight::Logarithm.weight_of(1), 1.0);
        assert_eq!(CopyWeight::Logarithm.weight_of(2), 1.693147);
        assert_eq!(CopyWeight::SquareRoot.weight_of(9), 3.0);
        let table = WeightTable::from_steps(vec![(1, 1.0), (3, 2.5), (10, 0.0)]).unwrap();
        let table = CopyWeight::Table(table);
        for (copies, weight) in [(1, 1.0), (2, 1.0), (3, 2.5), (9, 2.5), (10, 0.0), (11, 0.0)] {
            assert_eq!(table.weight_of(copies), weight, "{copies}");
        }
    }

    #[test]
    fn tables_are_checked() {
        let parse = |text: &str| parse_steps(text).and_then(WeightTable::from_steps);
        assert!(parse("copies\tweight\n1\t1\n2\t1.5\r\n").is_ok());
        for (text, said) in [
            ("", "no weight"),
            ("2\t1\n", "begins at 2"),
            ("1\t1\n3\t2\n3\t2\n", "3 copies come after 3"),
            ("1\tNaN\n", "finite"),
            ("1\t-1\n", "at least 0"),
            ("1 1\n", "line 1"),
            ("1\t1\ncopies\tweight\n", "line 2"),
        ] {
            let message = parse(text).unwrap_err();
            assert!(message.contains(said), "{text:?}: {message}");
        }
    }
}
