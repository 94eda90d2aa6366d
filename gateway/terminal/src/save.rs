//! Saves the files that the gateway itself made, such as an export.

use std::{
    fs::File as Output,
    io::{self, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, ensure};

use super::{
    door,
    frames::{File, Signal},
};

/// The type of what is saved.
const SAVED: &str = "text/markdown";

/// The largest file, in bytes. An export has one mebibyte.
const MOST: usize = 2 << 20;

/// How long the gateway may take to give a file.
const TIMEOUT: Duration = Duration::from_secs(15);

/// How many names are tried.
const NAMES: u32 = 100;

/// The files of what the gateway said that are to be saved. An agent writes no file here.
pub(crate) fn files_to_save(shown: &Signal) -> impl Iterator<Item = &File> {
    let is_gateways = shown.agent.is_none();
    shown.files.iter().filter(move |file| is_gateways && file.is_stored && file.r#type == SAVED)
}

/// Saves a file in the working directory, and says what became of it.
pub(crate) async fn save_file(file: File) -> String {
    match fetched(&file).await {
        Ok(content) => saved(&file.name, &content, std::env::current_dir),
        Err(error) => format!("{} cannot be read: {error:#}", file.name),
    }
}

async fn fetched(file: &File) -> anyhow::Result<Vec<u8>> {
    let url = file.url.as_deref().context("it has no link")?;
    let http = door::http(TIMEOUT)?;
    let response = http.get(url).send().await.and_then(reqwest::Response::error_for_status);
    // The link opens the file to everybody.
    let mut response = response.map_err(reqwest::Error::without_url)?;
    let mut content = Vec::new();
    while let Some(part) = response.chunk().await.map_err(reqwest::Error::without_url)? {
        content.extend_from_slice(&part);
        ensure!(content.len() <= MOST, "it has more than {MOST} bytes");
    }
    Ok(content)
}

/// Saves a file, and says where. Replaces no file. The folder may be gone.
fn saved(name: &str, content: &[u8], folder: impl Fn() -> io::Result<PathBuf>) -> String {
    match folder().and_then(|folder| save(name, content, &folder)) {
        Ok(path) => format!("{name} is saved as {}", path.display()),
        Err(error) => format!("{name} cannot be saved in the working directory: {error}"),
    }
}

fn save(name: &str, content: &[u8], folder: &Path) -> io::Result<PathBuf> {
    let name = Path::new(name).file_name().map(Path::new).filter(|name| !name.to_string_lossy().starts_with('.'));
    let name = name.unwrap_or(Path::new("conversation.md"));
    let part =
        |part: Option<&std::ffi::OsStr>| part.map(|part| part.to_string_lossy().into_owned()).unwrap_or_default();
    let (stem, ending) = (part(name.file_stem()), part(name.extension()));
    for number in 1..=NAMES {
        let path = match number {
            1 => folder.join(name),
            _ => folder.join(format!("{stem}-{number}.{ending}")),
        };
        match Output::options().write(true).create_new(true).open(&path) {
            Ok(mut output) => return output.write_all(content).map(|()| path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::{super::frames::examples, *};

    #[test]
    fn a_file_of_the_gateway_is_saved_and_replaces_none() {
        let folder = tempfile::tempdir().unwrap();

        for name in ["notes.md", "notes-2.md"] {
            let path = folder.path().join(name);

            let told = saved("notes.md", b"hi", || Ok(folder.path().to_owned()));

            assert_eq!(std::fs::read(&path).unwrap(), b"hi");
            assert_eq!(told, format!("notes.md is saved as {}", path.display()));
        }
    }

    #[rstest]
    #[case("../up.md", "up.md")]
    #[case("/etc/passwd", "passwd")]
    #[case(".bashrc", "conversation.md")]
    #[case("..", "conversation.md")]
    fn a_file_stays_in_its_folder(#[case] name: &str, #[case] expected: &str) {
        let folder = tempfile::tempdir().unwrap();

        saved(name, b"hi", || Ok(folder.path().to_owned()));

        let names: Vec<_> = folder.path().read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, [expected]);
    }

    #[rstest]
    #[case::an_export(None, "text/markdown", "/files/1", true)]
    #[case::of_an_agent(Some("main"), "text/markdown", "/files/1", false)]
    #[case::of_another_type(None, "image/png", "/files/1", false)]
    #[case::elsewhere(None, "text/markdown", "https://example.org/1", false)]
    fn only_texts_of_the_gateway_are_saved(
        #[case] agent: Option<&str>,
        #[case] kind: &str,
        #[case] url: &str,
        #[case] is_saved: bool,
    ) {
        let mut shown = examples::reply("Here it is.");
        shown["agent"] = json!(agent);
        shown["files"] = json!([{ "name": "notes.md", "type": kind, "url": url }]);
        let mut turn = examples::turn("answered", &shown);
        turn.complete_links("http://127.0.0.1:7420");

        assert_eq!(files_to_save(turn.shown.as_ref().unwrap()).count(), usize::from(is_saved));
    }

    #[test]
    fn without_a_folder_it_says_so() {
        let told = saved("notes.md", b"hi", || Err(io::ErrorKind::NotFound.into()));

        assert!(told.starts_with("notes.md cannot be saved in the working directory: "), "{told}");
    }
}
