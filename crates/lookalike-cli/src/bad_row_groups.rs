//! Bad rows grouped by their reason, so that a file of a million bad rows does not scroll everything else away.
//!
//! Reasons that differ in values alone are one group; see [`reason_pattern`]. Cost: one pass over the reason of each bad row; memory for at most [`MOST_GROUPS`] reasons.

use lookalike_io::source::reason_pattern;

/// Number of rows that are shown of each group.
const SHOWN_ROWS: u64 = 3;

/// Largest number of groups by reason. Rows with further reasons are one more group.
const MOST_GROUPS: usize = 8;

/// Bad rows counted by their reason.
#[derive(Debug, Default)]
pub(crate) struct BadRowGroups {
    groups: Vec<RowGroup>,
    /// Rows whose reason is none of the groups'.
    others: u64,
}

#[derive(Debug)]
struct RowGroup {
    pattern: String,
    rows: u64,
}

impl BadRowGroups {
    /// Counts a row. Returns `true` if it is one of the first of its group, which are shown.
    pub(crate) fn count_row(&mut self, reason: &str) -> bool {
        let pattern = reason_pattern(reason);
        let known = self
            .groups
            .iter()
            .position(|group| group.pattern == pattern);
        let rows = match known {
            Some(at) => &mut self.groups[at].rows,
            None if self.groups.len() == MOST_GROUPS => &mut self.others,
            None => {
                self.groups.push(RowGroup {
                    pattern: pattern.into_owned(),
                    rows: 1,
                });
                return true;
            }
        };
        *rows += 1;
        *rows <= SHOWN_ROWS
    }

    /// Returns the number of rows that are not shown and their reason, for each group that has such rows. `None` stands
    /// for further reasons.
    pub(crate) fn unshown_groups(&self) -> impl Iterator<Item = (u64, Option<&str>)> {
        let of_reasons = self.groups.iter();
        of_reasons
            .map(|group| (group.rows, Some(group.pattern.as_str())))
            .chain([(self.others, None)])
            .filter_map(|(rows, reason)| {
                let unshown = rows.checked_sub(SHOWN_ROWS).filter(|&rows| rows > 0)?;
                Some((unshown, reason))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_rows_of_each_reason_are_shown() {
        let mut groups = BadRowGroups::default();
        let shown = (0..500).filter(|row| groups.count_row(&format!("wrong {row}")));
        assert_eq!(shown.count(), 3);
        assert!(groups.count_row("other"));
        let unshown: Vec<_> = groups.unshown_groups().collect();
        assert_eq!(unshown, [(497, Some("wrong …"))]);
        for letter in 'a'..='z' {
            for _ in 0..10 {
                groups.count_row(&letter.to_string());
            }
        }
        assert_eq!(groups.unshown_groups().count(), 1 + (MOST_GROUPS - 2) + 1);
        let last = groups.unshown_groups().last();
        assert_eq!(
            last,
            Some((10 * (26 - (MOST_GROUPS as u64 - 2)) - SHOWN_ROWS, None))
        );
    }
}
