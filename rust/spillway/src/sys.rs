//! The C API as it is: what `<spillway/spillway.h>` declares, where the manual pages of section 3 say all there is to
//! know.
//!
//! Batches, buffered files and durable sections are not here.
#![allow(non_camel_case_types)]
use std::os::raw::{c_char, c_int, c_uint, c_void};

/// [`spw_map`]: what is stored goes to the store.
pub const SPW_MAP_SHARED: c_uint = 1;
/// [`spw_map`]: what is stored is this process's own.
pub const SPW_MAP_PRIVATE: c_uint = 2;
/// [`spw_map`]: a store to it ends in SIGSEGV.
pub const SPW_MAP_READ_ONLY: c_uint = 4;
/// [`spw_map`]: the file is made and lengthened if need be.
pub const SPW_MAP_CREATE: c_uint = 8;

/// [`spw_pin`]: to read.
pub const SPW_READ: c_uint = 0;
/// [`spw_pin`]: to read and write.
pub const SPW_WRITE: c_uint = 1;
/// [`spw_pin`]: every byte will be written before it is read.
pub const SPW_OVERWRITE: c_uint = 2;

/// [`spw_advise`]: the region's own block size again.
pub const SPW_NORMAL: c_uint = 0;
/// [`spw_advise`]: misses bring in 1 MiB.
pub const SPW_SEQUENTIAL: c_uint = 1;
/// [`spw_advise`]: misses bring in their block alone.
pub const SPW_RANDOM: c_uint = 2;
/// [`spw_advise`]: as [`spw_prefetch`].
pub const SPW_WILLNEED: c_uint = 3;
/// [`spw_advise`]: whole blocks of anonymous memory are dropped, those of a store written.
pub const SPW_DONTNEED: c_uint = 4;

/// How many pins of [`spw_pin`] a thread holds at most.
pub const SPW_PINS_PER_THREAD: usize = 4;

/// A piece of managed memory held in place.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct spw_pinned {
    /// Where the bytes are now.
    pub data: *mut c_void,
    /// How many of those asked for.
    pub bytes: usize,
    /// The runtime's.
    pub reserved: u64,
}

/// A range of addresses.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct spw_range {
    /// Its first byte.
    pub address: *const c_void,
    /// Its length.
    pub bytes: usize,
}

/// A store of the program's own.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct spw_store {
    /// `size_of::<spw_store>()`.
    pub size: usize,
    /// What the functions are given.
    pub context: *mut c_void,
    /// The size of the store.
    pub bytes: u64,
    /// Bytes read, or a negative errno.
    pub read: Option<unsafe extern "C" fn(*mut c_void, *mut c_void, usize, u64) -> i64>,
    /// Bytes written, or a negative errno; `None`: it is not writable.
    pub write: Option<unsafe extern "C" fn(*mut c_void, *const c_void, usize, u64) -> i64>,
    /// 0 or a negative errno; `None`: writes are durable.
    pub sync: Option<unsafe extern "C" fn(*mut c_void) -> c_int>,
}

/// Counts since the start, of all threads: [`Statistics`](crate::Statistics) says what they are.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)]
pub struct spw_statistics {
    pub size: usize,
    pub memory_limit_bytes: u64,
    pub block_bytes: u64,
    pub managed_bytes: u64,
    pub cached_bytes: u64,
    pub pinned_bytes: u64,
    pub misses: u64,
    pub faults: u64,
    pub fills: u64,
    pub ahead_fills: u64,
    pub zero_fills: u64,
    pub evictions: u64,
    pub writebacks: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
    pub waited_ns: u64,
}

extern "C" {
    /// The library's version.
    pub fn spw_version() -> *const c_char;
    /// 1 when the address lies in managed space, else 0.
    pub fn spw_is_managed(address: *const c_void) -> c_int;
    /// One line about the thread's last call that failed.
    pub fn spw_error_message() -> *const c_char;
    /// Sets an option before managed memory is first used.
    pub fn spw_set_option(name: *const c_char, value: *const c_char) -> c_int;
    /// The cap in bytes.
    pub fn spw_memory_limit() -> u64;
    /// A new cap.
    pub fn spw_set_memory_limit(bytes: u64) -> c_int;
    /// Holds a block in place for a moment.
    pub fn spw_pin(address: *const c_void, bytes: usize, access: c_uint, pin: *mut spw_pinned) -> c_int;
    /// Ends that, in the same thread.
    pub fn spw_unpin(pin: *const spw_pinned) -> c_int;
    /// Maps a store, or anonymous memory for a null pointer.
    pub fn spw_map(
        store: *const c_char,
        offset: u64,
        length: usize,
        flags: c_uint,
        block_bytes: usize,
        address: *mut *mut c_void,
    ) -> c_int;
    /// Maps a store of the program's own.
    pub fn spw_map_store(
        store: *const spw_store,
        offset: u64,
        length: usize,
        flags: c_uint,
        block_bytes: usize,
        address: *mut *mut c_void,
    ) -> c_int;
    /// Writes and gives back a region.
    pub fn spw_unmap(address: *mut c_void) -> c_int;
    /// Gives back a region without a write.
    pub fn spw_unmap_unsaved(address: *mut c_void) -> c_int;
    /// Writes what is dirty.
    pub fn spw_flush(address: *const c_void, bytes: usize) -> c_int;
    /// Makes it durable, too.
    pub fn spw_sync(address: *const c_void, bytes: usize) -> c_int;
    /// Flushes all shared regions.
    pub fn spw_flush_all() -> c_int;
    /// Asks for a range to be brought in.
    pub fn spw_prefetch(address: *const c_void, bytes: usize) -> c_int;
    /// Asks for many.
    pub fn spw_prefetch_ranges(ranges: *const spw_range, count: usize) -> c_int;
    /// Keeps a range in memory.
    pub fn spw_pin_range(address: *const c_void, bytes: usize) -> c_int;
    /// Ends that.
    pub fn spw_unpin_range(address: *const c_void, bytes: usize) -> c_int;
    /// Says how a range will be used.
    pub fn spw_advise(address: *const c_void, bytes: usize, advice: c_uint) -> c_int;
    /// Counts of the process so far.
    pub fn spw_get_statistics(statistics: *mut spw_statistics) -> c_int;
}
