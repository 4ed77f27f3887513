//! A journal of bookings, and what is on each account.
use std::collections::{BTreeMap, HashMap};

include!(concat!(env!("OUT_DIR"), "/currencies.rs"));

/// A movement of money; negative amounts leave the account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Booking {
    pub account: u32,
    pub cents: i64,
    pub text: String,
}

/// Bookings that follow from a seed.
pub struct Bookings {
    state: u64,
    accounts: u32,
}

impl Bookings {
    /// An endless row of bookings on `accounts` accounts.
    pub fn new(seed: u64, accounts: u32) -> Self {
        Bookings { state: seed | 1, accounts }
    }

    fn next_number(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state
    }
}

impl Iterator for Bookings {
    type Item = Booking;

    fn next(&mut self) -> Option<Booking> {
        let (account, amount, currency) = (self.next_number(), self.next_number(), self.next_number());
        let cents = (amount % 20_001) as i64 - 10_000;
        let name = CURRENCIES[currency as usize % CURRENCIES.len()];
        let account = (account % u64::from(self.accounts)) as u32;
        Some(Booking { account, cents, text: format!("{name} {cents:+} on {account:08}") })
    }
}

/// All bookings by account.
#[derive(Default)]
pub struct Journal {
    accounts: HashMap<u32, Vec<Booking>>,
}

impl Journal {
    /// Takes a booking; panics when it moves nothing.
    pub fn book(&mut self, booking: Booking) {
        assert!(booking.cents != 0, "a booking of nothing");
        self.accounts.entry(booking.account).or_default().push(booking);
    }

    /// How many accounts have bookings.
    pub fn accounts(&self) -> usize {
        self.accounts.len()
    }

    /// Accounts by what is on them.
    pub fn by_balance(&self) -> BTreeMap<(i64, u32), usize> {
        let balance = |bookings: &[Booking]| bookings.iter().map(|booking| booking.cents).sum::<i64>();
        self.accounts.iter().map(|(account, bookings)| ((balance(bookings), *account), bookings.len())).collect()
    }

    /// All bookings, ordered by text.
    pub fn sorted(&self) -> Vec<&Booking> {
        let mut all: Vec<&Booking> = self.accounts.values().flatten().collect();
        all.sort_by(|a, b| (&a.text, a.account).cmp(&(&b.text, b.account)));
        all
    }
}
