use std::marker::PhantomData;
use std::mem::{align_of, size_of};
use std::ops::{Deref, DerefMut, Range, RangeBounds};
use std::ptr::{self, NonNull};

use crate::error::{Error, Result, ENOMEM};
use crate::range::{prefetch_ranges, within, Extent};
use crate::{Advice, PinnedSlice, PinnedSliceMut, Region};

const PAGE_BYTES: usize = 4096;
/// Managed space: no region is larger.
const REGION_BYTES_MAX: usize = 16 << 40;
/// The least that is asked for at a time: addresses, of which only what is used takes memory.
const CAPACITY_BYTES_MIN: usize = 1 << 20;

/// A `Vec` in a region of its own: elements one after the other, in managed memory whatever their number.
///
/// An ordinary `Vec` that is large lies in managed memory, too. This one also says what will be used
/// ([`prefetch`](SpillVec::prefetch), [`pin`](SpillVec::pin), [`advise`](SpillVec::advise)), and grows without a
/// copy: where its neighbours are in the way, it gets other addresses, and what is on the disk stays there.
///
/// ```
/// use spillway::SpillVec;
///
/// let mut words: SpillVec<String> = ["a", "b"].into_iter().map(String::from).collect();
/// words.push("c".to_string());
/// words.sort_by(|a, b| b.cmp(a));
/// assert_eq!(words.concat(), "cba");
///
/// let hot = words.pin(..2)?;
/// assert_eq!(hot[0], "c");
/// # Ok::<(), spillway::Error>(())
/// ```
///
/// A pin that is written has its elements for itself:
///
/// ```compile_fail,E0502
/// # let mut numbers: spillway::SpillVec<u32> = (0..9).collect();
/// let pinned = numbers.pin_mut(..4).unwrap();
/// println!("{}", numbers[5]);
/// drop(pinned);
/// ```
///
/// And one that is read keeps the vector as it is:
///
/// ```compile_fail,E0502
/// # let mut numbers: spillway::SpillVec<u32> = (0..9).collect();
/// let pinned = numbers.pin(..4).unwrap();
/// numbers.push(10);
/// drop(pinned);
/// ```
///
/// What `Vec` refuses to share, this one does:
///
/// ```compile_fail,E0277
/// let counted = spillway::SpillVec::from_iter([std::rc::Rc::new(1)]);
/// std::thread::spawn(move || counted.len());
/// ```
///
/// Functions panic as those of `Vec` do, and also where there is no address space left; those that begin with `try`
/// return the error.
pub struct SpillVec<T> {
    // Invariants: `data` is aligned, and has room for `capacity` elements in `memory`; the first `length` are values.
    // Types without size need no memory and have all the capacity there is.
    memory: Option<Region>,
    data: NonNull<T>,
    length: usize,
    capacity: usize,
    owns: PhantomData<T>,
}

// SAFETY: it owns its elements, and its region is Send and Sync.
unsafe impl<T: Send> Send for SpillVec<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for SpillVec<T> {}

/// What regions may lack at their ends for an element to be aligned: they begin at pages.
fn slack_bytes<T>() -> usize {
    if align_of::<T>() > PAGE_BYTES {
        align_of::<T>()
    } else {
        0
    }
}

/// The bytes of a region for `count` elements.
fn bytes_for<T>(count: usize) -> Option<usize> {
    let bytes = count.checked_mul(size_of::<T>())?.checked_add(slack_bytes::<T>() + PAGE_BYTES - 1)?;
    Some(bytes / PAGE_BYTES * PAGE_BYTES).filter(|bytes| *bytes <= REGION_BYTES_MAX)
}

fn first_aligned<T>(address: *mut u8) -> *mut T {
    let over = address as usize % align_of::<T>();
    address.wrapping_add(if over == 0 { 0 } else { align_of::<T>() - over }).cast()
}

impl<T> SpillVec<T> {
    /// An empty one, without memory.
    pub fn new() -> Self {
        let capacity = if size_of::<T>() == 0 { usize::MAX } else { 0 };
        SpillVec { memory: None, data: NonNull::dangling(), length: 0, capacity, owns: PhantomData }
    }

    /// An empty one with addresses for so many elements. They cost nothing: say what will come, and nothing ever moves.
    pub fn with_capacity(capacity: usize) -> Self {
        or_panic(Self::try_with_capacity(capacity))
    }

