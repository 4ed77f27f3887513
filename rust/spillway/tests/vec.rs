//! A SpillVec is a Vec, in what it holds, what it drops, and what it does when somebody panics.
mod common;

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicIsize, Ordering};
use std::sync::Arc;

use common::{small_memory, CAP_BYTES};
use spillway::{is_managed, statistics, SpillVec};

/// Numbers without an order (xorshift64).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

/// An element that is counted while it lives, and that may panic when it is copied or dropped.
struct Counted {
    live: Arc<AtomicIsize>,
    number: usize,
    panics_when_copied: bool,
    panics_when_dropped: bool,
}

impl Counted {
    fn new(live: &Arc<AtomicIsize>, number: usize) -> Self {
        live.fetch_add(1, Ordering::Relaxed);
        Counted { live: live.clone(), number, panics_when_copied: false, panics_when_dropped: false }
    }
}

impl Clone for Counted {
    fn clone(&self) -> Self {
        assert!(!self.panics_when_copied, "no copy of {}", self.number);
        Counted::new(&self.live, self.number)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.live.fetch_sub(1, Ordering::Relaxed);
        assert!(!self.panics_when_dropped || std::thread::panicking(), "no drop of {}", self.number);
    }
}

fn counted(live: &Arc<AtomicIsize>, count: usize) -> SpillVec<Counted> {
    (0..count).map(|number| Counted::new(live, number)).collect()
}

fn live_ones(live: &Arc<AtomicIsize>) -> isize {
    live.load(Ordering::Relaxed)
}

#[test]
fn it_holds_what_a_vec_holds_after_any_calls() {
    small_memory();
    let mut random = Random(0x5eed);
    let (mut ours, mut vec) = (SpillVec::<String>::new(), Vec::<String>::new());
    for step in 0..20_000 {
        let (text, at) = (format!("element {step}"), random.below(vec.len() + 1));
        match random.below(9) {
            0..=2 => (ours.push(text.clone()), vec.push(text)),
            3 => (ours.insert(at, text.clone()), vec.insert(at, text)),
            4 if at < vec.len() => (assert_eq!(ours.remove(at), vec.remove(at)), ()),
            5 if at < vec.len() => (assert_eq!(ours.swap_remove(at), vec.swap_remove(at)), ()),
            6 => (assert_eq!(ours.pop(), vec.pop()), ()),
            7 if step % 500 == 0 => (ours.truncate(at), vec.truncate(at)),
            8 if step % 500 == 0 => (ours.resize(at + 300, text.clone()), vec.resize(at + 300, text)),
            _ => (ours.extend_from_slice(&vec[..at.min(2)]), vec.extend_from_within(..at.min(2))),
        };
        assert_eq!(ours.len(), vec.len());
    }
    assert!(vec.len() > 1000, "the test is to end with some");
    assert_eq!(ours, vec);
    assert_eq!(ours.clone(), ours);
    assert_eq!(format!("{:?}", &ours[..2]), format!("{:?}", &vec[..2]));
    assert_eq!(ours.into_iter().rev().collect::<Vec<_>>(), vec.into_iter().rev().collect::<Vec<_>>());
}

#[test]
fn it_holds_more_than_memory() {
    small_memory();
    let written_before = statistics().written_bytes;
    let count = 4 * CAP_BYTES / 8;
    let numbers: SpillVec<u64> = (0..count as u64).map(|number| number * 3).collect();
    assert!(is_managed(numbers.as_ptr()) && is_managed(&numbers[count - 1]));
    assert!(numbers.iter().enumerate().all(|(index, number)| *number == index as u64 * 3));
    let spilled = statistics().written_bytes - written_before;
    assert!(spilled as usize > 2 * CAP_BYTES, "{spilled} bytes were written");
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let most: usize = line.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(most << 10 < 2 * CAP_BYTES + (32 << 20), "{most} KiB of memory");
}

#[test]
fn vectors_that_grow_in_each_others_way_keep_what_they_hold() {
    small_memory();
    let (mut odd, mut even) = (SpillVec::<u64>::new(), SpillVec::<u64>::new());
    let mut moves = 0;
    for number in 0..3_000_000u64 {
        let before = odd.as_ptr();
        odd.push(2 * number + 1);
        moves += usize::from(odd.as_ptr() != before);
        even.push(2 * number);
    }
    assert!(moves >= 2, "it moved {moves} times");
    assert!((0..3_000_000).all(|index| odd[index] == 2 * index as u64 + 1 && even[index] == 2 * index as u64));
}

