//! Typed views of large memory, either owned or mapped from a file.

use std::io;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use bytemuck::Pod;

use crate::arch::{CacheLine, MemoryMut, ReadOnlyMemory};
use crate::error::{Error, ErrorKind, Result};

/// Read-only values.
#[derive(Clone, Debug)]
pub(super) struct SegmentColumn<T> {
    memory: Arc<ReadOnlyMemory>,
    from: usize,
    bytes: usize,
    values: PhantomData<T>,
}

impl<T: Pod> SegmentColumn<T> {
    /// Creates a view of `bytes` bytes from `from` on, which must be aligned for the type and hold
    /// whole values.
    pub(super) fn new(memory: &Arc<ReadOnlyMemory>, from: usize, bytes: usize) -> Self {
        Self {
            memory: Arc::clone(memory),
            from,
            bytes,
            values: PhantomData,
        }
    }
}

impl<T: Pod> Deref for SegmentColumn<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        if self.bytes == 0 {
            return &[];
        }
        bytemuck::cast_slice(&self.memory[self.from..self.from + self.bytes])
    }
}

/// Owned values, zero at first.
#[derive(Debug)]
pub(super) struct ColumnMut<T> {
    memory: MemoryMut,
    values: PhantomData<T>,
}

impl<T: Pod> ColumnMut<T> {
    pub(super) fn allocate_zeroed(length: usize) -> Result<Self> {
        let memory = length
            .checked_mul(size_of::<T>())
            .ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))
            .and_then(MemoryMut::allocate_zeroed);
        let memory = memory.map_err(|error| {
            Error::new(
                ErrorKind::Limit,
                format!(
                    "cannot allocate memory for {length} values of {} bytes: {error}",
                    size_of::<T>()
                ),
            )
        })?;
        Ok(Self {
            memory,
            values: PhantomData,
        })
    }

    /// Makes the first `length` values read-only.
    pub(super) fn into_read_only(self, length: usize) -> Result<SegmentColumn<T>> {
        debug_assert!(length <= self.len());
        self.into_read_only_bytes(length * size_of::<T>())
    }

    /// Makes the first `lines` lines read-only. The memory is aligned for lines.
    pub(super) fn into_lines(self, lines: usize) -> Result<SegmentColumn<CacheLine>> {
        self.into_read_only_bytes(lines * size_of::<CacheLine>())
    }

    fn into_read_only_bytes<V: Pod>(self, bytes: usize) -> Result<SegmentColumn<V>> {
        let memory = self.memory.into_read_only().map_err(|error| {
            Error::new(ErrorKind::Limit, format!("cannot protect memory: {error}"))
        })?;
        Ok(SegmentColumn::new(&Arc::new(memory), 0, bytes))
    }
}

impl<T: Pod> Deref for ColumnMut<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        if self.memory.is_empty() {
            return &[];
        }
        bytemuck::cast_slice(&self.memory)
    }
}

impl<T: Pod> DerefMut for ColumnMut<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        if self.memory.is_empty() {
            return &mut [];
        }
        bytemuck::cast_slice_mut(&mut self.memory)
    }
}
