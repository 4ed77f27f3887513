//! The command itself: looks for what is needed, says what is missing, and becomes cargo.
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::arguments::{parse, Request, Verb};
use crate::{become_program, fail, needs, LINK_NAME, RUSTC_NAME};

const HELP: &str = "cargo spillway: builds Rust programs that Spillway runs on data bigger than memory

  cargo spillway build [--engine E] [ARGUMENTS OF cargo build]
  cargo spillway run   [--engine E] [OPTIONS OF spillway run] [ARGUMENTS OF cargo run] [-- ARGUMENTS OF THE PROGRAM]
  cargo spillway test  [--engine E] [OPTIONS OF spillway run] [ARGUMENTS OF cargo test]

All crates of the program, and the standard library, go through spillway-clang as one module of LLVM bitcode, so
link-time optimisation is on and every change of the program takes as long as a release build with lto = \"fat\".
What is built lies in target/spillway, beside cargo's own in target.

  --engine E       write code for this engine: mapped (the default) or translated
  --memory SIZE, --store DIRECTORY, --stats text, ...
                   the options of spillway run (spillway options lists them); run and test only
Environment: SPILLWAY_DIR, where Spillway is installed (default: what PATH finds); RUSTC, the rustc to use, whose LLVM
must not be newer than spillway-clang's (rustc --version --verbose).

  cargo spillway run --release --memory 1G --store /mnt/nvme -- data.bin
";

/// Where things are and what is set, for the other two jobs (`compile.rs`, `link.rs`).
pub mod environment {
    /// spillway-clang, a path.
    pub const CLANG: &str = "CARGO_SPILLWAY_CLANG";
    /// Options for spillway-clang, separated by white space.
    pub const FLAGS: &str = "CARGO_SPILLWAY_FLAGS";
    /// Files that, when they change, make what was built out of date; separated by colons.
    pub const INPUTS: &str = "CARGO_SPILLWAY_INPUTS";
    /// From compile.rs to link.rs: the bitcode of the program that is being linked, a path.
    pub const BITCODE: &str = "CARGO_SPILLWAY_BITCODE";
    /// From compile.rs to link.rs: how far to optimise, `-O0` to `-O3`.
    pub const LEVEL: &str = "CARGO_SPILLWAY_LEVEL";
}

fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// The folder for what is built: `spillway` in the project's own target folder, or the one that the user named.
fn target_folder(request: &Request) -> Result<PathBuf, String> {
    if let Some(folder) = &request.target_dir {
        return absolute(Path::new(folder));
    }
    for name in ["CARGO_TARGET_DIR", "CARGO_BUILD_TARGET_DIR"] {
        if let Some(folder) = std::env::var_os(name).filter(|value| !value.is_empty()) {
            return absolute(&Path::new(&folder).join("spillway"));
        }
    }
    let mut locate = cargo();
    locate.args(["locate-project", "--workspace", "--message-format", "plain"]);
    if let Some(manifest) = &request.manifest_path {
        locate.args(["--manifest-path", manifest]);
    }
    let output = locate.output().map_err(|error| format!("cannot run cargo: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(said
            .lines()
            .next()
            .unwrap_or("there is no project here")
            .trim_start_matches("error: ")
            .to_string());
    }
    let manifest = String::from_utf8_lossy(&output.stdout);
    let project = Path::new(manifest.trim_end()).parent().ok_or("cargo does not say where the project is")?;
    Ok(project.join("target/spillway"))
}

fn absolute(path: &Path) -> Result<PathBuf, String> {
    std::env::current_dir().map(|here| here.join(path)).map_err(|error| format!("the current folder: {error}"))
}

/// This program under another name: a symbolic link in `folder`.
fn job(folder: &Path, name: &str) -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|error| format!("cannot find my own file: {error}"))?;
    let link = folder.join(name);
    if std::fs::read_link(&link).map_or(false, |target| target == own) {
        return Ok(link);
    }
    let fresh = folder.join(format!("{name}.{}", std::process::id()));
    let made = std::fs::create_dir_all(folder)
        .and_then(|()| std::os::unix::fs::symlink(&own, &fresh))
        .and_then(|()| std::fs::rename(&fresh, &link));
    made.map_err(|error| format!("cannot make {}: {error}", link.display()))?;
    Ok(link)
}

/// A list of strings as TOML writes it.
fn toml_list(words: &[String]) -> String {
    let quoted: Vec<String> = words
        .iter()
        .map(|word| {
            let escaped: String = word
                .chars()
                .map(|c| match c {
                    '"' | '\\' => format!("\\{c}"),
                    c if c.is_control() => format!("\\u{:04x}", c as u32),
                    c => c.to_string(),
                })
                .collect();
            format!("\"{escaped}\"")
        })
        .collect();
    format!("[{}]", quoted.join(", "))
}

/// What is needed, and found.
struct Tools {
    clang: PathBuf,
    pass: PathBuf,
    spillway: Option<PathBuf>,
}

fn find_tools(request: &Request, spillway: Option<PathBuf>) -> Result<Tools, String> {
    match &request.target {
        Some(target) if target != needs::TARGET => {
            return Err(format!("--target={target}: only {} can be instrumented", needs::TARGET))
        }
        _ => {}
    }
    for name in ["RUSTC_WORKSPACE_WRAPPER", "CARGO_BUILD_RUSTC_WORKSPACE_WRAPPER"] {
        if std::env::var_os(name).is_some() {
            return Err(format!("{name} is set, which this command needs for itself: unset it"));
        }
    }
    let clang = needs::find_tool("spillway-clang")?;
    let pass = needs::pass_of_clang(&clang)?;
    match needs::mismatch(&needs::rustc()?, needs::llvm_of_clang(&clang)?) {
        Some(why) => Err(why),
        None => Ok(Tools { clang, pass, spillway }),
    }
}