#[test]
fn elements_are_dropped_once() {
    small_memory();
    let live = Arc::new(AtomicIsize::new(0));
    let mut vec = counted(&live, 1000);
    vec.truncate(900);
    assert_eq!(live_ones(&live), 900);
    drop(vec.remove(5));
    drop(vec.swap_remove(5));
    assert_eq!(live_ones(&live), 898);
    let mut elements = vec.into_iter();
    assert_eq!(elements.next().unwrap().number, 0);
    assert_eq!(elements.next_back().unwrap().number, 898);
    assert_eq!((elements.len(), live_ones(&live)), (896, 896));
    drop(elements);
    assert_eq!(live_ones(&live), 0);
    drop(counted(&live, 1000));
    assert_eq!(live_ones(&live), 0);
}

#[test]
fn a_panic_in_a_copy_leaves_nothing_twice_and_loses_nothing() {
    small_memory();
    let live = Arc::new(AtomicIsize::new(0));
    let mut vec = counted(&live, 100);
    vec[60].panics_when_copied = true;
    assert!(catch_unwind(AssertUnwindSafe(|| vec.clone())).is_err());
    assert_eq!(live_ones(&live), 100);
    let copied = catch_unwind(AssertUnwindSafe(|| {
        let mut copy = counted(&live, 1);
        copy.extend_from_slice(&vec);
    }));
    assert!(copied.is_err());
    drop(vec);
    assert_eq!(live_ones(&live), 0);
}

#[test]
fn a_panic_of_an_iterator_leaves_what_came_before() {
    small_memory();
    let live = Arc::new(AtomicIsize::new(0));
    let mut vec = counted(&live, 3);
    let more = (0..9).map(|number| if number < 5 { Counted::new(&live, number) } else { panic!("enough") });
    assert!(catch_unwind(AssertUnwindSafe(|| vec.extend(more))).is_err());
    assert_eq!((vec.len(), live_ones(&live)), (8, 8));
    drop(vec);
    assert_eq!(live_ones(&live), 0);
}

#[test]
fn a_panic_in_a_drop_drops_the_others_and_gives_the_memory_back() {
    small_memory();
    let live = Arc::new(AtomicIsize::new(0));
    let mut vec = counted(&live, 100);
    vec[40].panics_when_dropped = true;
    assert!(catch_unwind(AssertUnwindSafe(|| vec.truncate(30))).is_err());
    assert_eq!((vec.len(), live_ones(&live)), (30, 30));
    vec[10].panics_when_dropped = true;
    let address = vec.as_ptr();
    assert!(catch_unwind(AssertUnwindSafe(|| drop(vec))).is_err());
    assert_eq!(live_ones(&live), 0);
    // SAFETY: the address is looked at and not what is there.
    let gone = unsafe { spillway::sys::spw_unmap(address as *mut _) };
    assert_eq!(gone, -22, "the region is not there any more");

    let mut elements = counted(&live, 50).into_iter();
    elements.next();
    let mut rest: Vec<Counted> = elements.by_ref().take(1).collect();
    rest[0].panics_when_dropped = true;
    assert!(catch_unwind(AssertUnwindSafe(|| drop((rest, elements)))).is_err());
    assert_eq!(live_ones(&live), 0);
}

