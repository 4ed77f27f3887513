//! Finds libspillway.so: in SPILLWAY_DIR, or where pkg-config says. The library of the system needs neither at run
//! time; another one is linked to from the output folder as well, where `cargo run` and `cargo test` look for
//! libraries.
use std::env;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

const LIBRARY: &str = "libspillway.so";
const HELP: &str = "install Spillway (libspillway-dev), or set SPILLWAY_DIR to the folder that it was installed to";

/// Below a prefix, the folder that holds the library.
fn folder_below(prefix: &Path) -> Option<PathBuf> {
    ["lib", "lib/x86_64-linux-gnu", "lib64"].iter().map(|name| prefix.join(name)).find(|folder| holds_library(folder))
}

fn holds_library(folder: &Path) -> bool {
    folder.join(LIBRARY).exists()
}

fn pkg_config() -> Result<PathBuf, String> {
    let program = env::var_os("PKG_CONFIG").unwrap_or_else(|| "pkg-config".into());
    let output = Command::new(&program)
        .args(["--variable=libdir", "spillway"])
        .output()
        .map_err(|error| format!("SPILLWAY_DIR is not set, and pkg-config cannot be run ({error}): {HELP}"))?;
    let folder = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    if !output.status.success() || folder.as_os_str().is_empty() {
        return Err(format!("SPILLWAY_DIR is not set, and pkg-config does not know spillway: {HELP}"));
    }
    if !holds_library(&folder) {
        return Err(format!(
            "pkg-config names {} for spillway, and there is no {LIBRARY} in it: {HELP}",
            folder.display()
        ));
    }
    Ok(folder)
}

fn find_library() -> Result<PathBuf, String> {
    match env::var_os("SPILLWAY_DIR").filter(|value| !value.is_empty()) {
        Some(prefix) => folder_below(Path::new(&prefix)).ok_or_else(|| {
            format!("SPILLWAY_DIR is {}, and there is no lib/{LIBRARY} in it", Path::new(&prefix).display())
        }),
        None => pkg_config(),
    }
}

/// Links to the library, and to those beside it that it needs, in cargo's output folder: that is in the search path of
/// what cargo starts.
fn link_in_output_folder(folder: &Path) -> std::io::Result<PathBuf> {
    let output = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    for entry in std::fs::read_dir(folder)? {
        let name = entry?.file_name();
        if !name.to_string_lossy().starts_with("libspillway") {
            continue;
        }
        let link = output.join(&name);
        match std::fs::remove_file(&link) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => symlink(folder.join(&name), &link)?,
        }
    }
    Ok(output)
}

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for name in ["SPILLWAY_DIR", "PKG_CONFIG", "PKG_CONFIG_PATH", "DOCS_RS"] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    if env::var_os("DOCS_RS").is_some() {
        return; // documentation is made without the library
    }
    let found = find_library().and_then(|folder| {
        let folder = folder.canonicalize().map_err(|error| format!("{}: {error}", folder.display()))?;
        let output = link_in_output_folder(&folder).map_err(|error| format!("cannot link to {LIBRARY}: {error}"))?;
        Ok((folder, output))
    });
    match found {
        Ok((folder, output)) => {
            println!("cargo:rustc-link-search=native={}", output.display());
            println!("cargo:rustc-link-lib=dylib=spillway");
            println!("cargo:libdir={}", folder.display());
        }
        Err(why) => {
            eprintln!("spillway: {why}");
            std::process::exit(1)
        }
    }
}