/// Link-time optimisation for every profile that may be used, and no incremental compilation, which it excludes.
fn profile_variables(request: &Request) -> Vec<(String, &'static str)> {
    let mut variables = vec![("CARGO_INCREMENTAL".to_string(), "0")];
    for profile in ["dev", "release", "test", "bench"].into_iter().chain(request.profile.as_deref()) {
        let name = profile.to_uppercase().replace('-', "_");
        variables.push((format!("CARGO_PROFILE_{name}_LTO"), "fat"));
        variables.push((format!("CARGO_PROFILE_{name}_INCREMENTAL"), "false"));
    }
    variables
}

fn cargo_command(request: &Request, tools: &Tools) -> Result<Command, String> {
    let folder = target_folder(request)?;
    let jobs = folder.join(".cargo-spillway");
    job(&jobs, LINK_NAME)?;
    let mut command = cargo();
    command.arg(request.verb.word());
    if request.target_dir.is_none() {
        command.arg("--target-dir").arg(&folder);
    }
    if let Some(spillway) = &tools.spillway {
        let mut runner = vec![spillway.to_string_lossy().into_owned(), "run".to_string()];
        runner.extend(request.run_options.iter().cloned());
        runner.push("--".to_string());
        command.arg("--config").arg(format!("target.{}.runner={}", needs::TARGET, toml_list(&runner)));
    }
    command.args(&request.cargo);
    command.envs(profile_variables(request));
    command.env("RUSTC_WORKSPACE_WRAPPER", job(&jobs, RUSTC_NAME)?);
    command.env(environment::CLANG, &tools.clang);
    let engine = request.engine.as_ref().map(|engine| format!("-fspillway-engine={engine}"));
    command.env(environment::FLAGS, engine.unwrap_or_default());
    if let (None, Some(prefix)) = (std::env::var_os("SPILLWAY_DIR"), needs::prefix_of(&tools.clang)) {
        command.env("SPILLWAY_DIR", prefix); // for the build script of the crate spillway-memory
    }
    let mut inputs = OsString::from(&tools.clang);
    inputs.push(":");
    inputs.push(&tools.pass);
    command.env(environment::INPUTS, inputs);
    Ok(command)
}

/// The options of `spillway run`, and where it is. Only build does without.
fn runner(words: &[String]) -> Result<(Option<PathBuf>, Vec<String>), String> {
    let is_build = matches!(words.first().map(String::as_str), Some("build" | "b"));
    match needs::find_tool("spillway") {
        Ok(spillway) => {
            let names = needs::run_option_names(&spillway)?;
            Ok((Some(spillway).filter(|_| !is_build), names))
        }
        Err(_) if is_build => Ok((None, vec![])),
        Err(why) => Err(why),
    }
}

fn prepared(words: &[String]) -> Result<Command, String> {
    if !matches!(words.first().map(String::as_str), Some("build" | "b" | "run" | "r" | "test" | "t")) {
        parse(words, &[])?; // says which word is wrong, whatever is installed
    }
    let (spillway, run_names) = runner(words)?;
    let request = parse(words, &run_names)?;
    debug_assert!(request.verb == Verb::Build || spillway.is_some());
    let tools = find_tools(&request, spillway)?;
    cargo_command(&request, &tools)
}

/// `cargo-spillway spillway WORDS`, as cargo calls it, or `cargo-spillway WORDS`.
pub fn run(words: Vec<OsString>) -> ! {
    let words: Result<Vec<String>, _> = words.into_iter().map(OsString::into_string).collect();
    let mut words = words.unwrap_or_else(|word| fail(&format!("{word:?} is no UTF-8")));
    if words.first().map_or(false, |word| word == "spillway") {
        words.remove(0);
    }
    let own = words.iter().take_while(|word| *word != "--");
    if own.clone().next().is_none() || own.clone().any(|word| word == "--help" || word == "-h") {
        print!("{HELP}");
        std::process::exit(0)
    }
    if words[0] == "--version" || words[0] == "-V" {
        println!("cargo-spillway {}", env!("CARGO_PKG_VERSION"));
        std::process::exit(0)
    }
    match prepared(&words) {
        Ok(command) => become_program(command),
        Err(why) => fail(&why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_runner_is_written_as_toml_reads_it() {
        let words = ["a b", "say \"x\"", "back\\slash", "new\nline"].map(str::to_string);
        assert_eq!(toml_list(&words), r#"["a b", "say \"x\"", "back\\slash", "new\u000aline"]"#);
    }

    #[test]
    fn a_profile_of_the_users_own_is_optimised_at_link_time_too() {
        let request = parse(&["build".to_string(), "--profile=very-fast".to_string()], &[]).unwrap();
        let variables = profile_variables(&request);
        assert!(variables.contains(&("CARGO_PROFILE_VERY_FAST_LTO".to_string(), "fat")));
        assert!(variables.contains(&("CARGO_PROFILE_RELEASE_LTO".to_string(), "fat")));
    }
}
