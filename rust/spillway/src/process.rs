use std::ffi::{CStr, CString};

use crate::error::{check, Error, Result, EINVAL, ENOSYS};
use crate::sys;

/// The library's version, such as `"0.2.0"`.
///
/// ```
/// assert!(spillway::version().starts_with("0.2."));
/// ```
pub fn version() -> &'static str {
    // SAFETY: a C string that lives as long as the library.
    unsafe { CStr::from_ptr(sys::spw_version()) }.to_str().unwrap_or("")
}

/// `Err` when the library is one that this crate was not made for: within 0, another minor version.
pub(crate) fn check_version() -> Result<()> {
    let same = env!("CARGO_PKG_VERSION").rsplit_once('.').map_or("", |(same, _)| same);
    if version().rsplit_once('.').map(|(theirs, _)| theirs) == Some(same) {
        return Ok(());
    }
    let message =
        format!("libspillway is version {}, and this program was made for {same}: install that one", version());
    Err(Error::new(ENOSYS, message))
}

pub(crate) fn c_string(text: impl Into<Vec<u8>>) -> Result<CString> {
    CString::new(text).map_err(|_| Error::new(EINVAL, "a text with a zero byte in it"))
}

/// Sets an option of `spillway run`, such as `"memory"` to `"4G"`, over what the environment says.
///
/// Before managed memory is first used, so at the start of `main`: a large allocation is a use. Programs that are
/// started with `spillway run` should leave the choice to who starts them.
///
/// # Errors
/// `EBUSY` when it is too late, `EINVAL` for an unknown name or a value that it does not take.
///
/// ```
/// let error = spillway::set_option("memroy", "64M").unwrap_err();
/// assert!(error.message().contains("memroy"), "{error}");
/// spillway::set_option("memory", "64M")?;
/// assert_eq!(spillway::memory_limit(), 64 << 20);
/// # Ok::<(), spillway::Error>(())
/// ```
pub fn set_option(name: &str, value: &str) -> Result<()> {
    check_version()?;
    let (name, value) = (c_string(name)?, c_string(value)?);
    // SAFETY: two C strings, which the function does not keep.
    check(unsafe { sys::spw_set_option(name.as_ptr(), value.as_ptr()) })
}

/// The cap on memory, in bytes.
pub fn memory_limit() -> u64 {
    // SAFETY: no preconditions.
    unsafe { sys::spw_memory_limit() }
}

/// Sets the cap, in bytes, to at most that of the start. What is above it has been written and evicted afterwards.
///
/// # Errors
/// `EINVAL`: too small or too large; `EBUSY`: pins take more than half of it; `ETIMEDOUT`: it holds, but evicting
/// goes on; `ENOTSUP`: the translated engine's, or that of `--memory=auto`.
pub fn set_memory_limit(bytes: u64) -> Result<()> {
    // SAFETY: no preconditions.
    check(unsafe { sys::spw_set_memory_limit(bytes) })
}

/// Does the pointer lie in managed space? An ordinary `Vec` that is large does, too, in a program with this crate.
pub fn is_managed<T: ?Sized>(pointer: *const T) -> bool {
    // SAFETY: the address is looked at and not what is there.
    unsafe { sys::spw_is_managed(pointer.cast()) == 1 }
}

/// Writes what is dirty of all shared regions to their stores. The first error is returned, all are tried.
pub fn flush_all() -> Result<()> {
    // SAFETY: no preconditions.
    check(unsafe { sys::spw_flush_all() })
}

/// Counts of the process since its start, of all threads; not of one moment while others go on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// The cap that holds now.
    pub memory_limit_bytes: u64,
    /// The size of a block.
    pub block_bytes: u64,
    /// Mapped or allocated in managed space now.
    pub managed_bytes: u64,
    /// Of these, in memory now; while all fits, as much as may be.
    pub cached_bytes: u64,
    /// Kept in memory by pins; a block in two of them counts twice.
    pub pinned_bytes: u64,
    /// Blocks brought in because somebody waited for them.
    pub misses: u64,
    /// Page faults on managed memory.
    pub faults: u64,
    /// Blocks read from stores on demand.
    pub fills: u64,
    /// Blocks read from stores ahead of need, or along with others.
    pub ahead_fills: u64,
    /// Blocks brought in that had never been written.
    pub zero_fills: u64,
    /// Blocks that left memory.
    pub evictions: u64,
    /// Blocks written to stores.
    pub writebacks: u64,
    /// Bytes read from stores.
    pub read_bytes: u64,
    /// Bytes written to stores.
    pub written_bytes: u64,
    /// Nanoseconds that threads waited for blocks to be read, all together.
    pub waited_ns: u64,
}

/// The counts so far; what a library older than the crate does not count is 0.
pub fn statistics() -> Statistics {
    let mut counts = sys::spw_statistics { size: std::mem::size_of::<sys::spw_statistics>(), ..Default::default() };
    // SAFETY: the structure is as large as it says. The call fails for no other one.
    let result = unsafe { sys::spw_get_statistics(&mut counts) };
    debug_assert_eq!(result, 0);
    Statistics {
        memory_limit_bytes: counts.memory_limit_bytes,
        block_bytes: counts.block_bytes,
        managed_bytes: counts.managed_bytes,
        cached_bytes: counts.cached_bytes,
        pinned_bytes: counts.pinned_bytes,
        misses: counts.misses,
        faults: counts.faults,
        fills: counts.fills,
        ahead_fills: counts.ahead_fills,
        zero_fills: counts.zero_fills,
        evictions: counts.evictions,
        writebacks: counts.writebacks,
        read_bytes: counts.read_bytes,
        written_bytes: counts.written_bytes,
        waited_ns: counts.waited_ns,
    }
}
