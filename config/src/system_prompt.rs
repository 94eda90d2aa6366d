//! The instructions of a model, written in place or in files: `"text"` or `{ files = ["soul.md", "user.md"] }`.

use std::{
    fmt,
    fs::File,
    io::{self, Read as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use rejoinder_core::is_blank;
use rustix::fs::OFlags;
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
    ser::SerializeMap,
};

use crate::{environment::ResolveContext, node::Node, redacted};

/// Type name that tells the reader to read the file that a value names.
pub(crate) const FILE: &str = "$rejoinder::File";

/// The largest file, in bytes.
const MAX_FILE: u64 = 256 * 1024;

const MAX_FILES: usize = 32;

/// Instructions, never blank. Those in files are read with the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemPrompt {
    text: String,
    /// Where it stands, as the operator wrote it. Empty: in the configuration.
    files: Vec<String>,
}

impl SystemPrompt {
    /// The whole text; the texts of several files are separated by a blank line.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl From<&str> for SystemPrompt {
    fn from(text: &str) -> Self {
        Self { text: text.to_owned(), files: Vec::new() }
    }
}

impl Serialize for SystemPrompt {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.files.is_empty() {
            return serializer.serialize_str(&self.text);
        }
        // So that a change of the text in a file shows.
        if redacted::is_compared() {
            return serializer.serialize_str(&redacted::written(&self.files.join(", "), &self.text));
        }
        let mut table = serializer.serialize_map(Some(1))?;
        table.serialize_entry("files", &self.files)?;
        table.end()
    }
}

impl<'de> Deserialize<'de> for SystemPrompt {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Named {
            files: Vec<TextFile>,
        }
        struct TextOrFiles;
        impl<'de> Visitor<'de> for TextOrFiles {
            type Value = SystemPrompt;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text, or `{ files = [\"path\"] }`")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<SystemPrompt, E> {
                if is_blank(text) { Err(E::custom("is empty")) } else { Ok(text.into()) }
            }

            fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<SystemPrompt, A::Error> {
                let Named { files } = Named::deserialize(MapAccessDeserializer::new(table))?;
                if files.is_empty() || files.len() > MAX_FILES {
                    return Err(A::Error::custom(format_args!(
                        "must name 1 to {MAX_FILES} files, not {}",
                        files.len()
                    )));
                }
                let texts: Vec<_> = files.iter().map(|file| file.text.trim()).filter(|text| !is_blank(text)).collect();
                if texts.is_empty() {
                    return Err(A::Error::custom("is empty: there is no text in its files"));
                }
                let text = texts.join("\n\n");
                Ok(SystemPrompt { text, files: files.into_iter().map(|file| file.path).collect() })
            }
        }
        deserializer.deserialize_str(TextOrFiles)
    }
}

/// The path of a file as it was written, and what the file holds.
struct TextFile {
    path: String,
    text: String,
}

impl<'de> Deserialize<'de> for TextFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PathAndText;
        impl<'de> Visitor<'de> for PathAndText {
            type Value = TextFile;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the path of a file")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<TextFile, A::Error> {
                let mut part = || parts.next_element().map(Option::unwrap_or_default);
                Ok(TextFile { path: part()?, text: part()? })
            }
        }
        deserializer.deserialize_newtype_struct(FILE, PathAndText)
    }
}

/// The path in `node`, and the text of that file.
///
/// # Errors
/// What is wrong; continues the sentence after the key.
pub(crate) fn read(node: &Node, context: &ResolveContext<'_>) -> Result<[String; 2], String> {
    let written = node.text().filter(|path| !is_blank(path)).ok_or("must be the path of a file, in quotes")?;
    let path = context.path(Path::new(written), &node.origin);
    let unreadable = |error: io::Error| format!("names the file {}, which cannot be read: {error}", path.display());
    let wrong = |what: &str| format!("names {}, which {what}", path.display());
    // Otherwise, opening a pipe would wait for its other end.
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(&path).map_err(unreadable)?;
    if !file.metadata().map_err(unreadable)?.is_file() {
        return Err(wrong("is not a file"));
    }
    let mut bytes = Vec::new();
    file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(wrong(&format!("is larger than {} KiB", MAX_FILE / 1024)));
    }
    let text = String::from_utf8(bytes).map_err(|_| wrong("is not UTF-8: save it as UTF-8"))?;
    Ok([written.to_owned(), text.trim_start_matches('\u{feff}').to_owned()])
}
