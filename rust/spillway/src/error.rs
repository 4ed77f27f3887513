use std::ffi::CStr;
use std::fmt;
use std::io;
use std::os::raw::c_int;

use crate::sys;

/// What went wrong: an error number of the system's, and the runtime's line about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    code: i32,
    message: String,
}

/// The result of what can fail here.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn new(code: i32, message: impl Into<String>) -> Self {
        Error { code, message: message.into() }
    }

    /// The error number, positive: `EINVAL` is 22.
    pub fn code(&self) -> i32 {
        self.code
    }

    /// What kind of error of the standard library that is.
    pub fn kind(&self) -> io::ErrorKind {
        io::Error::from_raw_os_error(self.code).kind()
    }

    /// One line about it.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Error {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        io::Error::new(error.kind(), error)
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Error::new(error.raw_os_error().unwrap_or(EIO), error.to_string())
    }
}

pub(crate) const EIO: i32 = 5;
pub(crate) const EINVAL: i32 = 22;
pub(crate) const ENOMEM: i32 = 12;
pub(crate) const ENOSYS: i32 = 38;

/// What a function of the C API says by its result, 0 or a negative errno, for its thread's last call.
pub(crate) fn check(result: c_int) -> Result<()> {
    if result >= 0 {
        return Ok(());
    }
    // SAFETY: the message is a C string, good until this thread's next call, and copied before that.
    let message = unsafe { CStr::from_ptr(sys::spw_error_message()) }.to_string_lossy().into_owned();
    if message.is_empty() {
        return Err(io::Error::from_raw_os_error(-result).into());
    }
    Err(Error::new(-result, message))
}
