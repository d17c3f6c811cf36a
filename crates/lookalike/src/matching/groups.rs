//! Buckets: the documents that share a key, in compressed rows.

use std::ops::Range;

use rayon::prelude::*;

use crate::arch::prefetch;
use crate::error::{Error, Result};

/// The place of a document in the total order of a run.
pub(super) type Rank = u32;

/// A bucket key of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Keyed {
    pub(super) key: u64,
    pub(super) side: Side,
    pub(super) rank: Rank,
}

impl Keyed {
    /// Returns a key under which a document is a candidate for all others with the key.
    pub(super) fn full(key: u64, rank: Rank) -> Self {
        let side = Side::Full;
        Self { key, side, rank }
    }
}

/// The side of a bucket on which a document is. See [`Prefixes`](super::Prefixes).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Side {
    /// The document is a candidate for all others of the bucket.
    Full,
    /// The document is a candidate for those of the full side alone.
    Probing,
}

/// Buckets of documents, for every document its buckets, and for every bucket its neighbours: the
/// buckets whose members are candidates of its own members too.
///
/// ```text
/// members  | kept ... | (free) | not yet processed ... | next bucket
///          ^ start    ^ kept   ^ passed                ^ length
/// ```
///
/// Members are in ascending order. Deduplication moves the kept members of a bucket to its front. Kept
/// members are never more than processed ones, so this needs no other memory.
#[derive(Debug, Default)]
pub(super) struct Groups {
    members: Vec<Rank>,
    groups: Vec<Group>,
    of_start: Vec<u32>,
    of: Vec<u32>,
    /// Start of the neighbours of each bucket; empty if no bucket has any.
    near_start: Vec<u32>,
    near: Vec<u32>,
    /// Dense buckets, one bit each; empty if there are none.
    crowded: Vec<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Group {
    start: u32,
    /// Number of kept members at the front.
    kept: u32,
    /// Number of members that are processed.
    passed: u32,
    length: u32,
    meets: Meets,
}

/// The buckets whose members are candidates for the members of a bucket.
#[derive(Clone, Copy, Debug)]
enum Meets {
    /// The bucket itself.
    Own,
    /// The bucket itself and the next one: this is the full side of a key, and the next is the probing
    /// side.
    OwnAndNext,
    /// The previous bucket, which is the full side of their key.
    Previous,
}

impl Groups {
    /// Returns the number of buckets.
    pub(super) fn count(&self) -> usize {
        self.groups.len()
    }

    /// Returns the buckets of a document.
    pub(super) fn of(&self, rank: Rank) -> &[u32] {
        let at = rank as usize;
        &self.of[self.of_start[at] as usize..self.of_start[at + 1] as usize]
    }

    /// Returns the buckets that contain a document's candidates, by its own buckets and their
    /// neighbours.
    pub(super) fn around(&self, rank: Rank) -> impl Iterator<Item = u32> {
        self.of(rank).iter().flat_map(|&group| self.reach(group))
    }

    /// Returns the buckets that contain the candidates of a bucket's members, neighbours included.
    pub(super) fn reach(&self, group: u32) -> impl Iterator<Item = u32> {
        self.met_by(group).chain(self.near(group).iter().copied())
    }

    fn met_by(&self, group: u32) -> Range<u32> {
        match self.groups[group as usize].meets {
            Meets::Own => group..group + 1,
            Meets::OwnAndNext => group..group + 2,
            Meets::Previous => group - 1..group,
        }
    }

    /// Finds the dense buckets, whose members have more than `most` candidates by them. Returns `true`
    /// if there are any.
    pub(super) fn find_crowded(&mut self, most: usize) -> bool {
        let length = |group: u32| self.groups[group as usize].length as usize;
        let is_crowded = |&group: &u32| self.reach(group).map(length).sum::<usize>() > most;
        let found: Vec<u32> = (0..self.count() as u32).filter(is_crowded).collect();
        if !found.is_empty() {
            self.crowded = vec![0; self.count().div_ceil(64)];
        }
        for group in &found {
            self.crowded[*group as usize / 64] |= 1 << (group % 64);
        }
        !found.is_empty()
    }

