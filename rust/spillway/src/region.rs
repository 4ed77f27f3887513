use std::fmt;
use std::mem::{align_of, size_of, ManuallyDrop};
use std::ops::{Range, RangeBounds};
use std::os::raw::c_void;
use std::path::Path;
use std::ptr::NonNull;

use crate::error::{check, Error, Result};
use crate::range::{prefetch_ranges, within, Extent};
use crate::remap::remap;
use crate::store::Context;
use crate::{sys, Advice, PinnedSlice, PinnedSliceMut, Plain, RegionOptions};

/// What becomes of what is stored to a region on a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It goes to the store: when it is evicted, flushed, unmapped, or the program ends by `exit`.
    Shared,
    /// It is this process's own, and is spilled like any other memory.
    Private,
    /// There is no storing: [`Region::as_mut_slice`] panics.
    ReadOnly,
}

/// Bytes on a store, or of no store at all, that come into memory as they are touched.
///
/// ```
/// use spillway::Region;
///
/// let mut region = Region::anonymous(64 << 20)?; // zeros, spilled where everything is
/// region.typed_mut::<u64>()[5] = 7;
/// assert_eq!(region.typed::<u64>()[..6], [0, 0, 0, 0, 0, 7]);
///
/// let index = region.pin(0..4096)?; // stays in memory
/// assert_eq!(index[40], 7);
/// # Ok::<(), spillway::Error>(())
/// ```
///
/// When it is dropped, a shared region is written and synced, and what cannot be written is lost without a word;
/// [`unmap`](Region::unmap) tells.
pub struct Region {
    address: NonNull<u8>,
    bytes: usize,
    mode: Option<Mode>, // None: anonymous
    context: ManuallyDrop<Option<Context>>,
}

