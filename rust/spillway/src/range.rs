//! Ranges of bytes as pointers, and what can be said of them.
use std::ops::{Bound, Range, RangeBounds};

use crate::error::{check, Result};
use crate::sys;

/// How a range will be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Advice {
    /// As everything: streams are found, neighbours come along where that has paid.
    Normal,
    /// From front to back: misses bring in 1 MiB.
    Sequential,
    /// Here and there: misses bring in their block alone.
    Random,
}

/// `range` within `0..length`. Panics when it is not, as slices do.
pub(crate) fn within(range: impl RangeBounds<usize>, length: usize) -> Range<usize> {
    let start = match range.start_bound() {
        Bound::Included(&start) => start,
        Bound::Excluded(&before) => before.checked_add(1).expect("a range that begins at all"),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(&last) => last.checked_add(1).expect("a range that ends at all"),
        Bound::Excluded(&end) => end,
        Bound::Unbounded => length,
    };
    assert!(start <= end, "the range begins at {start} and ends at {end}");
    assert!(end <= length, "the range ends at {end}, and there are {length}");
    start..end
}

/// Elements of managed memory that somebody has borrowed. An empty one is not known to the runtime.
pub(crate) struct Extent {
    address: *const u8,
    bytes: usize,
}

impl Extent {
    pub(crate) fn of<T>(slice: &[T]) -> Self {
        Extent { address: slice.as_ptr().cast(), bytes: std::mem::size_of_val(slice) }
    }

    fn call(&self, act: impl FnOnce(*const std::os::raw::c_void, usize) -> std::os::raw::c_int) -> Result<()> {
        if self.bytes == 0 {
            return Ok(());
        }
        check(act(self.address.cast(), self.bytes))
    }

    pub(crate) fn flush(&self) -> Result<()> {
        // SAFETY: the call reads and writes no memory of the program's; it refuses a range that is not managed.
        self.call(|address, bytes| unsafe { sys::spw_flush(address, bytes) })
    }

    pub(crate) fn sync(&self) -> Result<()> {
        // SAFETY: as `flush`.
        self.call(|address, bytes| unsafe { sys::spw_sync(address, bytes) })
    }

    pub(crate) fn prefetch(&self) -> Result<()> {
        // SAFETY: as `flush`.
        self.call(|address, bytes| unsafe { sys::spw_prefetch(address, bytes) })
    }

    pub(crate) fn pin(&self) -> Result<()> {
        // SAFETY: as `flush`: contents stay as they are.
        self.call(|address, bytes| unsafe { sys::spw_pin_range(address, bytes) })
    }

    pub(crate) fn unpin(&self) -> Result<()> {
        // SAFETY: as `flush`: without a pin the memory is there all the same.
        self.call(|address, bytes| unsafe { sys::spw_unpin_range(address, bytes) })
    }

    pub(crate) fn advise(&self, advice: Advice) -> Result<()> {
        let advice = match advice {
            Advice::Normal => sys::SPW_NORMAL,
            Advice::Sequential => sys::SPW_SEQUENTIAL,
            Advice::Random => sys::SPW_RANDOM,
        };
        // SAFETY: these three change when blocks are read, not what they hold.
        self.call(|address, bytes| unsafe { sys::spw_advise(address, bytes, advice) })
    }
}

/// Asks for several ranges of `elements` to be brought in.
pub(crate) fn prefetch_ranges<T>(elements: &[T], ranges: &[Range<usize>]) -> Result<()> {
    let extents: Vec<sys::spw_range> = ranges
        .iter()
        .map(|range| Extent::of(&elements[range.clone()]))
        .filter(|extent| extent.bytes > 0)
        .map(|extent| sys::spw_range { address: extent.address.cast(), bytes: extent.bytes })
        .collect();
    // SAFETY: as many ranges as it says; what they name is not written to.
    check(unsafe { sys::spw_prefetch_ranges(extents.as_ptr(), extents.len()) })
}

#[cfg(test)]
mod tests {
    use super::within;

    #[test]
    fn ranges_are_those_of_slices() {
        assert_eq!(within(.., 9), 0..9);
        assert_eq!(within(2..=4, 9), 2..5);
        assert_eq!(within((std::ops::Bound::Excluded(1), std::ops::Bound::Unbounded), 9), 2..9);
        assert_eq!(within(9..9, 9), 9..9);
    }

    #[test]
    #[should_panic(expected = "ends at 10, and there are 9")]
    fn a_range_past_the_end_is_refused() {
        within(3..10, 9);
    }
}
