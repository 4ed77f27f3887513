//! A store of the program's own, as the C API wants it: functions that know nothing of panics and types.
use std::io;
use std::os::raw::{c_int, c_void};
use std::panic::{catch_unwind, AssertUnwindSafe};

use crate::error::EIO;
use crate::sys;

/// Where the bytes of a region are, for [`RegionOptions::custom`](crate::RegionOptions::custom).
///
/// The functions are called by many threads at a time, for different bytes, and from within the runtime: they must
/// not touch managed memory but the buffer, nor call this crate, nor wait for a thread that does. What they own
/// should be small, or made before there is much: an allocation above the threshold is managed itself. A panic counts
/// as `EIO`.
pub trait Store: Send + Sync + 'static {
    /// The size of the store. Asked for once, when it is mapped.
    fn bytes(&self) -> u64;

    /// Reads up to `buffer.len()` bytes from `offset` on and says how many; 0 is the end, behind which there are zeros.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes up to `buffer.len()` bytes from `offset` on and says how many.
    fn write_at(&self, buffer: &[u8], offset: u64) -> io::Result<usize>;

    /// Makes durable what was written.
    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

/// What the runtime is given. It has to stay where it is until the region is unmapped.
pub(crate) type Context = Box<Box<dyn Store>>;

fn negative(error: io::Error) -> i64 {
    -i64::from(error.raw_os_error().filter(|code| *code > 0).unwrap_or(EIO))
}

// The store's answer about `asked` bytes as the runtime reads it; an impossible one is an error, too.
fn answer(asked: usize, act: impl FnOnce() -> io::Result<usize>) -> i64 {
    match catch_unwind(AssertUnwindSafe(act)) {
        Ok(Ok(moved)) if moved <= asked => moved as i64,
        Ok(Err(error)) => negative(error),
        _ => -i64::from(EIO),
    }
}

unsafe extern "C" fn read(context: *mut c_void, buffer: *mut c_void, bytes: usize, offset: u64) -> i64 {
    // SAFETY: the runtime gives what it was given, and a buffer of its own of that size, which nobody else uses now.
    let (store, buffer) =
        unsafe { (&*context.cast::<Box<dyn Store>>(), std::slice::from_raw_parts_mut(buffer.cast::<u8>(), bytes)) };
    answer(bytes, || store.read_at(buffer, offset))
}

unsafe extern "C" fn write(context: *mut c_void, buffer: *const c_void, bytes: usize, offset: u64) -> i64 {
    // SAFETY: as `read`; nobody writes to the buffer now.
    let (store, buffer) =
        unsafe { (&*context.cast::<Box<dyn Store>>(), std::slice::from_raw_parts(buffer.cast::<u8>(), bytes)) };
    answer(bytes, || store.write_at(buffer, offset))
}

unsafe extern "C" fn sync(context: *mut c_void) -> c_int {
    // SAFETY: as `read`.
    let store = unsafe { &*context.cast::<Box<dyn Store>>() };
    answer(0, || store.sync().map(|()| 0)) as c_int
}

/// The table of functions for a store; `context` is to outlive the region.
pub(crate) fn table(context: &Context) -> sys::spw_store {
    sys::spw_store {
        size: std::mem::size_of::<sys::spw_store>(),
        context: (&**context as *const Box<dyn Store>) as *mut c_void,
        bytes: context.bytes(),
        read: Some(read),
        write: Some(write),
        sync: Some(sync),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_store_says_becomes_bytes_or_an_errno() {
        assert_eq!(answer(8, || Ok(5)), 5);
        assert_eq!(answer(8, || Err(io::Error::from_raw_os_error(28))), -28);
        assert_eq!(answer(8, || Err(io::Error::new(io::ErrorKind::Other, "odd"))), -5);
        assert_eq!(answer(8, || Ok(9)), -5);
        assert_eq!(answer(8, || panic!("a bug in a store")), -5);
    }
}
