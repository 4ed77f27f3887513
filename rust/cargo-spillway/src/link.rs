//! Before the linker: spillway-clang instead of it, with the program's bitcode instead of rustc's object.
use std::ffi::{OsStr, OsString};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;

use crate::command::environment;
use crate::fail;

/// The arguments in a response file of rustc's: one a line, with a backslash before white space and backslashes.
fn arguments_in(text: &str) -> Vec<OsString> {
    text.lines()
        .filter(|line| !line.is_empty())
        .map(|line| {
            let mut word = String::new();
            let mut letters = line.chars();
            while let Some(letter) = letters.next() {
                word.push(if letter == '\\' { letters.next().unwrap_or(letter) } else { letter });
            }
            word.into()
        })
        .collect()
}

fn is_code_of_rustc(word: &OsStr) -> bool {
    word.to_str().map_or(false, |word| word.ends_with(".rcgu.o"))
}

/// rustc's arguments with the bitcode in the place of its one object, and the runtime before everything that it is to
/// stand before. `None`: there is not exactly one object.
fn with_bitcode(words: &[OsString], bitcode: &OsStr) -> Option<Vec<OsString>> {
    if words.iter().filter(|word| is_code_of_rustc(word)).count() != 1 {
        return None;
    }
    let mut linked = vec![];
    for word in words {
        if !is_code_of_rustc(word) {
            linked.push(word.clone());
            continue;
        }
        linked.push(bitcode.to_owned());
        // Before rustc's -lc: the allocator of libc's functions is to be the runtime's.
        linked.extend(["-Wl,--push-state,--no-as-needed", "-lspillway", "-Wl,--pop-state"].map(OsString::from));
    }
    Some(linked)
}

/// `spillway-link WORDS`, as rustc calls it.
pub fn run(words: Vec<OsString>) -> ! {
    let variable =
        |name: &str| std::env::var_os(name).unwrap_or_else(|| fail("spillway-link is called by cargo spillway only"));
    let (clang, bitcode, level) =
        (variable(environment::CLANG), variable(environment::BITCODE), variable(environment::LEVEL));
    let flags = std::env::var(environment::FLAGS).unwrap_or_default();
    let words: Vec<OsString> = words
        .into_iter()
        .flat_map(|word| match word.to_str().and_then(|word| word.strip_prefix('@')) {
            Some(file) => match std::fs::read_to_string(file) {
                Ok(text) => arguments_in(&text),
                Err(error) => fail(&format!("cannot read rustc's arguments in {file}: {error}")),
            },
            None => vec![word],
        })
        .collect();
    if !Path::new(&bitcode).is_file() {
        fail(&format!("rustc has not written {}", Path::new(&bitcode).display()))
    }
    let linked = with_bitcode(&words, &bitcode).unwrap_or_else(|| {
        fail("rustc links several objects of the program, where one was to be; is codegen odd here?")
    });
    let mut command = Command::new(&clang);
    command.arg(level).args(["-Wno-override-module", "-ffunction-sections", "-fdata-sections"]);
    if words.iter().any(|word| word == "-shared") {
        command.arg("-fPIC");
    }
    command.args(flags.split_whitespace()).args(linked);
    let status =
        command.status().unwrap_or_else(|error| fail(&format!("cannot run {}: {error}", clang.to_string_lossy())));
    if status.success() {
        let _ = std::fs::remove_file(&bitcode); // as large as the program, and of no use any more
    }
    std::process::exit(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn the_bitcode_takes_the_place_of_the_object_and_the_runtime_comes_before_libc() {
        let linked =
            with_bitcode(&words("-m64 t/symbols.o d/a.a.1-cgu.0.rcgu.o -L d -lc -o a"), OsStr::new("d/a.bc")).unwrap();
        let expected =
            "-m64 t/symbols.o d/a.bc -Wl,--push-state,--no-as-needed -lspillway -Wl,--pop-state -L d -lc -o a";
        assert_eq!(linked, words(expected));
    }

    #[test]
    fn code_that_is_not_in_the_bitcode_is_not_linked_in_silence() {
        assert_eq!(with_bitcode(&words("a.rcgu.o b.rcgu.o"), OsStr::new("a.bc")), None);
        assert_eq!(with_bitcode(&words("a.o"), OsStr::new("a.bc")), None);
    }

    #[test]
    fn response_files_are_read_as_rustc_writes_them() {
        assert_eq!(
            arguments_in("-o\nmy\\ file\nback\\\\slash\n"),
            ["-o", "my file", "back\\slash"].map(OsString::from)
        );
    }
}
