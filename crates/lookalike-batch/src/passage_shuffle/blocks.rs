//! Blocks of bytes that the steps exchange.
//!
//! ```text
//! postings      0 | per posting: hash of the gram (8), document (8), partition (8)
//!               1 | the same without partitions
//! ids           2 | per id: document (8), length (4), bytes
//! members       3 | per member: document (8), group (8)
//! boilerplate   4 | per document that has boilerplate: document (8)
//! ```
//!
//! All integers are little-endian, and a document is its key. A block lives no longer than its run, so the format may
//! change between versions.

use lookalike::byte_reader::{ByteReader, put_string};
use lookalike_io::error::{Error, Result};

use crate::passage_shuffle::DocumentKey;

/// A selected gram of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GramPosting {
    pub(super) hash: u64,
    pub(super) document: DocumentKey,
    /// Hash of the value that must be equal in both documents of a pair; 0 in all documents if none must.
    pub(super) partition: u64,
}

/// A document whose text a group needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct GroupMember {
    pub(super) document: DocumentKey,
    /// The document whose group it is.
    pub(super) group: DocumentKey,
}

/// The content of a block.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BlockContent {
    Postings(Vec<GramPosting>),
    Ids(Vec<(DocumentKey, String)>),
    Members(Vec<GroupMember>),
    Boilerplate(Vec<DocumentKey>),
}

const PARTITIONED_POSTINGS_TAG: u8 = 0;
const POSTINGS_TAG: u8 = 1;
const IDS_TAG: u8 = 2;
const MEMBERS_TAG: u8 = 3;
const BOILERPLATE_TAG: u8 = 4;

pub(super) fn damaged_block() -> Error {
    Error::engine_error(
        "a block of a passages run is truncated or damaged: give blocks that an earlier step of this run made",
    )
}

pub(super) fn encode_postings(postings: &[GramPosting], has_partitions: bool) -> Vec<u8> {
    let mut block = Vec::with_capacity(1 + 24 * postings.len());
    block.push(if has_partitions {
        PARTITIONED_POSTINGS_TAG
    } else {
        POSTINGS_TAG
    });
    for posting in postings {
        block.extend(posting.hash.to_le_bytes());
        block.extend(posting.document.0.to_le_bytes());
        if has_partitions {
            block.extend(posting.partition.to_le_bytes());
        }
    }
    block
}

pub(super) fn encode_ids(ids: &[(DocumentKey, String)]) -> Vec<u8> {
    let mut block = vec![IDS_TAG];
    for (document, id) in ids {
        block.extend(document.0.to_le_bytes());
        put_string(id, &mut block);
    }
    block
}

pub(super) fn encode_members(members: &[GroupMember]) -> Vec<u8> {
    let mut block = Vec::with_capacity(1 + 16 * members.len());
    block.push(MEMBERS_TAG);
    for member in members {
        block.extend(member.document.0.to_le_bytes());
        block.extend(member.group.0.to_le_bytes());
    }
    block
}

pub(super) fn encode_boilerplate(documents: &[DocumentKey]) -> Vec<u8> {
    let mut block = Vec::with_capacity(1 + 8 * documents.len());
    block.push(BOILERPLATE_TAG);
    block.extend(
        documents
            .iter()
            .flat_map(|document| document.0.to_le_bytes()),
    );
    block
}

/// Reads a block.
///
/// # Errors
/// If the block is damaged.
pub(super) fn decode_block(block: &[u8]) -> Result<BlockContent> {
    let mut reader = ByteReader::new(block);
    let content = match reader.read_u8() {
        Some(PARTITIONED_POSTINGS_TAG) => {
            read_all(reader, |reader| read_posting(reader, true)).map(BlockContent::Postings)
        }
        Some(POSTINGS_TAG) => {
            read_all(reader, |reader| read_posting(reader, false)).map(BlockContent::Postings)
        }
        Some(IDS_TAG) => read_all(reader, read_id).map(BlockContent::Ids),
        Some(MEMBERS_TAG) => read_all(reader, read_member).map(BlockContent::Members),
        Some(BOILERPLATE_TAG) => read_all(reader, read_key).map(BlockContent::Boilerplate),
        _ => None,
    };
    content.ok_or_else(damaged_block)
}

/// Reads entries up to the end; returns `None` if the last one is truncated.
fn read_all<T>(
    mut reader: ByteReader<'_>,
    read: impl Fn(&mut ByteReader<'_>) -> Option<T>,
) -> Option<Vec<T>> {
    let mut entries = Vec::new();
    while !reader.is_at_end() {
        entries.push(read(&mut reader)?);
    }
    Some(entries)
}

fn read_posting(reader: &mut ByteReader<'_>, has_partition: bool) -> Option<GramPosting> {
    Some(GramPosting {
        hash: reader.read_u64()?,
        document: read_key(reader)?,
        partition: if has_partition { reader.read_u64()? } else { 0 },
    })
}

fn read_id(reader: &mut ByteReader<'_>) -> Option<(DocumentKey, String)> {
    Some((read_key(reader)?, reader.read_string()?.to_owned()))
}

fn read_member(reader: &mut ByteReader<'_>) -> Option<GroupMember> {
    Some(GroupMember {
        document: read_key(reader)?,
        group: read_key(reader)?,
    })
}

fn read_key(reader: &mut ByteReader<'_>) -> Option<DocumentKey> {
    reader.read_u64().map(DocumentKey)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every_kind() -> Vec<(Vec<u8>, BlockContent)> {
        let key = DocumentKey;
        let posting = |hash, partition| GramPosting {
            hash,
            document: key(hash * 7),
            partition,
        };
        let postings = vec![posting(3, 5), posting(u64::MAX / 9, 0)];
        let plain: Vec<_> = postings
            .iter()
            .map(|known| posting(known.hash, 0))
            .collect();
        let ids = vec![(key(1), String::new()), (key(2), "船 7".to_owned())];
        let member = |document, group| GroupMember {
            document: key(document),
            group: key(group),
        };
        let members = vec![member(1, 2), member(2, 2)];
        let documents = vec![key(9), key(10)];
        vec![
            (
                encode_postings(&postings, true),
                BlockContent::Postings(postings),
            ),
            (
                encode_postings(&plain, false),
                BlockContent::Postings(plain),
            ),
            (encode_ids(&ids), BlockContent::Ids(ids)),
            (encode_members(&members), BlockContent::Members(members)),
            (
                encode_boilerplate(&documents),
                BlockContent::Boilerplate(documents),
            ),
        ]
    }

    #[test]
    fn blocks_round_trip() {
        for (block, content) in every_kind() {
            assert_eq!(decode_block(&block).unwrap(), content);
        }
    }

    #[test]
    fn damaged_blocks_are_refused() {
        for (block, content) in every_kind() {
            for length in 0..block.len() {
                // A block that ends between two entries is a shorter block.
                let decoded = decode_block(&block[..length]);
                assert!(decoded.is_err() || decoded.is_ok_and(|decoded| decoded != content));
            }
            assert!(decode_block(&block[..block.len() - 1]).is_err());
        }
        for block in [
            &[][..],
            &[5],
            &[IDS_TAG, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0xff],
        ] {
            let error = decode_block(block).unwrap_err().to_string();
            assert!(error.contains("truncated or damaged"), "{error}");
        }
    }
}
