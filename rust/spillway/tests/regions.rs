//! Regions: of no store, of files, of stores of the program's own.
mod common;

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use common::{small_memory, CAP_BYTES};
use spillway::{Advice, Mode, Region, RegionOptions, Store};

/// A file of this test's own, gone with the value.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str, contents: &[u8]) -> Self {
        let path = std::env::temp_dir().join(format!("spillway-{}-{name}", std::process::id()));
        std::fs::write(&path, contents).unwrap();
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|index| (index / 4096 + index) as u8).collect()
}

#[test]
fn anonymous_memory_is_zeros_that_can_be_written_and_grow() {
    small_memory();
    let mut region = Region::anonymous(2 * CAP_BYTES).unwrap();
    let wall = Region::anonymous(4096).unwrap();
    assert!(region.as_slice().iter().all(|byte| *byte == 0));
    for (index, word) in region.typed_mut::<u64>().iter_mut().enumerate() {
        *word = index as u64;
    }
    region.grow(3 * CAP_BYTES).unwrap();
    let words = region.typed::<u64>();
    assert_eq!(words.len(), 3 * CAP_BYTES / 8);
    assert!(words[..2 * CAP_BYTES / 8].iter().enumerate().all(|(index, word)| *word == index as u64));
    assert!(words[2 * CAP_BYTES / 8..].iter().all(|word| *word == 0));
    region.discard(..CAP_BYTES).unwrap();
    assert!(region.as_slice()[..CAP_BYTES].iter().all(|byte| *byte == 0));
    assert_eq!(region.typed::<u64>()[CAP_BYTES / 8], CAP_BYTES as u64 / 8);
    assert_eq!(region.grow(4096).unwrap_err().code(), 22);
    assert_eq!(wall.len(), 4096);
}

#[test]
fn what_is_stored_to_a_shared_file_is_there_afterwards() {
    small_memory();
    let contents = pattern(1 << 20);
    let file = Scratch::new("shared", &contents);
    // SAFETY: a file of this test's own.
    let mut region = unsafe { Region::file(&file.0, Mode::Shared) }.unwrap();
    assert_eq!((region.len(), region.as_slice() == contents), (1 << 20, true));
    region.as_mut_slice()[5..8].copy_from_slice(b"new");
    region.sync(..4096).unwrap();
    assert_eq!(&std::fs::read(&file.0).unwrap()[5..8], b"new");
    region.as_mut_slice()[70_000] = 1;
    region.unmap().unwrap();
    assert_eq!(std::fs::read(&file.0).unwrap()[70_000], 1);
}

#[test]
fn what_is_stored_to_a_private_file_stays_here() {
    small_memory();
    let contents = pattern(64 << 10);
    let file = Scratch::new("private", &contents);
    // SAFETY: a file of this test's own.
    let mut region = unsafe { RegionOptions::new().offset(8192).length(4096).file(&file.0, Mode::Private) }.unwrap();
    assert_eq!(region.as_slice(), &contents[8192..12288]);
    region.as_mut_slice().fill(7);
    assert!(region.as_slice().iter().all(|byte| *byte == 7));
    drop(region);
    assert_eq!(std::fs::read(&file.0).unwrap(), contents);
}

#[test]
#[should_panic(expected = "read only")]
fn a_region_to_be_read_only_is_not_written() {
    small_memory();
    let file = Scratch::new("read-only", &pattern(4096));
    // SAFETY: a file of this test's own.
    let mut region = unsafe { Region::file(&file.0, Mode::ReadOnly) }.unwrap();
    assert_eq!(region.as_slice(), pattern(4096));
    region.as_mut_slice();
}