// SAFETY: memory that the value owns, reached through borrows of it alone; the runtime's functions may be called by any
// thread, and a store of the program's own is Send and Sync.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// Takes over `bytes` bytes at `address`.
    ///
    /// # Safety
    /// A call of spw_map() or spw_map_store() has just said so, and `context` is what it was given.
    pub(crate) unsafe fn own(address: *mut c_void, bytes: usize, mode: Option<Mode>, context: Option<Context>) -> Self {
        let address = NonNull::new(address.cast()).expect("a region has an address");
        debug_assert!(bytes > 0 && bytes <= isize::MAX as usize);
        Region { address, bytes, mode, context: ManuallyDrop::new(context) }
    }

    /// Memory of no store: `bytes` zeros, of which what does not fit is spilled. It costs addresses; memory and disk
    /// only as far as it is used.
    pub fn anonymous(bytes: usize) -> Result<Self> {
        RegionOptions::new().length(bytes).anonymous()
    }

    /// A whole file. [`RegionOptions`] maps parts, and makes files.
    ///
    /// # Safety
    /// While the region lives nobody else changes the file: neither another process, nor this one by other means.
    pub unsafe fn file(path: impl AsRef<Path>, mode: Mode) -> Result<Self> {
        // SAFETY: the caller's promise.
        unsafe { RegionOptions::new().file(path, mode) }
    }

    /// How many bytes it has.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Whether it has none, which is never.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Its first byte. With unsafe code it may be read and, but for [`Mode::ReadOnly`], written, in bounds.
    pub fn as_ptr(&self) -> *mut u8 {
        self.address.as_ptr()
    }

    /// All of it.
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: memory of this size that the region owns and that lives as long; any bytes are u8.
        unsafe { std::slice::from_raw_parts(self.address.as_ptr(), self.bytes) }
    }

    /// All of it, to be written.
    ///
    /// # Panics
    /// When it was mapped with [`Mode::ReadOnly`].
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        assert!(self.mode != Some(Mode::ReadOnly), "the region was mapped to be read only");
        // SAFETY: as `as_slice`, and nobody else has a borrow.
        unsafe { std::slice::from_raw_parts_mut(self.address.as_ptr(), self.bytes) }
    }

    /// As many values as fit.
    ///
    /// # Panics
    /// For a type without size, or one that wants an alignment of more than 4096 bytes.
    pub fn typed<T: Plain>(&self) -> &[T] {
        let count = self.count_of::<T>();
        // SAFETY: in bounds, aligned, and any bytes are a T.
        unsafe { std::slice::from_raw_parts(self.address.as_ptr().cast(), count) }
    }

    /// As many values as fit, to be written.
    ///
    /// # Panics
    /// As [`typed`](Region::typed) and [`as_mut_slice`](Region::as_mut_slice) do.
    pub fn typed_mut<T: Plain>(&mut self) -> &mut [T] {
        let count = self.count_of::<T>();
        let data = self.as_mut_slice().as_mut_ptr();
        // SAFETY: as `typed`, nobody else has a borrow, and a T leaves only bytes behind.
        unsafe { std::slice::from_raw_parts_mut(data.cast(), count) }
    }

    fn count_of<T>(&self) -> usize {
        assert!(size_of::<T>() > 0, "a type without size");
        assert!(
            self.address.as_ptr() as usize % align_of::<T>() == 0,
            "a type of a larger alignment than regions have"
        );
        self.bytes / size_of::<T>()
    }

    /// Asks for a range of bytes to be brought in, without waiting; may do less, at most an eighth of the memory.
    ///
    /// # Panics
    /// Here and below, when the range is not within the region.
    pub fn prefetch(&self, range: impl RangeBounds<usize>) -> Result<()> {
        Extent::of(self.part(range)).prefetch()
    }

    /// Asks for many ranges that have nothing to do with one another.
    pub fn prefetch_ranges(&self, ranges: &[Range<usize>]) -> Result<()> {
        prefetch_ranges(self.as_slice(), ranges)
    }

    /// Says how a range will be used, in steps of 2 MiB.
    pub fn advise(&self, range: impl RangeBounds<usize>, advice: Advice) -> Result<()> {
        Extent::of(self.part(range)).advise(advice)
    }

    /// Keeps a range in memory while the value that is returned lives.
    ///
    /// # Errors
    /// `ENOMEM`: pins have their half of the memory already; `ENOTSUP`: the translated engine.
    pub fn pin(&self, range: impl RangeBounds<usize>) -> Result<PinnedSlice<'_, u8>> {
        PinnedSlice::new(self.part(range))
    }

    /// As [`pin`](Region::pin), to be written.
    ///
    /// # Panics
    /// As [`as_mut_slice`](Region::as_mut_slice) does.
    pub fn pin_mut(&mut self, range: impl RangeBounds<usize>) -> Result<PinnedSliceMut<'_, u8>> {
        let range = within(range, self.bytes);
        PinnedSliceMut::new(&mut self.as_mut_slice()[range])
    }

    /// Writes what is dirty in a range to the store; it stays in memory.
    pub fn flush(&self, range: impl RangeBounds<usize>) -> Result<()> {
        Extent::of(self.part(range)).flush()
    }

    /// Writes what is dirty in a range and makes it durable.
    pub fn sync(&self, range: impl RangeBounds<usize>) -> Result<()> {
        Extent::of(self.part(range)).sync()
    }

    /// Of anonymous memory: makes the whole blocks in a range zeros, without a write, and gives their memory and disk
    /// back. Of a store: writes what is dirty.
    pub fn discard(&mut self, range: impl RangeBounds<usize>) -> Result<()> {
        let range = within(range, self.bytes);
        if range.is_empty() {
            return Ok(());
        }
        // SAFETY: within the region, which holds bytes, of which any are good, and nobody has a borrow.
        check(unsafe { sys::spw_advise(self.address.as_ptr().add(range.start).cast(), range.len(), sys::SPW_DONTNEED) })
    }

    /// Makes anonymous memory longer, by zeros. Where its neighbours are in the way it gets other addresses: contents
    /// move with it, but are neither copied nor read.
    ///
    /// # Errors
    /// `EINVAL`: not anonymous, or not longer; `ENOMEM`: no addresses left. It stays as it was then.
    pub fn grow(&mut self, bytes: usize) -> Result<()> {
        if self.mode.is_some() || bytes < self.bytes {
            return Err(Error::new(crate::error::EINVAL, "only anonymous memory grows, and it does not shrink"));
        }
        // SAFETY: memory of this region's, all of it, and nobody has a borrow.
        self.address = unsafe { remap(self.address, self.bytes, bytes)? };
        self.bytes = bytes;
        Ok(())
    }

    /// Writes and syncs a shared region, and gives it back.
    ///
    /// # Errors
    /// What cannot be written: the region is in the error, with all that was stored.
    pub fn unmap(self) -> std::result::Result<(), UnmapError> {
        let mut region = ManuallyDrop::new(self);
        match region.close() {
            Ok(()) => Ok(()),
            Err(error) => Err(UnmapError { error, region: Box::new(ManuallyDrop::into_inner(region)) }),
        }
    }

    fn part(&self, range: impl RangeBounds<usize>) -> &[u8] {
        &self.as_slice()[within(range, self.bytes)]
    }

    // Afterwards the region is gone, unless this fails.
    fn close(&mut self) -> Result<()> {
        // SAFETY: the region is one of the runtime's, and nobody has a borrow.
        check(unsafe { sys::spw_unmap(self.address.as_ptr().cast()) })?;
        // SAFETY: the runtime knows of the store no more, and this is done once.
        unsafe { ManuallyDrop::drop(&mut self.context) };
        Ok(())
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        if self.close().is_ok() {
            return;
        }
        // SAFETY: as `close`.
        if unsafe { sys::spw_unmap_unsaved(self.address.as_ptr().cast()) } == 0 {
            // SAFETY: as `close`. Where that fails, too, a store of the program's own stays for ever.
            unsafe { ManuallyDrop::drop(&mut self.context) };
        }
    }
}

impl fmt::Debug for Region {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mode = self.mode.map_or("anonymous".to_string(), |mode| format!("{mode:?}"));
        write!(to, "Region({:p}, {} bytes, {mode})", self.address, self.bytes)
    }
}

/// A region that could not be written when it was to be unmapped, and why.
#[derive(Debug)]
pub struct UnmapError {
    error: Error,
    region: Box<Region>,
}

impl UnmapError {
    /// Why.
    pub fn error(&self) -> &Error {
        &self.error
    }

    /// The region, as it was: to try again, or to drop it.
    pub fn into_region(self) -> Region {
        *self.region
    }
}

impl fmt::Display for UnmapError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(to)
    }
}

impl std::error::Error for UnmapError {}

impl From<UnmapError> for Error {
    fn from(failed: UnmapError) -> Self {
        failed.error
    }
}
