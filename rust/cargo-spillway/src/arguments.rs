//! What the user said: which words are ours, which are cargo's, and which are the program's.

/// What to do with the project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// `cargo build`.
    Build,
    /// `cargo run`, below `spillway run`.
    Run,
    /// `cargo test`, each test program below `spillway run`.
    Test,
}

impl Verb {
    /// The word, for cargo and for messages.
    pub fn word(self) -> &'static str {
        match self {
            Verb::Build => "build",
            Verb::Run => "run",
            Verb::Test => "test",
        }
    }
}

/// A command line, taken apart.
#[derive(Debug, PartialEq, Eq)]
pub struct Request {
    /// What to do.
    pub verb: Verb,
    /// The engine that code is written for; `None`: spillway-clang's default.
    pub engine: Option<String>,
    /// Words for `spillway run`, such as `--memory`, `4G`.
    pub run_options: Vec<String>,
    /// Words for cargo, in their order; those of the program come last, behind `--`.
    pub cargo: Vec<String>,
    /// The value of cargo's `--target-dir`.
    pub target_dir: Option<String>,
    /// The value of cargo's `--manifest-path`.
    pub manifest_path: Option<String>,
    /// The value of cargo's `--profile`.
    pub profile: Option<String>,
    /// The value of cargo's `--target`.
    pub target: Option<String>,
}

/// `--name=value`, or `--name` and the word behind it.
fn value_of(word: &str, name: &str, rest: &mut std::slice::Iter<String>) -> Option<Result<String, String>> {
    let after = word.strip_prefix("--")?.strip_prefix(name)?;
    match after.strip_prefix('=') {
        Some(value) => Some(Ok(value.to_string())),
        None if after.is_empty() => {
            Some(rest.next().cloned().ok_or_else(|| format!("--{name} wants a value behind it")))
        }
        None => None,
    }
}

/// Takes `words`, those behind `cargo spillway`, apart. `run_names` are the options of `spillway run`, without dashes.
/// The error is one line for the user.
pub fn parse(words: &[String], run_names: &[String]) -> Result<Request, String> {
    let verb = match words.first().map(String::as_str) {
        Some("build" | "b") => Verb::Build,
        Some("run" | "r") => Verb::Run,
        Some("test" | "t") => Verb::Test,
        Some(other) => return Err(format!("{other} is not one of build, run and test; see cargo spillway --help")),
        None => return Err("say build, run or test; see cargo spillway --help".to_string()),
    };
    let mut request = Request {
        verb,
        engine: None,
        run_options: vec![],
        cargo: vec![],
        target_dir: None,
        manifest_path: None,
        profile: None,
        target: None,
    };
    let mut rest = words[1..].iter();
    while let Some(word) = rest.next() {
        if word == "--" {
            request.cargo.push(word.clone());
            request.cargo.extend(rest.by_ref().cloned());
        } else if let Some(value) = value_of(word, "engine", &mut rest) {
            request.engine = Some(checked_engine(value?)?);
        } else if word == "--no-check" && verb != Verb::Build {
            request.run_options.push(word.clone());
        } else if !take_run_option(&mut request, word, &mut rest, run_names)? {
            take_cargo_word(&mut request, word, &mut rest)?;
        }
    }
    Ok(request)
}

fn checked_engine(name: String) -> Result<String, String> {
    match name.as_str() {
        "mapped" | "translated" => Ok(name),
        _ => Err(format!("--engine={name} is unknown: mapped or translated")),
    }
}

fn take_run_option(
    request: &mut Request,
    word: &str,
    rest: &mut std::slice::Iter<String>,
    run_names: &[String],
) -> Result<bool, String> {
    for name in run_names {
        if let Some(value) = value_of(word, name, rest) {
            if request.verb == Verb::Build {
                return Err(format!("--{name} is for run and test: a program that is built takes it when it starts"));
            }
            request.run_options.extend([format!("--{name}"), value?]);
            return Ok(true);
        }
    }
    Ok(false)
}

// Cargo gets every word; a few of them matter to us, too.
fn take_cargo_word(request: &mut Request, word: &str, rest: &mut std::slice::Iter<String>) -> Result<(), String> {
    let looked_at = [
        ("target-dir", &mut request.target_dir),
        ("manifest-path", &mut request.manifest_path),
        ("profile", &mut request.profile),
        ("target", &mut request.target),
    ];
    for (name, place) in looked_at {
        if let Some(value) = value_of(word, name, rest) {
            let value = value?;
            request.cargo.push(format!("--{name}={value}"));
            *place = Some(value);
            return Ok(());
        }
    }
    request.cargo.push(word.to_string());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_string).collect()
    }

    fn parsed(text: &str) -> Result<Request, String> {
        parse(&words(text), &words("memory store stats"))
    }

    #[test]
    fn options_of_run_are_told_from_those_of_cargo() {
        let request = parsed("run --memory 64M --release --store=/data --bin x -- --memory 1 -- y").unwrap();
        assert_eq!(request.run_options, words("--memory 64M --store /data"));
        assert_eq!(request.cargo, words("--release --bin x -- --memory 1 -- y"));
    }

    #[test]
    fn words_that_only_begin_like_an_option_are_cargos() {
        assert_eq!(parsed("run --memoryless --targets").unwrap().cargo, words("--memoryless --targets"));
    }

    #[test]
    fn what_cargo_is_told_about_places_is_remembered() {
        let request = parsed("build --target-dir out --profile=fast --manifest-path a/Cargo.toml").unwrap();
        assert_eq!(request.target_dir.as_deref(), Some("out"));
        assert_eq!(request.profile.as_deref(), Some("fast"));
        assert_eq!(request.manifest_path.as_deref(), Some("a/Cargo.toml"));
        assert_eq!(request.cargo, words("--target-dir=out --profile=fast --manifest-path=a/Cargo.toml"));
    }

    #[test]
    fn mistakes_are_told_in_one_line() {
        for (text, says) in [
            ("", "say build, run or test"),
            ("bench", "bench is not one of"),
            ("run --memory", "--memory wants a value"),
            ("build --memory 4G", "--memory is for run and test"),
            ("build --engine fast", "--engine=fast is unknown"),
        ] {
            let line = parsed(text).unwrap_err();
            assert!(line.contains(says) && !line.contains('\n'), "{text}: {line}");
        }
    }
}
