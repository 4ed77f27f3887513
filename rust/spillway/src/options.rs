use std::ffi::CStr;
use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::os::raw::{c_uint, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

use crate::error::{check, Error, Result, EINVAL};
use crate::process::{c_string, check_version};
use crate::store::{table, Context, Store};
use crate::{sys, Mode, Region};

/// Which part of a store becomes a region, and how.
///
/// ```
/// use spillway::{Mode, RegionOptions};
///
/// let path = std::env::temp_dir().join(format!("spillway-doc-{}", std::process::id()));
/// // SAFETY: nobody else has a file of this name.
/// let mut region = unsafe { RegionOptions::new().create(true).length(1 << 20).file(&path, Mode::Shared)? };
/// region.as_mut_slice()[..5].copy_from_slice(b"hello");
/// region.unmap()?;
/// assert_eq!(std::fs::read(&path)?[..5], *b"hello");
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct RegionOptions {
    offset: u64,
    length: usize,
    block_bytes: usize,
    create: bool,
}

impl RegionOptions {
    /// All of a store.
    pub fn new() -> Self {
        RegionOptions::default()
    }

    /// Where in the store it begins, in bytes: a multiple of 4096.
    pub fn offset(&mut self, bytes: u64) -> &mut Self {
        self.offset = bytes;
        self
    }

    /// How long it is, in bytes; 0: up to the end of the store.
    pub fn length(&mut self, bytes: usize) -> &mut Self {
        self.length = bytes;
        self
    }

    /// What a miss brings in, in bytes: a power of two from 4 KiB to 8 MiB, 0 for the runtime's choice.
    pub fn block_bytes(&mut self, bytes: usize) -> &mut Self {
        self.block_bytes = bytes;
        self
    }

    /// Of files: whether it is made, and lengthened up to offset and length, if need be.
    pub fn create(&mut self, create: bool) -> &mut Self {
        self.create = create;
        self
    }

    /// Memory of no store, of the length that was said.
    pub fn anonymous(&self) -> Result<Region> {
        check_version()?;
        let address = self.map_uri(None, 0)?;
        // SAFETY: it has just been mapped.
        Ok(unsafe { Region::own(address, self.length, None, None) })
    }

    /// A file.
    ///
    /// # Safety
    /// While the region lives nobody else changes the file: neither another process, nor this one by other means.
    pub unsafe fn file(&self, path: impl AsRef<Path>, mode: Mode) -> Result<Region> {
        check_version()?;
        let path = path.as_ref();
        let mut options = self.clone();
        if options.length == 0 {
            options.length = self.rest_of(path)?;
        }
        let uri = c_string([b"file:", path.as_os_str().as_bytes()].concat())?;
        let address = options.map_uri(Some(&uri), flags_of(mode, self.create))?;
        // SAFETY: it has just been mapped.
        Ok(unsafe { Region::own(address, options.length, Some(mode), None) })
    }

    /// A store by its URI, such as `nbd://HOST/EXPORT` (spillway(1) lists them), of a length that was said.
    ///
    /// # Safety
    /// While the region lives nobody else changes what is there.
    pub unsafe fn store(&self, uri: &str, mode: Mode) -> Result<Region> {
        check_version()?;
        if self.length == 0 {
            return Err(Error::new(EINVAL, format!("{uri}: say the length of the region")));
        }
        let address = self.map_uri(Some(&c_string(uri)?), flags_of(mode, self.create))?;
        // SAFETY: it has just been mapped.
        Ok(unsafe { Region::own(address, self.length, Some(mode), None) })
    }

    /// A store of the program's own.
    ///
    /// # Safety
    /// The store keeps to what [`Store`] says, and gives back the bytes that were last written to it.
    pub unsafe fn custom(&self, store: impl Store, mode: Mode) -> Result<Region> {
        check_version()?;
        let context: Context = Box::new(Box::new(store));
        let table = table(&context);
        let length = match self.length {
            0 => usize::try_from(table.bytes.saturating_sub(self.offset)).unwrap_or(usize::MAX),
            length => length,
        };
        let (mut address, flags) = (ptr::null_mut(), flags_of(mode, self.create));
        // SAFETY: a table that the runtime copies, whose context lives as long as the region.
        check(unsafe { sys::spw_map_store(&table, self.offset, length, flags, self.block_bytes, &mut address) })?;
        // SAFETY: it has just been mapped.
        Ok(unsafe { Region::own(address, length, Some(mode), Some(context)) })
    }

    fn map_uri(&self, uri: Option<&CStr>, flags: c_uint) -> Result<*mut c_void> {
        let uri = uri.map_or(ptr::null(), CStr::as_ptr);
        let mut address = ptr::null_mut();
        // SAFETY: a null pointer or a C string, and a place for the address.
        check(unsafe { sys::spw_map(uri, self.offset, self.length, flags, self.block_bytes, &mut address) })?;
        Ok(address)
    }

    // From the offset to the end of a file, or of a device, which has no size of a file's.
    fn rest_of(&self, path: &Path) -> Result<usize> {
        let told = |error: Error| Error::new(error.code(), format!("{}: {}", path.display(), error.message()));
        let end =
            File::open(path).and_then(|mut file| file.seek(SeekFrom::End(0))).map_err(|error| told(error.into()))?;
        match end.checked_sub(self.offset).and_then(|rest| usize::try_from(rest).ok()) {
            None | Some(0) => Err(Error::new(EINVAL, format!("{}: it has nothing at {}", path.display(), self.offset))),
            Some(rest) => Ok(rest),
        }
    }
}

fn flags_of(mode: Mode, create: bool) -> c_uint {
    let kind = match mode {
        Mode::Shared => sys::SPW_MAP_SHARED,
        Mode::Private => sys::SPW_MAP_PRIVATE,
        Mode::ReadOnly => sys::SPW_MAP_READ_ONLY,
    };
    kind | if create { sys::SPW_MAP_CREATE } else { 0 }
}
