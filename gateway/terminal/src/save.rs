//! Saves the files whose content came with an answer: those that the gateway itself made, such as an export.

use std::{
    fs::File as Output,
    io::{self, Write},
    path::{Path, PathBuf},
};

use base64::{Engine, prelude::BASE64_STANDARD};

use super::frames::{File, Signal};

/// How the URL of a file begins whose content came with the answer.
const INLINE: &str = "data:text/markdown;base64,";

/// How many names are tried.
const NAMES: u32 = 100;

/// Saves the files of what the gateway said in `folder`, and says in their links where they are. Replaces no file. The folder is
/// asked for only if there is one to save: it may be gone.
pub(crate) fn save_files(shown: &mut Signal, folder: impl Fn() -> io::Result<PathBuf>) {
    // An agent writes no file here.
    if shown.agent.is_some() {
        return;
    }
    for file in &mut shown.attachments {
        let Some(content) = content(file) else { continue };
        file.href = Some(match folder().and_then(|folder| save(&file.name, &content, &folder)) {
            Ok(path) => format!("saved as {}", path.display()),
            Err(error) => format!("cannot be saved in the working directory: {error}"),
        });
    }
}

fn content(file: &File) -> Option<Vec<u8>> {
    BASE64_STANDARD.decode(file.href.as_deref()?.strip_prefix(INLINE)?).ok()
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

    fn with_file(name: &str, agent: Option<&str>) -> Signal {
        let mut shown = examples::reply("Here it is.");
        shown["agent"] = json!(agent);
        shown["attachments"] =
            json!([{ "name": name, "media_type": "text/markdown", "href": "data:text/markdown;base64,aGk=" }]);
        examples::turn("answered", &shown).shown.unwrap()
    }

    #[test]
    fn a_file_of_the_gateway_is_saved_and_replaces_none() {
        let folder = tempfile::tempdir().unwrap();
        let saved = |name: &str| folder.path().join(name);

        for name in ["notes.md", "notes-2.md"] {
            let mut shown = with_file("notes.md", None);
            save_files(&mut shown, || Ok(folder.path().to_owned()));

            assert_eq!(std::fs::read(saved(name)).unwrap(), b"hi");
            assert_eq!(shown.attachments[0].href, Some(format!("saved as {}", saved(name).display())));
        }
    }

    #[rstest]
    #[case("../up.md", "up.md")]
    #[case("/etc/passwd", "passwd")]
    #[case(".bashrc", "conversation.md")]
    #[case("..", "conversation.md")]
    fn a_file_stays_in_its_folder(#[case] name: &str, #[case] expected: &str) {
        let folder = tempfile::tempdir().unwrap();

        save_files(&mut with_file(name, None), || Ok(folder.path().to_owned()));

        let names: Vec<_> = folder.path().read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, [expected]);
    }

    #[test]
    fn an_agents_file_is_not_written() {
        let mut shown = with_file("notes.md", Some("main"));
        let href = shown.attachments[0].href.clone();

        save_files(&mut shown, || panic!("nothing is to be saved"));

        assert_eq!(shown.attachments[0].href, href);
    }

    #[test]
    fn without_a_folder_the_link_says_so() {
        let mut shown = with_file("notes.md", None);

        save_files(&mut shown, || Err(io::ErrorKind::NotFound.into()));

        let href = shown.attachments[0].href.as_deref().unwrap();
        assert!(href.starts_with("cannot be saved in the working directory: "), "{href}");
    }
}
