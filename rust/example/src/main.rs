//! Books as many movements of money as it is told, and prints what came of it: `ledger COUNT`.
//!
//! A program like many: collections of collections, strings, threads, a panic that is caught, a dependency with a build
//! script. Nothing in it knows of Spillway.
use journal::{Booking, Bookings, Journal};

/// FNV-1a of everything that is told to it.
fn checksum(bookings: &[&Booking]) -> u64 {
    let fold = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    bookings.iter().fold(0xcbf2_9ce4_8422_2325, |sum, booking| booking.text.as_bytes().iter().fold(sum, fold))
}

/// A journal with `count` bookings, made by a thread of its own, and how many were refused.
fn filled(seed: u64, count: usize) -> (Journal, usize) {
    let mut journal = Journal::default();
    let mut refused = 0;
    for booking in Bookings::new(seed, (count / 20 + 1) as u32).take(count) {
        let booked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| journal.book(booking)));
        refused += usize::from(booked.is_err());
    }
    (journal, refused)
}

fn main() {
    let count = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(100_000);
    std::panic::set_hook(Box::new(|_| ())); // refused bookings are counted, not told
    let threads = [1, 2, 3].map(|seed| std::thread::spawn(move || filled(seed * 7919, count / 3)));
    for (number, thread) in threads.into_iter().enumerate() {
        let (journal, refused) = thread.join().expect("a thread that catches its panics");
        let balances = journal.by_balance();
        let ((least, poorest), bookings) = balances.iter().next().expect("at least one account");
        println!(
            "journal {number}: {} accounts, {refused} bookings refused, least {least} on {poorest} of {bookings}, {:x}",
            journal.accounts(),
            checksum(&journal.sorted())
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bookings_of_nothing_are_refused_and_the_others_are_there() {
        let (journal, refused) = filled(7919, 60_000);
        assert!(refused > 0);
        assert_eq!(journal.sorted().len() + refused, 60_000);
    }
}
