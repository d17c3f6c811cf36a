//! The third step: gives each document the groups that need its text, and finds repeated ids.

use lookalike_io::error::{Error, Result};

use crate::passage_shuffle::DocumentKey;
use crate::passage_shuffle::blocks::{BlockContent, GroupMember, damaged_block, decode_block};

/// A document of a candidate pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberDocument {
    /// Its key.
    pub key: DocumentKey,
    /// Its id.
    pub id: String,
    /// Documents whose groups need its text, ascending. Its own key is among them if it has a group.
    pub groups: Vec<DocumentKey>,
}

/// The findings of some parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GatheredMembers {
    /// Documents of candidate pairs.
    pub documents: Vec<MemberDocument>,
    /// Ids that several documents have.
    pub repeated_ids: Vec<String>,
    /// Ids that several known documents have.
    pub repeated_known_ids: Vec<String>,
    /// Searched documents with at least one boilerplate gram.
    pub with_boilerplate: u64,
}

/// Receives all ids, members of groups and documents with boilerplate of some parts.
///
/// Memory: 16 bytes for each member, 32 and the id for each document, and as much again for the findings.
#[derive(Debug, Default)]
pub struct MemberGatherer {
    ids: Vec<(DocumentKey, String)>,
    members: Vec<GroupMember>,
    with_boilerplate: Vec<DocumentKey>,
}

impl MemberGatherer {
    /// Returns a step without ids.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a block of ids of [`GramScatterer`](super::GramScatterer), or one of
    /// [`CandidateBlocks`](super::CandidateBlocks).
    ///
    /// # Errors
    /// If the block is damaged or holds grams.
    pub fn add_block(&mut self, block: &[u8]) -> Result<()> {
        match decode_block(block)? {
            BlockContent::Ids(ids) => self.ids.extend(ids),
            BlockContent::Members(members) => self.members.extend(members),
            BlockContent::Boilerplate(documents) => self.with_boilerplate.extend(documents),
            BlockContent::Postings(_) => return Err(damaged_block()),
        }
        Ok(())
    }

    /// Returns the findings. Members are in the order of their keys.
    ///
    /// # Errors
    /// If two different ids have the same hash of 63 bits, or if blocks are missing.
    pub fn finish_gathering(mut self) -> Result<GatheredMembers> {
        let mut found = GatheredMembers::default();
        self.ids.sort_unstable();
        self.move_repeated_ids(&mut found)?;
        self.with_boilerplate.sort_unstable();
        self.with_boilerplate.dedup();
        found.with_boilerplate = self.with_boilerplate.len() as u64;
        self.members.sort_unstable();
        self.members.dedup();
        let mut ids = self.ids.into_iter();
        for members in self.members.chunk_by(|a, b| a.document == b.document) {
            let key = members[0].document;
            let (_, id) = ids.find(|entry| entry.0 == key).ok_or_else(damaged_block)?;
            found.documents.push(MemberDocument {
                key,
                id,
                groups: members.iter().map(|member| member.group).collect(),
            });
        }
        Ok(found)
    }

    /// Moves every repeated id to the findings, and keeps each id once.
    fn move_repeated_ids(&mut self, found: &mut GatheredMembers) -> Result<()> {
        for same_key in self.ids.chunk_by(|a, b| a.0 == b.0) {
            let [(key, id), others @ ..] = same_key else {
                continue;
            };
            if let Some((_, other)) = others.iter().find(|entry| entry.1 != *id) {
                return Err(equal_hashes_error(id, other));
            }
            if !others.is_empty() {
                let repeated = if key.is_known() {
                    &mut found.repeated_known_ids
                } else {
                    &mut found.repeated_ids
                };
                repeated.push(id.clone());
            }
        }
        self.ids.dedup();
        Ok(())
    }
}

/// Among a hundred million documents, two ids have the same hash with a probability of one in two thousand.
fn equal_hashes_error(id: &str, other: &str) -> Error {
    Error::limit_error(format!(
        "the ids '{id}' and '{other}' have the same hash, so their documents cannot be told apart in a shuffle: give \
         one of them another id"
    ))
}
