//! What is one for the whole process: pins, the cap, counts. One test, since these are shared.
mod common;

use common::{small_memory, CAP_BYTES};
use spillway::{is_managed, set_memory_limit, statistics, SpillVec};

fn pins_are_counted_and_end_with_their_values() {
    let block = statistics().block_bytes;
    let mut vec: SpillVec<u64> = (0..1 << 20).collect();
    assert_eq!(statistics().pinned_bytes, 0);
    let first = vec.pin(..64 << 10).unwrap();
    let second = vec.pin(32 << 10..64 << 10).unwrap();
    let pinned = statistics().pinned_bytes;
    assert!((768 << 10..=(768 << 10) + 2 * block).contains(&pinned), "{pinned}");
    assert_eq!((first[9], second[9], vec[9]), (9, (32 << 10) + 9, 9), "others may read meanwhile");
    drop(first);
    assert!(statistics().pinned_bytes < pinned);
    drop(second);
    let mut third = vec.pin_mut(100..200).unwrap();
    third.fill(5);
    assert_eq!(statistics().pinned_bytes, block);
    drop(third);
    assert_eq!((statistics().pinned_bytes, vec[99], vec[100], vec[199], vec[200]), (0, 99, 5, 5, 200));
    std::mem::forget(vec.pin(..1000).unwrap());
    vec.reserve(4 << 20);
    vec.push(1);
    drop(vec);
    assert_eq!(statistics().pinned_bytes, 0, "a pin that was forgotten ends with its memory");
}

fn pins_get_half_of_the_memory() {
    let vec: SpillVec<u8> = std::iter::repeat(1).take(CAP_BYTES).collect();
    let error = vec.pin(..CAP_BYTES / 4 * 3).unwrap_err();
    assert_eq!(error.code(), 12, "{error}");
    assert_eq!(statistics().pinned_bytes, 0);
    let held = vec.pin(..CAP_BYTES / 4).unwrap();
    assert!(held.iter().all(|byte| *byte == 1));
}

fn the_cap_can_be_lowered_and_raised_again() {
    let vec: SpillVec<u64> = (0..CAP_BYTES as u64 / 8).collect();
    set_memory_limit(16 << 20).unwrap();
    assert_eq!(spillway::memory_limit(), 16 << 20);
    assert!(statistics().cached_bytes <= 16 << 20);
    assert!(vec.iter().copied().eq(0..CAP_BYTES as u64 / 8));
    let error = set_memory_limit(1 << 40).unwrap_err();
    assert_eq!(error.code(), 22, "{error}");
    set_memory_limit(CAP_BYTES as u64).unwrap();
}

fn an_ordinary_vec_is_managed_when_it_is_large() {
    let (small, large) = (vec![1u8; 100], vec![1u8; 1 << 20]);
    assert!(!is_managed(small.as_ptr()) && is_managed(large.as_ptr()));
    assert!(!is_managed(&CAP_BYTES));
}

fn options_come_too_late_once_something_is_managed() {
    assert_eq!(spillway::set_option("memory", "64M").unwrap_err().code(), 16);
    assert_eq!(spillway::set_option("memory", "64\0M").unwrap_err().code(), 22);
    spillway::flush_all().unwrap();
}

#[test]
fn the_process_as_a_whole() {
    small_memory();
    pins_are_counted_and_end_with_their_values();
    pins_get_half_of_the_memory();
    the_cap_can_be_lowered_and_raised_again();
    an_ordinary_vec_is_managed_when_it_is_large();
    options_come_too_late_once_something_is_managed();
}