    /// Returns the dense buckets.
    pub(super) fn crowded(&self) -> impl Iterator<Item = u32> {
        (0..self.count() as u32).filter(|&group| self.is_crowded(group))
    }

    /// Returns `true` if a bucket is dense.
    #[inline]
    pub(super) fn is_crowded(&self, group: u32) -> bool {
        let word = self.crowded.get(group as usize / 64);
        word.is_some_and(|word| word >> (group % 64) & 1 == 1)
    }

    /// Returns all members of a bucket. Valid as long as none is processed.
    pub(super) fn members(&self, group: u32) -> &[Rank] {
        let group = self.groups[group as usize];
        &self.members[group.start as usize..][..group.length as usize]
    }

    fn near(&self, group: u32) -> &[u32] {
        if self.near_start.is_empty() {
            return &[];
        }
        let at = group as usize;
        &self.near[self.near_start[at] as usize..self.near_start[at + 1] as usize]
    }

    /// Returns the kept members among the processed ones, ascending.
    pub(super) fn kept(&self, group: u32) -> &[Rank] {
        let group = self.groups[group as usize];
        &self.members[group.start as usize..][..group.kept as usize]
    }

    /// Returns the members of a bucket that are not processed yet, ascending.
    pub(super) fn ahead(&self, group: u32) -> &[Rank] {
        let group = self.groups[group as usize];
        &self.members[group.start as usize..][group.passed as usize..group.length as usize]
    }

    /// Prefetches the headers of a document's buckets.
    pub(super) fn fetch_heads(&self, rank: Rank) {
        let own = self.of(rank).iter();
        own.for_each(|&group| prefetch(&self.groups[group as usize]));
    }

    /// Prefetches the first members of the buckets that contain a document's candidates.
    pub(super) fn fetch_members(&self, rank: Rank) {
        for group in self.of(rank).iter().flat_map(|&own| self.met_by(own)) {
            prefetch(&self.members[self.groups[group as usize].start as usize]);
        }
    }

    /// Marks a document as processed in all its buckets. Documents must be processed in ascending
    /// order.
    pub(super) fn pass(&mut self, rank: Rank, kept: bool) {
        let at = rank as usize;
        for slot in self.of_start[at]..self.of_start[at + 1] {
            let group = &mut self.groups[self.of[slot as usize] as usize];
            debug_assert_eq!(self.members[(group.start + group.passed) as usize], rank);
            group.passed += 1;
            if kept {
                self.members[(group.start + group.kept) as usize] = rank;
                group.kept += 1;
            }
        }
    }
}

/// Builds buckets from batches of keys.
#[derive(Debug)]
pub(super) struct GroupsBuilder {
    groups: Groups,
    memberships: Vec<u32>,
    /// Pairs of buckets that are neighbours.
    near: Vec<(u32, u32)>,
}

impl GroupsBuilder {
    /// Returns a builder for documents of ranks below `documents`.
    pub(super) fn new(documents: usize) -> Self {
        let groups = Groups {
            of_start: vec![0; documents + 1],
            ..Groups::default()
        };
        Self {
            groups,
            memberships: Vec::new(),
            near: Vec::new(),
        }
    }

    /// Adds the buckets of a batch of keys, which it sorts. Buckets whose members `take` rejects are
    /// left out.
    pub(super) fn add(&mut self, keyed: &mut Vec<Keyed>, mut take: impl FnMut(&[Keyed]) -> bool) {
        sort(keyed);
        for group in keyed.chunk_by(|a, b| a.key == b.key) {
            let full = group.partition_point(|member| member.side == Side::Full);
            if group.len() > 1 && full > 0 && take(group) {
                self.push_sides(&group[..full], &group[full..]);
            }
        }
    }

    fn push_sides(&mut self, full: &[Keyed], probing: &[Keyed]) {
        let group = self.push(full.iter().map(|member| member.rank));
        if !probing.is_empty() {
            self.groups.groups[group as usize].meets = Meets::OwnAndNext;
            let next = self.push(probing.iter().map(|member| member.rank));
            self.groups.groups[next as usize].meets = Meets::Previous;
        }
    }

