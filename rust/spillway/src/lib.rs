//! Memory on a store: data bigger than the machine's memory, through [Spillway](../README.md)'s C API.
//!
//! | what | for |
//! |---|---|
//! | [`SpillVec`] | a `Vec` in managed memory that grows without a copy |
//! | [`Region`], [`RegionOptions`] | bytes of a file or another store, or of none, as memory |
//! | [`PinnedSlice`], [`PinnedSliceMut`] | what stays in memory while they live |
//! | [`set_option`], [`memory_limit`], [`set_memory_limit`] | how much memory there is for all of it |
//! | [`statistics`] | what went on so far |
//!
//! A program with this crate is linked to libspillway, which is enough for all its large allocations to be managed: an
//! ordinary `Vec` or `HashMap`, too. So there is no `#[global_allocator]` here. How much memory they may take, and
//! where the rest goes, is said by who starts it (`spillway run --memory 4G --store /mnt/nvme -- PROGRAM`, or the
//! environment: `SPILLWAY_MEMORY`), or by [`set_option`].
//!
//! ```
//! use spillway::{statistics, SpillVec};
//!
//! spillway::set_option("memory", "32M")?; // the first thing in main()
//! let squares: SpillVec<u64> = (0..8 << 20).map(|number| number * number).collect(); // 64 MiB
//! assert_eq!(squares.iter().rev().take(2).copied().collect::<Vec<_>>(), [8388607u64.pow(2), 8388606u64.pow(2)]);
//! assert!(statistics().written_bytes > 0); // it had to spill
//! # Ok::<(), spillway::Error>(())
//! ```
//!
//! In a child of `fork` nothing here works but [`version`] and [`is_managed`]; memory is there, with what it held.
#![deny(missing_docs, unsafe_op_in_unsafe_fn, clippy::undocumented_unsafe_blocks)]

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
compile_error!("Spillway runs on Linux on x86-64 only");

mod error;
mod options;
mod pinned;
mod plain;
mod process;
mod range;
mod region;
mod remap;
mod store;
pub mod sys;
mod vec;
mod vec_traits;

pub use error::{Error, Result};
pub use options::RegionOptions;
pub use pinned::{PinnedSlice, PinnedSliceMut};
pub use plain::Plain;
pub use process::{flush_all, is_managed, memory_limit, set_memory_limit, set_option, statistics, version, Statistics};
pub use range::Advice;
pub use region::{Mode, Region, UnmapError};
pub use store::Store;
pub use vec::SpillVec;
pub use vec_traits::IntoIter;
