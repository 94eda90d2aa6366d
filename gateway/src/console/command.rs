//! How the operator starts this program.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

/// The command line that starts this program with `command` (may be empty) and the configuration `file`, as the program was
/// started now: with cargo, by a path, or by its name.
pub(crate) fn command_line(command: &str, file: Option<&Path>) -> String {
    let file = file.filter(|file| *file != Path::new("rejoinder.toml"));
    let option = file.map(|file| format!("--config {}", shell_quoted(file)));
    let data = data_of(std::env::args_os().skip(1)).map(|folder| format!("--data {}", shell_quoted(&folder)));
    let options = [option.as_deref(), data.as_deref()].map(Option::unwrap_or_default);
    let arguments: Vec<_> = [command].into_iter().chain(options).filter(|it| !it.is_empty()).collect();
    let program = std::env::args_os().next().filter(|name| !name.is_empty());
    let program = program.map_or_else(|| PathBuf::from(env!("CARGO_PKG_NAME")), PathBuf::from);
    // Cargo sets this for what `cargo run` starts.
    let is_cargo_run = std::env::var_os("CARGO_PKG_NAME").is_some_and(|package| package == env!("CARGO_PKG_NAME"));
    line(&program, is_cargo_run, &arguments.join(" "))
}

/// The data directory that these arguments name.
fn data_of(arguments: impl Iterator<Item = OsString>) -> Option<PathBuf> {
    let mut arguments = arguments.skip_while(|argument| !argument.to_string_lossy().starts_with("--data"));
    let named = arguments.next()?.into_string().ok()?;
    match named.strip_prefix("--data") {
        Some("") => arguments.next().map(PathBuf::from),
        rest => rest?.strip_prefix('=').map(PathBuf::from),
    }
}

fn line(program: &Path, is_cargo_run: bool, arguments: &str) -> String {
    // Cargo puts what it builds into a folder that has the profile's name, except for the development profile.
    let profile = program.parent().and_then(Path::file_name).and_then(|name| name.to_str()).filter(|_| is_cargo_run);
    let start = match profile {
        None => shell_quoted(program),
        Some("debug") => "cargo run".to_owned(),
        Some("release") => "cargo run --release".to_owned(),
        Some(profile) => format!("cargo run --profile {profile}"),
    };
    match (arguments, profile) {
        ("", _) => start,
        (_, None) => format!("{start} {arguments}"),
        (_, Some(_)) => format!("{start} -- {arguments}"),
    }
}

/// A path quoted for a shell, also inside double quotes and `$( )`.
pub(crate) fn shell_quoted(path: &Path) -> String {
    let path = path.display().to_string();
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "/._-+,:@%".contains(char);
    if path.chars().all(is_plain) { path } else { format!("'{}'", path.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[test]
    fn a_file_that_is_not_the_usual_one_is_named() {
        let with = |file: &str| command_line("init", Some(Path::new(file)));

        assert!(
            with("my files/bot.toml").ends_with(" init --config 'my files/bot.toml'"),
            "{}",
            with("my files/bot.toml")
        );
        assert_eq!(with("rejoinder.toml"), command_line("init", None));
    }

    #[test]
    fn the_data_directory_is_the_one_that_was_named() {
        let found = |arguments: &[&str]| data_of(arguments.iter().map(OsString::from));

        assert_eq!(found(&["run", "--data", "x"]), Some("x".into()));
        assert_eq!(found(&["--data=y", "run"]), Some("y".into()));
        assert_eq!(found(&["run", "--database", "z"]), None);
    }

    #[rstest]
    #[case("rejoinder", false, "init", "rejoinder init")]
    #[case("rejoinder", false, "", "rejoinder")]
    #[case("/opt/my tools/rejoinder", false, "init", "'/opt/my tools/rejoinder' init")]
    #[case("./target/release/rejoinder", false, "init", "./target/release/rejoinder init")]
    #[case("target/release/rejoinder", true, "init", "cargo run --release -- init")]
    #[case("target/release/rejoinder", true, "", "cargo run --release")]
    #[case("/src/target/debug/rejoinder", true, "init", "cargo run -- init")]
    #[case("target/dist/rejoinder", true, "init", "cargo run --profile dist -- init")]
    fn the_command_is_named_as_it_was_started(
        #[case] program: &str,
        #[case] is_cargo_run: bool,
        #[case] arguments: &str,
        #[case] expected: &str,
    ) {
        assert_eq!(line(Path::new(program), is_cargo_run, arguments), expected);
    }
}