    /// Adds a bucket of documents, ascending, and returns its number.
    pub(super) fn push(&mut self, members: impl IntoIterator<Item = Rank>) -> u32 {
        let Groups {
            members: all,
            groups,
            of_start,
            ..
        } = &mut self.groups;
        let group = Group {
            start: all.len() as u32,
            kept: 0,
            passed: 0,
            length: 0,
            meets: Meets::Own,
        };
        let start = all.len();
        for member in members {
            // A document may have the same key twice.
            if all[start..].last() != Some(&member) {
                all.push(member);
                self.memberships.push(groups.len() as u32);
                of_start[member as usize + 1] += 1;
            }
        }
        let length = (all.len() - start) as u32;
        groups.push(Group { length, ..group });
        groups.len() as u32 - 1
    }

    /// Makes the members of two buckets candidates of each other. Neither may be one side of a key.
    pub(super) fn connect(&mut self, one: u32, other: u32) {
        let meets = [one, other].map(|group| self.groups.groups[group as usize].meets);
        debug_assert!(meets.iter().all(|meets| matches!(meets, Meets::Own)));
        self.near.push((one, other));
    }

    /// Returns the finished buckets.
    ///
    /// # Errors
    /// Fails if all buckets together have more than 2³² − 1 members.
    pub(super) fn build(self) -> Result<Groups> {
        if u32::try_from(self.memberships.len()).is_err() {
            return Err(Error::setting(format!(
                "{} bucket keys are shared by documents, more than the limit of {} per run: split \
                 the corpus, or give a higher threshold or a smaller distance",
                self.memberships.len(),
                u32::MAX
            )));
        }
        Ok(self.built())
    }

