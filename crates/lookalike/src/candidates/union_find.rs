//! Sets of documents that pairs connect.

use super::buckets::DocumentRank;

/// A union-find structure. The root of a set is its smallest member.
pub(crate) struct UnionFind {
    parent: Vec<DocumentRank>,
}

impl UnionFind {
    /// Returns `members` sets of one member each. Panics if there are 2³² or more.
    pub(crate) fn with_members(members: usize) -> Self {
        let members = DocumentRank::try_from(members).expect("at most 2^32 - 1 documents");
        Self {
            parent: (0..members).collect(),
        }
    }

    pub(crate) fn find_first(&self, mut rank: DocumentRank) -> DocumentRank {
        while self.parent[rank as usize] != rank {
            rank = self.parent[rank as usize];
        }
        rank
    }

    pub(crate) fn is_joined(&self, a: DocumentRank, b: DocumentRank) -> bool {
        self.find_first(a) == self.find_first(b)
    }

    pub(crate) fn union_sets(&mut self, a: DocumentRank, b: DocumentRank) {
        let (a, b) = (self.find_root(a), self.find_root(b));
        self.parent[a.max(b) as usize] = a.min(b);
    }

    /// Returns the smallest member of a set. Halves the path to it, so that later look-ups are shorter.
    pub(crate) fn find_root(&mut self, mut rank: DocumentRank) -> DocumentRank {
        while self.parent[rank as usize] != rank {
            let grandparent = self.parent[self.parent[rank as usize] as usize];
            self.parent[rank as usize] = grandparent;
            rank = grandparent;
        }
        rank
    }
}

impl UnionFind {
    /// Number of members of all sets.
    pub(crate) fn member_count(&self) -> usize {
        self.parent.len()
    }

    /// Returns the smallest member of the set of every member.
    pub(crate) fn into_roots(mut self) -> Vec<DocumentRank> {
        // A parent is smaller than its member, so it is already a root when its member's turn comes.
        for rank in 0..self.parent.len() {
            self.parent[rank] = self.parent[self.parent[rank] as usize];
        }
        self.parent
    }
}
