//! What the tests of a program share.
use std::sync::Once;

/// The cap that all tests run with.
pub const CAP_BYTES: usize = 32 << 20;

/// Sets the cap, before anything is managed. Every test begins with it. Recompiled for the translated engine a test
/// program has managed memory when it starts: then SPILLWAY_MEMORY is to say the same.
pub fn small_memory() {
    static SET: Once = Once::new();
    const EBUSY: i32 = 16;
    SET.call_once(|| {
        if let Err(error) = spillway::set_option("memory", "32M") {
            assert_eq!(error.code(), EBUSY, "{error}");
        }
    });
    assert_eq!(spillway::memory_limit(), CAP_BYTES as u64, "is SPILLWAY_MEMORY another one?");
}
