//! Before rustc: where a program is linked, its bitcode is written as well, and our linker links it.
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::environment;
use crate::{become_program, fail, LINK_NAME};

/// What matters of a call of rustc.
#[derive(Debug, Default, PartialEq, Eq)]
struct Call {
    crate_name: String,
    crate_types: Vec<String>,
    out_dir: PathBuf,
    extra_filename: String,
    opt_level: String,
    is_test: bool,
    has_lto: bool,
}

impl Call {
    fn from(words: &[String]) -> Call {
        let mut call = Call { opt_level: "0".to_string(), ..Call::default() };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().map(String::as_str).unwrap_or_default().to_string();
            match word.as_str() {
                "--crate-name" => call.crate_name = value(),
                "--crate-type" => call.crate_types.push(value()),
                "--out-dir" => call.out_dir = value().into(),
                "--test" => call.is_test = true,
                "-C" | "--codegen" => call.take_codegen_option(&value()),
                word if word.starts_with("-C") => call.take_codegen_option(&word[2..]),
                _ => {}
            }
        }
        call
    }

    fn take_codegen_option(&mut self, option: &str) {
        match option.split_once('=').unwrap_or((option, "")) {
            ("lto", value) => self.has_lto = matches!(value, "" | "fat" | "yes" | "y" | "on" | "true"),
            ("extra-filename", value) => self.extra_filename = value.to_string(),
            ("opt-level", value) => self.opt_level = value.to_string(),
            _ => {}
        }
    }

    /// Does this call link a program, or a library for programs of other languages, whose code is all at hand? Cargo
    /// asks for link-time optimisation there, but not for build scripts and macros, which run in the compiler's
    /// world.
    fn is_linked(&self) -> bool {
        let types_are_linked = self.crate_types.iter().all(|kind| kind == "bin" || kind == "cdylib");
        self.has_lto && (self.is_test || (types_are_linked && !self.crate_types.is_empty()))
    }

    fn written(&self, extension: &str) -> PathBuf {
        self.out_dir.join(format!("{}{}.{extension}", self.crate_name, self.extra_filename))
    }

    fn level(&self) -> &'static str {
        match self.opt_level.as_str() {
            "0" => "-O0",
            "1" => "-O1",
            _ => "-O2", // the bitcode has been through rustc's own -O3
        }
    }
}

/// Dependencies of a rule of make, with `inputs` added to the first rule: what cargo looks at before it builds again.
/// `flags` is to be the same then, too.
fn with_inputs(rules: &str, inputs: &str, flags: &str) -> String {
    let mut text = String::new();
    let mut is_done = false;
    for line in rules.lines() {
        text += line;
        if !is_done && line.contains(": ") && !line.starts_with('#') {
            is_done = true;
            for input in inputs.split(':') {
                text += " ";
                text += &input.replace(' ', "\\ ");
            }
        }
        text += "\n";
    }
    format!("{text}\n# env-dep:{}={flags}\n", environment::FLAGS)
}

fn remember_inputs(rules: &Path) {
    let variable = |name| std::env::var(name).unwrap_or_default();
    if let Ok(text) = std::fs::read_to_string(rules) {
        let text = with_inputs(&text, &variable(environment::INPUTS), &variable(environment::FLAGS));
        if let Err(error) = std::fs::write(rules, text) {
            fail(&format!("cannot write {}: {error}", rules.display()))
        }
    }
}

/// `spillway-rustc RUSTC WORDS`, as cargo calls it.
pub fn run(words: Vec<OsString>) -> ! {
    let (rustc, words) = match words.split_first() {
        Some((rustc, words)) => (rustc, words),
        None => fail("spillway-rustc is called by cargo spillway only"),
    };
    let mut command = Command::new(rustc);
    command.args(words);
    let texts: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let call = Call::from(&texts);
    if !call.is_linked() {
        become_program(command)
    }
    let own = std::env::args_os().next().unwrap_or_default();
    let mut linker = OsString::from("linker=");
    linker.push(Path::new(&own).with_file_name(LINK_NAME));
    command.arg("--emit=llvm-bc").arg("-C").arg(linker).args(["-C", "linker-flavor=gcc"]);
    command.env(environment::BITCODE, call.written("bc")).env(environment::LEVEL, call.level());
    let status = command.status().unwrap_or_else(|error| fail(&format!("cannot run rustc: {error}")));
    if status.success() {
        remember_inputs(&call.written("d"));
    }
    std::process::exit(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(text: &str) -> Call {
        Call::from(&text.split_whitespace().map(str::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn programs_and_tests_are_linked_by_us_and_nothing_else() {
        assert!(call("--crate-name a --crate-type bin -C lto=fat").is_linked());
        assert!(call("--crate-name a --crate-type bin -Clto").is_linked());
        assert!(call("--crate-name a --test -C lto=fat").is_linked());
        assert!(call("--crate-name a --crate-type cdylib -C lto=fat").is_linked());
        assert!(!call("--crate-name build_script_build --crate-type bin").is_linked());
        assert!(!call("--crate-name a --crate-type lib -C linker-plugin-lto").is_linked());
        assert!(!call("--crate-name a --crate-type proc-macro -C lto=fat").is_linked());
        assert!(!call("--crate-name a --crate-type bin -C lto=thin").is_linked());
        assert!(!call("-vV").is_linked());
    }

    #[test]
    fn what_rustc_writes_is_found_by_its_name() {
        let call = call("--crate-name a --crate-type bin -C extra-filename=-01 --out-dir x/deps -C opt-level=s");
        assert_eq!(call.written("bc"), Path::new("x/deps/a-01.bc"));
        assert_eq!(call.level(), "-O2");
    }

    #[test]
    fn cargo_builds_again_when_the_pass_or_the_flags_change() {
        let rules = "t/a.d: src/main.rs\n\nsrc/main.rs:\n";
        let expected =
            "t/a.d: src/main.rs /b/clang /my\\ lib/pass.so\n\nsrc/main.rs:\n\n# env-dep:CARGO_SPILLWAY_FLAGS=-f\n";
        assert_eq!(with_inputs(rules, "/b/clang:/my lib/pass.so", "-f"), expected);
    }
}
