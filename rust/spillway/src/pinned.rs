use std::fmt;
use std::ops::{Deref, DerefMut};

use crate::error::Result;
use crate::range::Extent;

/// Elements that stay in memory while this lives; others may read them meanwhile.
///
/// All pins together may hold half of the memory. What is used often stays by itself: pin what is used seldom and
/// must be quick then, or what a scan would wash out.
pub struct PinnedSlice<'a, T> {
    elements: &'a [T],
}

/// Elements that stay in memory while this lives, and that nobody else reaches meanwhile.
pub struct PinnedSliceMut<'a, T> {
    elements: &'a mut [T],
}

impl<'a, T> PinnedSlice<'a, T> {
    /// The elements have to lie in managed memory (`EINVAL`).
    pub(crate) fn new(elements: &'a [T]) -> Result<Self> {
        Extent::of(elements).pin()?;
        Ok(PinnedSlice { elements })
    }
}

impl<'a, T> PinnedSliceMut<'a, T> {
    /// The elements have to lie in managed memory (`EINVAL`).
    pub(crate) fn new(elements: &'a mut [T]) -> Result<Self> {
        Extent::of(elements).pin()?;
        Ok(PinnedSliceMut { elements })
    }
}

impl<T> Deref for PinnedSlice<'_, T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        self.elements
    }
}

impl<T> Deref for PinnedSliceMut<'_, T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        self.elements
    }
}

impl<T> DerefMut for PinnedSliceMut<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        self.elements
    }
}

// Unpinning fails in a forked child only, where nothing is pinned.
impl<T> Drop for PinnedSlice<'_, T> {
    fn drop(&mut self) {
        let _ = Extent::of(self.elements).unpin();
    }
}

impl<T> Drop for PinnedSliceMut<'_, T> {
    fn drop(&mut self) {
        let _ = Extent::of(self.elements).unpin();
    }
}

impl<T: fmt::Debug> fmt::Debug for PinnedSlice<'_, T> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.elements.fmt(to)
    }
}

impl<T: fmt::Debug> fmt::Debug for PinnedSliceMut<'_, T> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.elements.fmt(to)
    }
}
