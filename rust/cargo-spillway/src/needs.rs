//! What has to be there: the compiler driver, the tool, a rustc whose bitcode the driver can read.
use std::path::{Path, PathBuf};
use std::process::Command;

/// The only target whose code can be instrumented.
pub const TARGET: &str = "x86_64-unknown-linux-gnu";

/// rustc, as far as it matters here.
#[derive(Debug, PartialEq, Eq)]
pub struct Rustc {
    /// `1.63.0`.
    pub release: String,
    /// `x86_64-unknown-linux-gnu`.
    pub host: String,
    /// The major version of its LLVM.
    pub llvm: u32,
}

/// Runs a command and returns what it prints.
fn output_of(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("cannot run {name}: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{name} failed: {}", said.lines().next().unwrap_or("it does not say why")));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Where a program of Spillway's is: below `SPILLWAY_DIR`, or in a folder of `PATH`.
pub fn find_tool(name: &str) -> Result<PathBuf, String> {
    if let Some(prefix) = std::env::var_os("SPILLWAY_DIR").filter(|value| !value.is_empty()) {
        let tool = Path::new(&prefix).join("bin").join(name);
        return if tool.is_file() {
            std::fs::canonicalize(&tool).map_err(|error| format!("{}: {error}", tool.display()))
        } else {
            Err(format!("SPILLWAY_DIR is {}, and there is no bin/{name} in it", Path::new(&prefix).display()))
        };
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(name)).find(|tool| tool.is_file());
    found.ok_or_else(|| {
        format!("{name} is not in PATH; install it, or set SPILLWAY_DIR to the folder whose bin/ it is in")
    })
}

/// The folder that Spillway was installed to, by where its compiler driver is; `None` when its library is elsewhere.
pub fn prefix_of(clang: &Path) -> Option<PathBuf> {
    let prefix = clang.canonicalize().ok()?.parent()?.parent()?.to_path_buf();
    let libraries = ["lib", "lib/x86_64-linux-gnu", "lib64"];
    libraries.iter().any(|folder| prefix.join(folder).join("libspillway.so").exists()).then_some(prefix)
}

fn number_behind(text: &str, words: &str) -> Option<u32> {
    let digits = &text[text.find(words)? + words.len()..];
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    digits[..end].parse().ok()
}

fn rustc_from(said: &str) -> Option<Rustc> {
    let line = |name: &str| said.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim().to_string());
    Some(Rustc { release: line("release:")?, host: line("host:")?, llvm: number_behind(said, "LLVM version: ")? })
}

/// The rustc that cargo will call.
pub fn rustc() -> Result<Rustc, String> {
    let program = std::env::var_os("RUSTC").filter(|name| !name.is_empty()).unwrap_or_else(|| "rustc".into());
    let said = output_of(Command::new(&program).arg("-vV"))?;
    rustc_from(&said).ok_or_else(|| format!("{} -vV does not tell its LLVM version", program.to_string_lossy()))
}

/// The major version of the LLVM that spillway-clang runs.
pub fn llvm_of_clang(clang: &Path) -> Result<u32, String> {
    let said = output_of(Command::new(clang).arg("--version"))?;
    number_behind(&said, "clang version ")
        .ok_or_else(|| format!("{} --version does not tell a version of clang", clang.display()))
}

/// The file of the pass that spillway-clang loads.
pub fn pass_of_clang(clang: &Path) -> Result<PathBuf, String> {
    let said = output_of(Command::new(clang).arg("--spillway-version"))?;
    let pass = said.lines().find_map(|line| line.strip_prefix("pass: ")).map(PathBuf::from);
    match pass {
        Some(pass) if pass.is_file() => Ok(pass),
        Some(pass) => Err(format!("the pass of {} is missing: {}", clang.display(), pass.display())),
        None => Err(format!("{} is no spillway-clang", clang.display())),
    }
}

/// Why this rustc and this clang do not go together, in one line.
pub fn mismatch(rustc: &Rustc, clang_llvm: u32) -> Option<String> {
    if rustc.host != TARGET {
        return Some(format!("only {TARGET} can be instrumented, and rustc's host is {}", rustc.host));
    }
    if rustc.llvm <= clang_llvm {
        return None;
    }
    Some(format!(
        "rustc {} writes bitcode of LLVM {}, which spillway-clang, of LLVM {clang_llvm}, cannot read: take an older \
         Rust (cargo +1.86 spillway ... has LLVM 19; PATH=/usr/bin:$PATH finds the system's), or a Spillway built for \
         LLVM {}",
        rustc.release, rustc.llvm, rustc.llvm
    ))
}

/// The names of the options of `spillway run`, without dashes.
pub fn run_option_names(spillway: &Path) -> Result<Vec<String>, String> {
    let said = output_of(Command::new(spillway).arg("options"))?;
    let names: Vec<String> = said
        .lines()
        .filter_map(|line| line.strip_prefix("--")?.split_whitespace().next())
        .filter(|name| *name != "engine")
        .map(str::to_string)
        .collect();
    if names.iter().any(|name| name == "memory") {
        Ok(names)
    } else {
        Err(format!("{} options does not list the options of run", spillway.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "rustc 1.95.0 (59807616e 2026-04-14)\nbinary: rustc\nhost: x86_64-unknown-linux-gnu\n\
                        release: 1.95.0\nLLVM version: 22.1.2\n";

    #[test]
    fn rustcs_versions_are_read() {
        let expected = Rustc { release: "1.95.0".into(), host: TARGET.into(), llvm: 22 };
        assert_eq!(rustc_from(SAID), Some(expected));
        assert_eq!(rustc_from("rustc 1.95.0"), None);
    }

    #[test]
    fn a_rustc_of_a_newer_llvm_is_refused_and_one_of_the_same_is_not() {
        let rustc = rustc_from(SAID).unwrap();
        assert_eq!(mismatch(&rustc, 22), None);
        let line = mismatch(&rustc, 19).unwrap();
        assert!(line.contains("rustc 1.95.0 writes bitcode of LLVM 22") && !line.contains('\n'), "{line}");
    }

    #[test]
    fn another_host_is_refused() {
        let rustc = Rustc { release: "1.63.0".into(), host: "aarch64-unknown-linux-gnu".into(), llvm: 14 };
        assert!(mismatch(&rustc, 19).unwrap().contains("aarch64"));
    }

    #[test]
    fn clangs_version_is_the_number_behind_its_name() {
        assert_eq!(number_behind("Debian clang version 19.1.7 (3)", "clang version "), Some(19));
        assert_eq!(number_behind("gcc version 12", "clang version "), None);
    }
}
