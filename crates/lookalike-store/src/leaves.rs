//! A chunked vector: growth never moves elements, so it never stalls readers.
//!
//! Cost: at most one chunk of unused memory, and one more memory access per read.

/// Elements of a chunk.
const LEAF: usize = 1 << 12;

/// A chunked vector; see the [module](self).
#[derive(Debug)]
pub(crate) struct Leaves<T> {
    /// Chunks; all but the last are full.
    leaves: Vec<Vec<T>>,
}

impl<T> Default for Leaves<T> {
    fn default() -> Self {
        Self { leaves: Vec::new() }
    }
}

impl<T> Leaves<T> {
    pub(crate) fn len(&self) -> usize {
        let last = self.leaves.last().map_or(0, Vec::len);
        self.leaves.len().saturating_sub(1) * LEAF + last
    }

    pub(crate) fn push(&mut self, value: T) {
        match self.leaves.last_mut().filter(|leaf| leaf.len() < LEAF) {
            Some(leaf) => leaf.push(value),
            None => self.leaves.push(vec![value]),
        }
    }

    pub(crate) fn get(&self, at: usize) -> Option<&T> {
        self.leaves.get(at / LEAF)?.get(at % LEAF)
    }

    pub(crate) fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        self.leaves.get_mut(at / LEAF)?.get_mut(at % LEAF)
    }

    /// Returns bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        let values: usize = self.leaves.iter().map(Vec::capacity).sum();
        size_of::<T>() * values + size_of::<Vec<T>>() * self.leaves.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_where_they_were_put() {
        let mut leaves = Leaves::default();
        for at in 0..2 * LEAF + 2 {
            assert_eq!((leaves.len(), leaves.get(at)), (at, None));
            leaves.push(at);
            *leaves.get_mut(at / 2).unwrap() += 1;
        }
        let added = |at: usize| 2.min((2 * LEAF + 2).saturating_sub(2 * at));
        assert!((0..leaves.len()).all(|at| leaves.get(at) == Some(&(at + added(at)))));
        assert!(leaves.get_mut(leaves.len()).is_none());
        let least = leaves.len() * size_of::<usize>();
        assert!((least..2 * least).contains(&leaves.bytes()));
    }
}