#[test]
fn types_without_size_take_no_memory_and_are_dropped() {
    small_memory();
    static DROPPED: AtomicIsize = AtomicIsize::new(0);
    struct Nothing;
    impl Drop for Nothing {
        fn drop(&mut self) {
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
    }
    let mut vec = SpillVec::new();
    (0..1000).for_each(|_| vec.push(Nothing));
    assert_eq!((vec.len(), vec.capacity(), is_managed(vec.as_ptr())), (1000, usize::MAX, false));
    vec.insert(3, Nothing);
    drop(vec.pop());
    assert_eq!((vec.iter().count(), DROPPED.load(Ordering::Relaxed)), (1000, 1));
    assert_eq!(vec.pin(..).unwrap().len(), 1000);
    let mut elements = vec.into_iter();
    drop((elements.next(), elements.next_back()));
    drop(elements);
    assert_eq!(DROPPED.load(Ordering::Relaxed), 1001);
}

fn stays_aligned<T: Copy + PartialEq + std::fmt::Debug>(element: impl Fn(u32) -> T) {
    let (mut one, mut other) = (SpillVec::new(), SpillVec::new());
    let mut held = vec![];
    for number in 0..(24 << 20) / std::mem::size_of::<T>() as u32 {
        one.push(element(number));
        other.push(element(number + 1));
        assert_eq!(one.as_ptr() as usize % std::mem::align_of::<T>(), 0);
        if one.len().is_power_of_two() {
            held.push(SpillVec::<u8>::with_capacity(1 << (12 + number % 3))); // so that addresses are of all kinds
        }
    }
    assert!(one.iter().enumerate().all(|(number, value)| *value == element(number as u32)));
    assert!(other.iter().enumerate().all(|(number, value)| *value == element(number as u32 + 1)));
}

#[test]
fn over_aligned_elements_stay_aligned_where_they_move() {
    small_memory();
    #[derive(Clone, Copy, PartialEq, Debug)]
    #[repr(align(64))]
    struct Line(u32);
    #[derive(Clone, Copy, PartialEq, Debug)]
    #[repr(align(16384))]
    struct Pages(u32);
    #[derive(Clone, Copy, PartialEq, Debug)]
    #[repr(align(131072))]
    struct Huge(u32);
    stays_aligned(Line);
    stays_aligned(Pages);
    stays_aligned(Huge);
}

#[test]
fn more_than_there_are_addresses_is_an_error_and_nothing_is_lost() {
    small_memory();
    let mut vec: SpillVec<u64> = (0..1000).collect();
    for additional in [usize::MAX, usize::MAX / 8, 1 << 42] {
        let error = vec.try_reserve(additional).unwrap_err();
        assert_eq!(error.code(), 12, "{error}");
    }
    assert_eq!(SpillVec::<u64>::try_with_capacity(1 << 50).unwrap_err().kind(), std::io::ErrorKind::OutOfMemory);
    let panicked = catch_unwind(AssertUnwindSafe(|| vec.reserve(usize::MAX))).unwrap_err();
    assert!(panicked.downcast_ref::<String>().unwrap().contains("SpillVec: more elements than"));
    vec.push(1000);
    assert!(vec.iter().copied().eq(0..=1000));
}

#[test]
fn indices_past_the_end_panic_and_change_nothing() {
    small_memory();
    let mut vec: SpillVec<u8> = (0..4).collect();
    for wrong in [
        &mut (|vec: &mut SpillVec<u8>| {
            vec.remove(4);
        }) as &mut dyn FnMut(&mut SpillVec<u8>),
        &mut |vec| {
            vec.swap_remove(4);
        },
        &mut |vec| vec.insert(5, 0),
        &mut |vec| drop(vec.pin(2..5)),
        &mut |vec| drop(vec.pin_mut(..=4)),
        &mut |vec| drop(vec.prefetch(5..)),
    ] {
        assert!(catch_unwind(AssertUnwindSafe(|| wrong(&mut vec))).is_err());
        assert_eq!(vec, [0, 1, 2, 3]);
    }
}

#[test]
fn what_was_truncated_gives_its_memory_back() {
    small_memory();
    let mut vec: SpillVec<u64> = (0..1 << 20).collect();
    vec.truncate(1000);
    vec.release_spare().unwrap();
    assert!(vec.iter().copied().eq(0..1000));
    // SAFETY: within the capacity, and bytes of the region's, which are zeros now.
    let spare = unsafe { std::slice::from_raw_parts(vec.as_ptr().add(512 << 10), 1000) };
    assert!(spare.iter().all(|word| *word == 0));
}

#[test]
fn it_crosses_threads_as_a_vec_does() {
    small_memory();
    fn crosses<T: Send + Sync>(value: T) -> T {
        value
    }
    let mut vec = crosses(SpillVec::from(&[1u32, 2, 3][..]));
    std::thread::scope(|scope| {
        let (left, right) = vec.split_at_mut(1);
        scope.spawn(move || left[0] = 10);
        scope.spawn(move || right[1] = 30);
    });
    assert_eq!(crosses(vec.into_iter()).collect::<Vec<_>>(), [10, 2, 30]);
}

#[test]
fn bytes_are_written_to_it() {
    small_memory();
    let mut bytes = SpillVec::<u8>::new();
    std::io::Write::write_all(&mut bytes, b"one ").unwrap();
    std::io::copy(&mut &b"two"[..], &mut bytes).unwrap();
    assert_eq!(bytes, *b"one two");
}
