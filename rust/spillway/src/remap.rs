//! mremap(2) as the runtime has it, which moves managed memory with all that is on the store.
use std::io;
use std::os::raw::{c_char, c_int, c_void};
use std::ptr::NonNull;

use crate::error::{Error, Result, ENOSYS};

type Remap = unsafe extern "C" fn(*mut c_void, usize, usize, c_int, ...) -> *mut c_void;

const MREMAP_MAYMOVE: c_int = 1;
const RTLD_LAZY: c_int = 1;
const RTLD_NOLOAD: c_int = 4;

extern "C" {
    fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

// Asked of the library itself: by its plain name it would be libc's where something else is loaded before the
// runtime, and the kernel knows nothing of what is not in memory.
fn remap_of_the_runtime() -> Option<Remap> {
    let (library, name) = (b"libspillway.so.0\0", b"mremap\0");
    // SAFETY: C strings; the library is loaded already, since we are linked to it, and stays.
    let function = unsafe {
        let library = dlopen(library.as_ptr().cast(), RTLD_LAZY | RTLD_NOLOAD);
        if library.is_null() {
            return None;
        }
        dlsym(library, name.as_ptr().cast())
    };
    // SAFETY: a null pointer is None; what has this name is that function.
    unsafe { std::mem::transmute::<*mut c_void, Option<Remap>>(function) }
}

/// Makes a mapping of `old_bytes` one of `bytes`, which may get another address.
///
/// # Safety
/// A whole anonymous region of the runtime's, which nobody uses meanwhile, nor by its old address afterwards.
pub(crate) unsafe fn remap(address: NonNull<u8>, old_bytes: usize, bytes: usize) -> Result<NonNull<u8>> {
    let remap = remap_of_the_runtime().ok_or_else(|| Error::new(ENOSYS, "libspillway.so.0 is not loaded"))?;
    // SAFETY: the caller's promise.
    let moved = unsafe { remap(address.as_ptr().cast(), old_bytes, bytes, MREMAP_MAYMOVE) };
    if moved as isize == -1 {
        let error = io::Error::last_os_error();
        let code = error.raw_os_error().unwrap_or(ENOSYS);
        return Err(Error::new(code, format!("no addresses for a region of {bytes} bytes: {error}")));
    }
    NonNull::new(moved.cast()).ok_or_else(|| Error::new(ENOSYS, "mremap moved a region to nowhere"))
}
