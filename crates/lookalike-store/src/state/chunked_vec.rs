//! A chunked vector: growth never moves elements, so it never stalls readers.
//!
//! Cost: at most one chunk of unused memory, and one more memory access per read.

/// Elements of a chunk.
const CHUNK_LENGTH: usize = 1 << 12;

/// A chunked vector; see the [module](self).
#[derive(Debug)]
pub(crate) struct ChunkedVec<T> {
    /// Chunks; all but the last are full.
    chunks: Vec<Vec<T>>,
}

impl<T> Default for ChunkedVec<T> {
    fn default() -> Self {
        Self { chunks: Vec::new() }
    }
}

impl<T> ChunkedVec<T> {
    pub(crate) fn len(&self) -> usize {
        let last = self.chunks.last().map_or(0, Vec::len);
        self.chunks.len().saturating_sub(1) * CHUNK_LENGTH + last
    }

    pub(crate) fn push(&mut self, value: T) {
        match self
            .chunks
            .last_mut()
            .filter(|leaf| leaf.len() < CHUNK_LENGTH)
        {
            Some(leaf) => leaf.push(value),
            None => self.chunks.push(vec![value]),
        }
    }

    pub(crate) fn get(&self, at: usize) -> Option<&T> {
        self.chunks.get(at / CHUNK_LENGTH)?.get(at % CHUNK_LENGTH)
    }

    pub(crate) fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        self.chunks
            .get_mut(at / CHUNK_LENGTH)?
            .get_mut(at % CHUNK_LENGTH)
    }

    /// Returns bytes of memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        let values: usize = self.chunks.iter().map(Vec::capacity).sum();
        size_of::<T>() * values + size_of::<Vec<T>>() * self.chunks.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_their_places() {
        let mut chunks = ChunkedVec::default();
        for at in 0..2 * CHUNK_LENGTH + 2 {
            assert_eq!((chunks.len(), chunks.get(at)), (at, None));
            chunks.push(at);
            *chunks.get_mut(at / 2).unwrap() += 1;
        }
        let added = |at: usize| 2.min((2 * CHUNK_LENGTH + 2).saturating_sub(2 * at));
        assert!((0..chunks.len()).all(|at| chunks.get(at) == Some(&(at + added(at)))));
        assert!(chunks.get_mut(chunks.len()).is_none());
        let least = chunks.len() * size_of::<usize>();
        assert!((least..2 * least).contains(&chunks.memory_bytes()));
    }
}
