/// Types whose every pattern of bytes is a value, and which are nothing but their bytes: they may be read from a file.
///
/// # Safety
/// Any bytes are a value of the type; it has no padding, no pointers, no cells that change behind a shared reference,
/// and no destructor.
pub unsafe trait Plain: Copy + 'static {}

macro_rules! plain {
    ($($name:ty)*) => {
        // SAFETY: numbers: any bytes are one.
        $(unsafe impl Plain for $name {})*
    };
}
plain!(u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize f32 f64);

// SAFETY: elements that are plain, and nothing between them.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}
