//! `cargo spillway build|run|test`: cargo, with the program's code instrumented for Spillway.
//!
//! One program with three jobs, told apart by the name that it is called by:
//!
//! 1. `cargo-spillway` (`command.rs`) looks for what is needed, and becomes cargo, which is told to do link-time
//!    optimisation and to call the two others.
//! 2. `spillway-rustc` (`compile.rs`) stands before rustc. Where a program is linked, it has rustc write the program's
//!    bitcode, too: one module with all its crates and the standard library in it.
//! 3. `spillway-link` (`link.rs`) stands before the linker: spillway-clang, with that bitcode in place of rustc's own
//!    object.
#![deny(missing_docs)]

mod arguments;
mod command;
mod compile;
mod link;
mod needs;

use std::ffi::OsStr;
use std::path::Path;

/// The name under which the program stands before rustc.
const RUSTC_NAME: &str = "spillway-rustc";
/// The name under which it stands before the linker.
const LINK_NAME: &str = "spillway-link";

/// Prints the one line that says what is wrong, and ends the process.
fn fail(why: &str) -> ! {
    eprintln!("cargo spillway: {why}");
    std::process::exit(2)
}

/// Becomes another program, or ends with a line that says why not.
fn become_program(mut command: std::process::Command) -> ! {
    let error = std::os::unix::process::CommandExt::exec(&mut command);
    fail(&format!("cannot run {}: {error}", command.get_program().to_string_lossy()))
}

fn main() {
    let mut words = std::env::args_os();
    let called_as = words.next().unwrap_or_default();
    let words: Vec<_> = words.collect();
    match Path::new(&called_as).file_name().and_then(OsStr::to_str) {
        Some(RUSTC_NAME) => compile::run(words),
        Some(LINK_NAME) => link::run(words),
        _ => command::run(words),
    }
}