    /// As [`with_capacity`](SpillVec::with_capacity).
    pub fn try_with_capacity(capacity: usize) -> Result<Self> {
        let mut made = Self::new();
        if capacity > made.capacity {
            made.set_capacity(capacity)?;
        }
        Ok(made)
    }

    /// How many elements there are addresses for.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// All elements.
    pub fn as_slice(&self) -> &[T] {
        // SAFETY: the first `length` are values.
        unsafe { std::slice::from_raw_parts(self.data.as_ptr(), self.length) }
    }

    /// All elements, to be changed.
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        // SAFETY: as above, and nobody else has a borrow.
        unsafe { std::slice::from_raw_parts_mut(self.data.as_ptr(), self.length) }
    }

    /// Addresses for at least so many more.
    pub fn reserve(&mut self, additional: usize) {
        or_panic(self.try_reserve(additional))
    }

    /// As [`reserve`](SpillVec::reserve).
    ///
    /// # Errors
    /// `ENOMEM`: no address space; the vector stays as it was.
    pub fn try_reserve(&mut self, additional: usize) -> Result<()> {
        let needed = self.length.checked_add(additional).ok_or_else(too_many)?;
        if needed <= self.capacity {
            return Ok(());
        }
        let least = CAPACITY_BYTES_MIN / size_of::<T>().max(1);
        self.set_capacity(needed.max(self.capacity.saturating_mul(2)).max(least)).or_else(|_| self.set_capacity(needed))
    }

    // More than there is. Contents go along.
    fn set_capacity(&mut self, capacity: usize) -> Result<()> {
        if size_of::<T>() == 0 {
            return Err(too_many());
        }
        let bytes = bytes_for::<T>(capacity).ok_or_else(too_many)?;
        let mut offset = 0;
        let memory = match &mut self.memory {
            Some(memory) => {
                offset = self.data.as_ptr() as usize - memory.as_ptr() as usize;
                memory.grow(bytes)?;
                memory
            }
            none => none.insert(Region::anonymous(bytes)?),
        };
        let data = first_aligned::<T>(memory.as_ptr());
        let contents = memory.as_ptr().wrapping_add(offset).cast::<T>();
        if slack_bytes::<T>() > 0 && self.length > 0 && contents != data {
            // SAFETY: both within the region, which has become longer by more than the slack; they may overlap.
            unsafe { ptr::copy(contents.cast::<u8>(), data.cast::<u8>(), self.length * size_of::<T>()) };
        }
        self.data = NonNull::new(data).ok_or_else(too_many)?;
        self.capacity = (bytes - slack_bytes::<T>()) / size_of::<T>();
        Ok(())
    }

    /// Adds an element at the end.
    pub fn push(&mut self, value: T) {
        if self.length == self.capacity {
            self.reserve(1);
        }
        // SAFETY: there is room for one more.
        unsafe { self.data.as_ptr().add(self.length).write(value) };
        self.length += 1;
    }

    /// Takes the last element.
    pub fn pop(&mut self) -> Option<T> {
        self.length = self.length.checked_sub(1)?;
        // SAFETY: it was a value, and is none of the vector's any more.
        Some(unsafe { self.data.as_ptr().add(self.length).read() })
    }

    /// Drops all but the first `length` elements.
    pub fn truncate(&mut self, length: usize) {
        if length >= self.length {
            return;
        }
        let rest = ptr::slice_from_raw_parts_mut(self.data.as_ptr().wrapping_add(length), self.length - length);
        self.length = length; // before anything is dropped: a panic there must not drop twice
                              // SAFETY: they were values, and are none of the vector's any more.
        unsafe { ptr::drop_in_place(rest) };
    }

    /// Drops all elements and keeps the addresses.
    pub fn clear(&mut self) {
        self.truncate(0);
    }

    /// Puts an element at `index`, before what is there.
    ///
    /// # Panics
    /// When `index > len`.
    pub fn insert(&mut self, index: usize, value: T) {
        assert!(index <= self.length, "index {index} of {}", self.length);
        if self.length == self.capacity {
            self.reserve(1);
        }
        // SAFETY: room for one more; what is behind the index moves up, and nothing can panic until it is whole again.
        unsafe {
            let at = self.data.as_ptr().add(index);
            ptr::copy(at, at.add(1), self.length - index);
            at.write(value);
        }
        self.length += 1;
    }

    /// Takes the element at `index`; what is behind moves down.
    ///
    /// # Panics
    /// When `index >= len`.
    pub fn remove(&mut self, index: usize) -> T {
        assert!(index < self.length, "index {index} of {}", self.length);
        self.length -= 1;
        // SAFETY: the element is read once, and what is behind it closes the gap.
        unsafe {
            let at = self.data.as_ptr().add(index);
            let value = at.read();
            ptr::copy(at.add(1), at, self.length - index);
            value
        }
    }

    /// Takes the element at `index` and puts the last one there.
    ///
    /// # Panics
    /// When `index >= len`.
    pub fn swap_remove(&mut self, index: usize) -> T {
        let last = self.length.wrapping_sub(1);
        self.as_mut_slice().swap(index, last);
        self.pop().expect("there was one at the index")
    }

    /// Adds copies of elements at the end.
    pub fn extend_from_slice(&mut self, elements: &[T])
    where
        T: Clone,
    {
        self.reserve(elements.len());
        elements.iter().for_each(|element| self.push(element.clone()));
    }

    /// Makes it as long as it is told, with copies of `value`.
    pub fn resize(&mut self, length: usize, value: T)
    where
        T: Clone,
    {
        self.truncate(length);
        self.reserve(length - self.length);
        while self.length < length {
            self.push(value.clone());
        }
    }

    /// Gives back the memory and the disk of elements that are gone. The addresses stay.
    pub fn release_spare(&mut self) -> Result<()> {
        let end = self.data.as_ptr().wrapping_add(self.length) as usize;
        match &mut self.memory {
            Some(memory) => memory.discard(end - memory.as_ptr() as usize..),
            None => Ok(()),
        }
    }

    /// Asks for elements to be brought in, without waiting; may do less, at most an eighth of the memory.
    ///
    /// # Panics
    /// Here and below, when the range is not within the vector.
    pub fn prefetch(&self, range: impl RangeBounds<usize>) -> Result<()> {
        Extent::of(self.part(range)).prefetch()
    }

    /// Asks for many ranges that have nothing to do with one another.
    pub fn prefetch_ranges(&self, ranges: &[Range<usize>]) -> Result<()> {
        prefetch_ranges(self.as_slice(), ranges)
    }

    /// Says how elements will be used, in steps of 2 MiB.
    pub fn advise(&self, range: impl RangeBounds<usize>, advice: Advice) -> Result<()> {
        Extent::of(self.part(range)).advise(advice)
    }

    /// Keeps elements in memory while the value that is returned lives.
    ///
    /// # Errors
    /// `ENOMEM`: pins have their half of the memory already; `ENOTSUP`: the translated engine.
    pub fn pin(&self, range: impl RangeBounds<usize>) -> Result<PinnedSlice<'_, T>> {
        PinnedSlice::new(self.part(range))
    }

    /// As [`pin`](SpillVec::pin), to be changed: nobody else reaches the vector meanwhile.
    pub fn pin_mut(&mut self, range: impl RangeBounds<usize>) -> Result<PinnedSliceMut<'_, T>> {
        let range = within(range, self.length);
        PinnedSliceMut::new(&mut self.as_mut_slice()[range])
    }

    fn part(&self, range: impl RangeBounds<usize>) -> &[T] {
        &self.as_slice()[within(range, self.length)]
    }

    /// The memory, where its elements are, and how many: they are the caller's to drop.
    pub(crate) fn into_parts(self) -> (Option<Region>, NonNull<T>, usize) {
        let mut whole = std::mem::ManuallyDrop::new(self);
        (whole.memory.take(), whole.data, whole.length)
    }
}

fn too_many() -> Error {
    Error::new(ENOMEM, "more elements than there are addresses")
}

fn or_panic<V>(result: Result<V>) -> V {
    result.unwrap_or_else(|error| panic!("SpillVec: {error}"))
}

impl<T> Drop for SpillVec<T> {
    fn drop(&mut self) {
        self.clear(); // the region goes afterwards, also when an element panics
    }
}

impl<T> Deref for SpillVec<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        self.as_slice()
    }
}

impl<T> DerefMut for SpillVec<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        self.as_mut_slice()
    }
}
