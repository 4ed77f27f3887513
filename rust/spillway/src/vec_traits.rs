//! What makes a `SpillVec` one of the collections: conversions, iteration, comparison.
use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::mem::size_of;
use std::ptr::{self, NonNull};

use crate::{Region, SpillVec};

impl<T> Default for SpillVec<T> {
    fn default() -> Self {
        SpillVec::new()
    }
}

impl<T: Clone> Clone for SpillVec<T> {
    fn clone(&self) -> Self {
        let mut copy = SpillVec::with_capacity(self.len());
        copy.extend_from_slice(self);
        copy
    }
}

impl<T: fmt::Debug> fmt::Debug for SpillVec<T> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().fmt(to)
    }
}

macro_rules! equal_to {
    ($($other:ty $(, $length:ident)?;)*) => {
        $(impl<T: PartialEq<U>, U $(, const $length: usize)?> PartialEq<$other> for SpillVec<T> {
            fn eq(&self, other: &$other) -> bool {
                self.as_slice() == &other[..]
            }
        })*
    };
}
equal_to!(SpillVec<U>; Vec<U>; [U]; &[U]; [U; N], N;);

impl<T: Eq> Eq for SpillVec<T> {}

impl<T> AsRef<[T]> for SpillVec<T> {
    fn as_ref(&self) -> &[T] {
        self
    }
}

impl<T> AsMut<[T]> for SpillVec<T> {
    fn as_mut(&mut self) -> &mut [T] {
        self
    }
}

impl<T: Clone> From<&[T]> for SpillVec<T> {
    fn from(elements: &[T]) -> Self {
        let mut made = SpillVec::new();
        made.extend_from_slice(elements);
        made
    }
}

impl<T> Extend<T> for SpillVec<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, elements: I) {
        let elements = elements.into_iter();
        self.reserve(elements.size_hint().0);
        elements.for_each(|element| self.push(element));
    }
}

impl<'a, T: Copy + 'a> Extend<&'a T> for SpillVec<T> {
    fn extend<I: IntoIterator<Item = &'a T>>(&mut self, elements: I) {
        self.extend(elements.into_iter().copied());
    }
}

impl<T> FromIterator<T> for SpillVec<T> {
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Self {
        let mut made = SpillVec::new();
        made.extend(elements);
        made
    }
}

/// Bytes that are written are added at the end.
impl io::Write for SpillVec<u8> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.try_reserve(bytes.len())?;
        self.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a, T> IntoIterator for &'a SpillVec<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a, T> IntoIterator for &'a mut SpillVec<T> {
    type Item = &'a mut T;
    type IntoIter = std::slice::IterMut<'a, T>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

impl<T> IntoIterator for SpillVec<T> {
    type Item = T;
    type IntoIter = IntoIter<T>;
    fn into_iter(self) -> IntoIter<T> {
        let (memory, data, length) = self.into_parts();
        IntoIter { _memory: memory, data, from: 0, to: length, owns: PhantomData }
    }
}

/// The elements of a [`SpillVec`], one after the other; those that are not taken are dropped.
pub struct IntoIter<T> {
    // Elements `from` to `to` are values.
    _memory: Option<Region>,
    data: NonNull<T>,
    from: usize,
    to: usize,
    owns: PhantomData<T>,
}

// SAFETY: it owns its elements, as the vector did.
unsafe impl<T: Send> Send for IntoIter<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for IntoIter<T> {}

impl<T> IntoIter<T> {
    fn place(&self, index: usize) -> *mut T {
        if size_of::<T>() == 0 {
            self.data.as_ptr()
        } else {
            self.data.as_ptr().wrapping_add(index)
        }
    }
}

impl<T> Iterator for IntoIter<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        if self.from == self.to {
            return None;
        }
        self.from += 1;
        // SAFETY: a value, which is none of the iterator's any more.
        Some(unsafe { self.place(self.from - 1).read() })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.to - self.from, Some(self.to - self.from))
    }
}

impl<T> DoubleEndedIterator for IntoIter<T> {
    fn next_back(&mut self) -> Option<T> {
        if self.from == self.to {
            return None;
        }
        self.to -= 1;
        // SAFETY: a value, which is none of the iterator's any more.
        Some(unsafe { self.place(self.to).read() })
    }
}

impl<T> ExactSizeIterator for IntoIter<T> {}
impl<T> std::iter::FusedIterator for IntoIter<T> {}

impl<T> Drop for IntoIter<T> {
    fn drop(&mut self) {
        let rest = ptr::slice_from_raw_parts_mut(self.place(self.from), self.to - self.from);
        self.from = self.to;
        // SAFETY: they were values, and are none of the iterator's any more. The region goes afterwards.
        unsafe { ptr::drop_in_place(rest) };
    }
}

impl<T: fmt::Debug> fmt::Debug for IntoIter<T> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: what is left are values.
        unsafe { std::slice::from_raw_parts(self.place(self.from), self.to - self.from) }.fmt(to)
    }
}