#[test]
fn mistakes_are_errors_that_say_what() {
    small_memory();
    let file = Scratch::new("mistakes", &pattern(8192));
    let missing = file.0.with_extension("missing");
    // SAFETY: files of this test's own.
    unsafe {
        let error = Region::file(&missing, Mode::Shared).unwrap_err();
        assert_eq!((error.kind(), error.message().contains("missing")), (io::ErrorKind::NotFound, true), "{error}");
        let error = RegionOptions::new().offset(100).file(&file.0, Mode::Shared).unwrap_err();
        assert!(error.message().contains("a multiple of 4096"), "{error}");
        let error = RegionOptions::new().offset(8192).file(&file.0, Mode::Shared).unwrap_err();
        assert!(error.message().contains("nothing at 8192"), "{error}");
        let error = RegionOptions::new().length(1 << 20).file(&file.0, Mode::Shared).unwrap_err();
        assert!(error.message().contains("past its end"), "{error}");
        let error = RegionOptions::new().length(4096).store("carrier-pigeon:coop", Mode::Shared).unwrap_err();
        assert_eq!((error.code(), error.message().is_empty()), (22, false), "{error}");
        assert!(RegionOptions::new().store("memory:1M", Mode::Shared).unwrap_err().message().contains("length"));
    }
    let error = Region::anonymous(0).unwrap_err();
    assert_eq!(io::Error::from(error.clone()).kind(), io::ErrorKind::InvalidInput, "{error}");
    assert_eq!(RegionOptions::new().length(4096).block_bytes(5000).anonymous().unwrap_err().code(), 22);
}

#[test]
fn a_store_by_its_uri_is_memory() {
    small_memory();
    // SAFETY: a store that nobody else knows of.
    let mut region = unsafe { RegionOptions::new().length(1 << 20).store("memory:1M", Mode::Shared) }.unwrap();
    region.typed_mut::<f32>()[9] = 1.5;
    region.flush(..).unwrap();
    assert_eq!(region.typed::<f32>()[9], 1.5);
    region.unmap().unwrap();
}

#[test]
fn what_is_said_of_ranges_changes_nothing_that_they_hold() {
    small_memory();
    let mut region = Region::anonymous(CAP_BYTES).unwrap();
    region.typed_mut::<u32>().iter_mut().enumerate().for_each(|(index, word)| *word = index as u32);
    for advice in [Advice::Random, Advice::Sequential, Advice::Normal] {
        region.advise(.., advice).unwrap();
        region.prefetch(4096..1 << 20).unwrap();
        region.prefetch_ranges(&[0..1, 5 << 20..6 << 20, 7..7]).unwrap();
    }
    assert!(region.typed::<u32>().iter().enumerate().all(|(index, word)| *word == index as u32));
    region.prefetch(5..5).unwrap();
}

/// A store in memory that can be told to fail.
struct InMemory {
    bytes: Mutex<Box<[u8]>>,
    fails: Arc<AtomicBool>,
}

impl Store for InMemory {
    fn bytes(&self) -> u64 {
        self.bytes.lock().unwrap().len() as u64
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let bytes = self.bytes.lock().unwrap();
        let from = &bytes[offset as usize..];
        let count = buffer.len().min(from.len()).min(3000); // fewer than asked
        buffer[..count].copy_from_slice(&from[..count]);
        Ok(count)
    }

    fn write_at(&self, buffer: &[u8], offset: u64) -> io::Result<usize> {
        if self.fails.load(Ordering::Relaxed) {
            return Err(io::Error::from_raw_os_error(5));
        }
        self.bytes.lock().unwrap()[offset as usize..][..buffer.len()].copy_from_slice(buffer);
        Ok(buffer.len())
    }
}

#[test]
fn a_store_of_the_programs_own_is_read_and_written_and_dropped_with_its_region() {
    small_memory();
    let fails = Arc::new(AtomicBool::new(false));
    let store = InMemory { bytes: Mutex::new(pattern(60_000).into_boxed_slice()), fails: fails.clone() };
    // SAFETY: it gives back what was last written.
    let mut region = unsafe { RegionOptions::new().custom(store, Mode::Shared) }.unwrap();
    assert_eq!(region.as_slice(), pattern(60_000));
    region.as_mut_slice()[50_000] = 255;
    fails.store(true, Ordering::Relaxed);
    let failed = region.unmap().unwrap_err();
    assert_eq!(failed.error().code(), 5, "{failed}");
    let region = failed.into_region();
    assert_eq!(region.as_slice()[50_000], 255, "what could not be written is still there");
    fails.store(false, Ordering::Relaxed);
    assert_eq!(Arc::strong_count(&fails), 2);
    region.unmap().unwrap();
    assert_eq!(Arc::strong_count(&fails), 1);
}