    fn built(self) -> Groups {
        let Self {
            mut groups,
            memberships,
            near,
        } = self;
        for at in 1..groups.of_start.len() {
            groups.of_start[at] += groups.of_start[at - 1];
        }
        let mut next = groups.of_start.clone();
        groups.of = vec![0; memberships.len()];
        for (&member, group) in groups.members.iter().zip(memberships) {
            let at = &mut next[member as usize];
            groups.of[*at as usize] = group;
            *at += 1;
        }
        drop(next);
        groups.set_near(&near);
        groups
    }
}

impl Groups {
    fn set_near(&mut self, pairs: &[(u32, u32)]) {
        if pairs.is_empty() {
            return;
        }
        // First the position of the next neighbour to write, and in the end the start of the next
        // bucket.
        let mut start = vec![0u32; self.groups.len() + 2];
        for &(one, other) in pairs {
            start[one as usize + 2] += 1;
            start[other as usize + 2] += 1;
        }
        for at in 2..start.len() {
            start[at] += start[at - 1];
        }
        self.near = vec![0; 2 * pairs.len()];
        for &(one, other) in pairs {
            for (group, neighbour) in [(one, other), (other, one)] {
                let at = &mut start[group as usize + 1];
                self.near[*at as usize] = neighbour;
                *at += 1;
            }
        }
        start.pop();
        self.near_start = start;
    }
}

/// Sorts by key, then side, then rank.
///
/// Keys are hashes. So one pass by their upper bits divides them into chunks of a few thousand, which
/// threads sort in parallel.
pub(super) fn sort(keyed: &mut Vec<Keyed>) {
    const BUCKET: usize = 4096;
    let bits = (keyed.len() / BUCKET).max(1).ilog2().min(12);
    if bits == 0 {
        keyed.sort_unstable();
        return;
    }
    let bucket = |keyed: &Keyed| (keyed.key >> (64 - bits)) as usize;
    let mut ends = vec![0; 1 << bits];
    keyed.iter().for_each(|keyed| ends[bucket(keyed)] += 1);
    let mut end = 0;
    ends.iter_mut()
        .for_each(|count| end += std::mem::replace(count, end));
    let mut sorted = vec![Keyed::full(0, 0); keyed.len()];
    for &keyed in keyed.iter() {
        let at = &mut ends[bucket(&keyed)];
        sorted[*at] = keyed;
        *at += 1;
    }
    let mut buckets = Vec::with_capacity(ends.len());
    let (mut rest, mut start) = (&mut sorted[..], 0);
    for end in ends {
        let (bucket, behind) = rest.split_at_mut(end - start);
        buckets.push(bucket);
        (rest, start) = (behind, end);
    }
    buckets.into_par_iter().for_each(<[Keyed]>::sort_unstable);
    *keyed = sorted;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(documents: usize, pairs: &[(u64, Rank)]) -> Groups {
        let mut builder = GroupsBuilder::new(documents);
        let mut keyed: Vec<_> = pairs
            .iter()
            .map(|&(key, rank)| Keyed::full(key, rank))
            .collect();
        builder.add(&mut keyed, |_| true);
        builder.built()
    }

    #[test]
    fn sorts_like_the_library() {
        for length in [0u32, 1, 100, 5000, 20_000, 70_000] {
            for distinct in [1, 50, 1 << 40] {
                let key = |rank: u32| crate::hash::mix(u64::from(rank) % distinct);
                let mut keyed: Vec<_> = (0..length)
                    .rev()
                    .map(|rank| Keyed {
                        side: [Side::Full, Side::Probing][rank as usize % 3 / 2],
                        ..Keyed::full(key(rank), rank)
                    })
                    .collect();
                let mut expected = keyed.clone();
                expected.sort_unstable();
                sort(&mut keyed);
                assert_eq!(keyed, expected);
            }
        }
    }

    #[test]
    fn only_shared_keys_make_groups_and_kept_members_move_to_the_front() {
        let mut groups = groups(5, &[(7, 3), (7, 0), (7, 1), (9, 2), (8, 1), (8, 4), (7, 3)]);
        assert_eq!(groups.of(0).len(), 1);
        assert_eq!(groups.of(1).len(), 2);
        assert!(groups.of(2).is_empty());
        let seven = groups.of(0)[0];
        assert_eq!(groups.ahead(seven), [0, 1, 3]);
        groups.pass(0, false);
        groups.pass(1, true);
        assert_eq!(groups.kept(seven), [1]);
        assert_eq!(groups.ahead(seven), [3]);
        groups.pass(2, true);
        groups.pass(3, true);
        assert_eq!(groups.kept(seven), [1, 3]);
        assert!(groups.ahead(seven).is_empty());
    }

    #[test]
    fn those_of_the_probing_side_do_not_meet_one_another() {
        let mut builder = GroupsBuilder::new(6);
        let sides = |key, full: &[Rank], probing: &[Rank]| {
            let full = full.iter().map(move |&rank| Keyed::full(key, rank));
            let probing = probing.iter().map(move |&rank| Keyed {
                side: Side::Probing,
                ..Keyed::full(key, rank)
            });
            full.chain(probing).collect::<Vec<_>>()
        };
        builder.add(&mut sides(7, &[1, 4], &[0, 3]), |_| true);
        builder.add(&mut sides(8, &[], &[1, 2, 5]), |_| true);
        builder.add(&mut sides(9, &[5], &[2]), |_| true);
        let mut groups = builder.built();
        let met = |groups: &Groups, rank| -> Vec<Rank> {
            let around = groups.around(rank);
            around
                .flat_map(|group| groups.ahead(group))
                .copied()
                .collect()
        };
        assert_eq!(met(&groups, 1), [1, 4, 0, 3]);
        assert_eq!(met(&groups, 3), [1, 4]);
        assert_eq!(met(&groups, 2), [5]);
        assert_eq!(met(&groups, 5), [5, 2]);
        (0..4).for_each(|rank| groups.pass(rank, true));
        let kept = groups.around(4).map(|group| groups.kept(group).to_vec());
        assert_eq!(kept.collect::<Vec<_>>(), [vec![1], vec![0, 3]]);
    }
}
