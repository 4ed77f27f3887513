//! What the tests of a program share.
use std::sync::Once;

/// The cap that all tests run with.
pub const CAP_BYTES: usize = 32 << 20;

/// Sets the cap, before anything is managed. Every test begins with it.
pub fn small_memory() {
    static SET: Once = Once::new();
    SET.call_once(|| {
        spillway::set_option("memory", "32M").expect("nothing is managed yet");
        spillway::set_option("stats", "off").expect("nothing is managed yet");
    });
    assert_eq!(spillway::memory_limit(), CAP_BYTES as u64);
}
