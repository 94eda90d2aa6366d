//! The content of one message: a text, or a list of parts.

use rejoinder_core::{Attachment, EarlierLine};
use rejoinder_kit::data_url;
use serde_json::Value;
use url::Url;

use crate::error::ApiError;

/// The longest URL of a file, in bytes, unless it holds the file.
const MAX_URL: usize = 4096;

const MAX_NAME: usize = 256;

/// The media type of a file whose type is unknown.
const OCTETS: &str = "application/octet-stream";

/// What one message says.
#[derive(Debug, Default)]
pub(super) struct Content {
    pub(super) text: String,
    pub(super) attachments: Vec<Attachment>,
    /// How many bytes the files in it have.
    pub(super) in_files: usize,
    /// How many bytes of the body these are.
    pub(super) written: usize,
}

impl Content {
    /// Reads the `content` of a message, which stands at `path` of the body.
    /// The error names the part that cannot be read.
    pub(super) fn read(content: Value, path: &str) -> Result<Self, ApiError> {
        let mut read = Self::default();
        match content {
            Value::Null => {}
            Value::String(text) => read.text = text,
            Value::Array(parts) => {
                for (at, part) in parts.iter().enumerate() {
                    read.add(part, &format!("{path}[{at}]"))?;
                }
            }
            _ => return Err(ApiError::invalid(path, "must be a text or a list of parts")),
        }
        if read.text.contains('\0') {
            return Err(ApiError::invalid(path, "must not contain the character U+0000"));
        }
        Ok(read)
    }

    /// The message as an earlier line; `None` if it has no text.
    pub(super) fn line(self, is_agents: bool) -> Option<EarlierLine> {
        Some(EarlierLine { is_agents, text: self.text }).filter(|line| !line.text.trim().is_empty())
    }

    fn add(&mut self, part: &Value, path: &str) -> Result<(), ApiError> {
        let text = |name: &str| part[name].as_str().ok_or_else(|| missing(path, name));
        match part["type"].as_str() {
            Some("text") => self.add_text(text("text")?),
            Some("refusal") => self.add_text(text("refusal")?),
            Some("image_url") => {
                let image = &part["image_url"];
                let url = image["url"].as_str().or(image.as_str()).ok_or_else(|| missing(path, "image_url.url"))?;
                self.add_file("image", url, &format!("{path}.image_url.url"))?;
            }
            Some("file") => {
                let (file_path, given) = (format!("{path}.file.file_data"), &part["file"]);
                let data = given["file_data"].as_str().ok_or_else(|| missing(path, "file.file_data"))?;
                let name = given["filename"].as_str().unwrap_or("file");
                // A bare content in base64 is sent as well.
                let bare = data_url::media_type(data).is_none().then(|| format!("data:{OCTETS};base64,{data}"));
                self.add_file(name, bare.as_deref().unwrap_or(data), &file_path)?;
            }
            Some("input_audio") => {
                let audio = &part["input_audio"];
                let data = audio["data"].as_str().ok_or_else(|| missing(path, "input_audio.data"))?;
                let format = audio["format"].as_str().filter(|format| format.chars().all(char::is_alphanumeric));
                let format = format.ok_or_else(|| missing(path, "input_audio.format"))?;
                let media_type = if format == "mp3" { "audio/mpeg".to_owned() } else { format!("audio/{format}") };
                let url = format!("data:{media_type};base64,{data}");
                self.add_file(&format!("audio.{format}"), &url, &format!("{path}.input_audio.data"))?;
            }
            Some(other) => {
                let message =
                    format!("parts of the type `{other}` cannot be read: use text, image_url, file or input_audio");
                return Err(ApiError::unsupported(format!("{path}.type"), message));
            }
            None => return Err(missing(path, "type")),
        }
        Ok(())
    }

    /// Adds a file at a URL. Only the content of a `data:` URL is ever read.
    fn add_file(&mut self, name: &str, url: &str, path: &str) -> Result<(), ApiError> {
        let (file, bytes) = file(name, url, path)?;
        self.written += bytes.map_or(0, |_| url.len());
        self.in_files += bytes.unwrap_or_default();
        self.attachments.push(file);
        Ok(())
    }

    fn add_text(&mut self, text: &str) {
        if !self.text.is_empty() && !text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(text);
    }
}

fn missing(path: &str, name: &str) -> ApiError {
    ApiError::invalid(format!("{path}.{name}"), format!("`{name}` is missing, or is no text"))
}

/// A file at a URL, and how many bytes that holds; `None` if the file is elsewhere.
fn file(name: &str, url: &str, path: &str) -> Result<(Attachment, Option<usize>), ApiError> {
    if name.chars().count() > MAX_NAME || name.chars().any(char::is_control) {
        return Err(ApiError::invalid(
            path,
            format!("the name of a file has at most {MAX_NAME} characters, and no control characters"),
        ));
    }
    let (media_type, bytes) = match data_url::content(url) {
        Some(Ok(content)) => (data_url::media_type(url).unwrap_or(OCTETS), Some(content.len())),
        Some(Err(data_url::Malformed)) => return Err(ApiError::invalid(path, "is a malformed data: URL")),
        None if url.len() > MAX_URL => {
            return Err(ApiError::invalid(path, format!("must have at most {MAX_URL} bytes")));
        }
        None if Url::parse(url).is_err() => {
            return Err(ApiError::invalid(path, "must be a data: URL with the file, or a full URL such as https://…"));
        }
        None => (OCTETS, None),
    };
    if media_type.chars().count() > MAX_NAME || media_type.chars().any(char::is_control) {
        return Err(ApiError::invalid(path, "has a media type that cannot be used"));
    }
    let file = Attachment { name: name.to_owned(), media_type: media_type.to_owned(), url: url.to_owned() };
    Ok((file, bytes))
}
