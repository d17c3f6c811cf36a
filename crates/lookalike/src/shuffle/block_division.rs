//! Division of blocks: divides the blocks of a portion among the parts that receive all equal keys.

use super::blocks::{self, ShuffleContent, ShuffleKeys, TextRecord};
use super::scatter::{ShuffleBlock, ShuffleBlockKind};
use super::{ShuffleSetup, part_of_hash};
use crate::candidates::BucketSide;
use crate::error::{Error, Result};
use crate::hash::value_hash;

/// Divides a block of [`DocumentScatterer`](super::DocumentScatterer) among `parts` parts.
///
/// The sketch of a long document goes to every part in which it has a key, which multiplies its size.
/// So blocks are divided when they are sent, and not before. [`FeatureOrder`](super::FeatureOrder)
/// makes keys of blocks of features instead.
///
/// # Errors
/// Fails if the block is damaged or one of features, or if there are no parts.
pub fn divide_block(setup: &ShuffleSetup, block: &[u8], parts: u32) -> Result<Vec<ShuffleBlock>> {
    refuse_no_parts(parts)?;
    let blocks = match blocks::decode_block(setup, block)? {
        ShuffleContent::Keys(keys) => spread_keys(setup, &keys, parts),
        ShuffleContent::Texts(texts) => {
            let part = |text: &TextRecord| part_of_hash(text.name.text_node().0, parts);
            let write = |texts: &[&TextRecord]| {
                let records = texts.iter();
                blocks::write_texts(
                    records.map(|record| (record.name, record.documents, record.first.as_slice())),
                )
            };
            divide_by_part(&texts, parts, part, write)
        }
        ShuffleContent::Ids(ids) => {
            let part = |id: &String| part_of_hash(value_hash(id.as_bytes()), parts);
            let write = |ids: &[&String]| blocks::encode_ids(ids.iter().map(|id| id.as_str()));
            divide_by_part(&ids, parts, part, write)
        }
        ShuffleContent::Features(_) => {
            return Err(Error::setting_error(
                "a block of features has no part number: make bucket keys from it first",
            ));
        }
    };
    let shuffle_block = |(part, block)| ShuffleBlock {
        kind: ShuffleBlockKind::Part,
        part,
        block,
    };
    Ok(blocks.into_iter().map(shuffle_block).collect())
}

pub(super) fn refuse_no_parts(parts: u32) -> Result<()> {
    if parts == 0 {
        return Err(Error::setting_error(
            "keys cannot be divided into 0 parts: give 1 or more",
        ));
    }
    Ok(())
}

fn divide_by_part<T>(
    all: &[T],
    parts: u32,
    part: impl Fn(&T) -> u32,
    write: impl Fn(&[&T]) -> Vec<u8>,
) -> Vec<(u32, Vec<u8>)> {
    let mut of_parts: Vec<Vec<&T>> = (0..parts).map(|_| Vec::new()).collect();
    all.iter()
        .for_each(|one| of_parts[part(one) as usize].push(one));
    let filled = (0..).zip(of_parts).filter(|(_, some)| !some.is_empty());
    filled.map(|(part, some)| (part, write(&some))).collect()
}

fn spread_keys(setup: &ShuffleSetup, keys: &ShuffleKeys, parts: u32) -> Vec<(u32, Vec<u8>)> {
    let empty = |_| ShuffleKeys::new(setup, keys.prefilters.layout(), keys.dense_action);
    let mut to: Vec<ShuffleKeys> = (0..parts).map(empty).collect();
    // The keys of a document are adjacent.
    for entries in keys.entries.chunk_by(|a, b| a.at == b.at) {
        let at = entries[0].at as usize;
        let mut of_document: Vec<_> = entries
            .iter()
            .map(|entry| (entry.key, entry.side))
            .collect();
        send_by_part(&mut of_document, &mut to, |to, keys_of_part| {
            to.push_document(keys.nodes[at], &keys.prefilters, at, keys_of_part);
        });
    }
    let filled = (0..).zip(to).filter(|(_, keys)| !keys.nodes.is_empty());
    filled
        .map(|(part, keys)| (part, keys.encode_block()))
        .collect()
}

/// Sorts the keys of a document, and calls `add` once for each part with the keys that belong to it.
pub(super) fn send_by_part(
    keys: &mut [(u64, BucketSide)],
    parts: &mut [ShuffleKeys],
    mut add: impl FnMut(&mut ShuffleKeys, &[(u64, BucketSide)]),
) {
    let count = parts.len() as u32;
    keys.sort_unstable();
    for keys in keys.chunk_by(|a, b| part_of_hash(a.0, count) == part_of_hash(b.0, count)) {
        add(&mut parts[part_of_hash(keys[0].0, count) as usize], keys);
    }
}
