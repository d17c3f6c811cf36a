//! The shuffle: divides the blocks of a portion among the parts that receive all equal keys.

use super::blocks::{self, Block, Keys, TextRecord};
use super::scatter::{Parcel, ParcelKind};
use super::{Setup, part_of};
use crate::error::{Error, Result};
use crate::hash::value_hash;
use crate::matching::Side;

/// Divides a block of [`Scatter`](super::Scatter) among `parts` parts.
///
/// The sketch of a long document goes to every part in which it has a key, which multiplies its size.
/// So blocks are divided when they are sent, and not before. [`FeatureOrder`](super::FeatureOrder)
/// makes keys of blocks of features instead.
///
/// # Errors
/// Fails if the block is damaged or one of features, or if there are no parts.
pub fn spread(setup: &Setup, block: &[u8], parts: u32) -> Result<Vec<Parcel>> {
    refuse_no_parts(parts)?;
    let blocks = match blocks::read(setup, block)? {
        Block::Keys(keys) => spread_keys(setup, &keys, parts),
        Block::Texts(texts) => {
            let part = |text: &TextRecord| part_of(text.name.node().0, parts);
            let write = |texts: &[&TextRecord]| {
                let records = texts.iter();
                blocks::write_texts(records.map(|it| (it.name, it.documents, it.first.as_slice())))
            };
            by_part(&texts, parts, part, write)
        }
        Block::Ids(ids) => {
            let part = |id: &String| part_of(value_hash(id.as_bytes()), parts);
            let write = |ids: &[&String]| blocks::write_ids(ids.iter().map(|id| id.as_str()));
            by_part(&ids, parts, part, write)
        }
        Block::Features(_) => {
            return Err(Error::setting(
                "a block of features has no part number: make bucket keys from it first",
            ));
        }
    };
    let parcel = |(part, block)| Parcel {
        kind: ParcelKind::Part,
        part,
        block,
    };
    Ok(blocks.into_iter().map(parcel).collect())
}

pub(super) fn refuse_no_parts(parts: u32) -> Result<()> {
    if parts == 0 {
        return Err(Error::setting(
            "keys cannot be divided into 0 parts: give 1 or more",
        ));
    }
    Ok(())
}

fn by_part<T>(
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

fn spread_keys(setup: &Setup, keys: &Keys, parts: u32) -> Vec<(u32, Vec<u8>)> {
    let empty = |_| Keys::new(setup, keys.glances.layout(), keys.crowd);
    let mut to: Vec<Keys> = (0..parts).map(empty).collect();
    // The keys of a document are adjacent.
    for entries in keys.entries.chunk_by(|a, b| a.at == b.at) {
        let at = entries[0].at as usize;
        let mut of_document: Vec<_> = entries.iter().map(|it| (it.key, it.side)).collect();
        send(&mut of_document, &mut to, |to, keys_of_part| {
            to.push(keys.nodes[at], &keys.glances, at, keys_of_part);
        });
    }
    let filled = (0..).zip(to).filter(|(_, keys)| !keys.nodes.is_empty());
    filled.map(|(part, keys)| (part, keys.write())).collect()
}

/// Sorts the keys of a document, and calls `add` once for each part with the keys that belong to it.
pub(super) fn send(
    keys: &mut [(u64, Side)],
    parts: &mut [Keys],
    mut add: impl FnMut(&mut Keys, &[(u64, Side)]),
) {
    let count = parts.len() as u32;
    keys.sort_unstable();
    for keys in keys.chunk_by(|a, b| part_of(a.0, count) == part_of(b.0, count)) {
        add(&mut parts[part_of(keys[0].0, count) as usize], keys);
    }
}
