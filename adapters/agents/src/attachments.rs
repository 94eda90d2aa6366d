//! Files that an agent sends, as it describes them.

use base64::{Engine, prelude::BASE64_STANDARD};
use rejoinder_core::{AgentTurn, Attachment, RunEvents, ToolUse};

/// How many files an answer has at most.
pub const MAX_FILES: usize = 10;

/// How large the files of an answer may be together where they come one by one, in bytes of Base64.
pub const MAX_DATA: usize = 32 << 20;

/// How many characters a file's name and its type have at most.
const MAX_NAME: usize = 200;

const MAX_URL: usize = 2_000;

/// A file that can be sent, from its text.
///
/// # Errors
/// As [`attachment`].
pub fn text_attachment(name: String, media_type: Option<String>, text: &str) -> Result<Attachment, String> {
    let media_type = media_type.unwrap_or_else(|| "text/plain".to_owned());
    attachment(name, Some(media_type), Some(BASE64_STANDARD.encode(text)), None)
}

/// A file that can be sent, from its bytes in Base64 or its https:// URL.
///
/// # Errors
/// Says what is wrong with it.
pub fn attachment(
    name: String,
    media_type: Option<String>,
    data: Option<String>,
    url: Option<String>,
) -> Result<Attachment, String> {
    let media_type = media_type.unwrap_or_else(|| "application/octet-stream".to_owned());
    let is_short = |text: &str| (1..=MAX_NAME).contains(&text.chars().count());
    if !is_short(&name) || !is_short(&media_type) || media_type.contains([',', ' ']) {
        return Err(format!(
            "an attachment needs a `name`, and a media type without blanks, of 1 to {MAX_NAME} characters"
        ));
    }
    let url = match (data, url) {
        (Some(data), None) if BASE64_STANDARD.decode(&data).is_ok_and(|bytes| !bytes.is_empty()) => {
            format!("data:{media_type};base64,{data}")
        }
        (Some(_), None) => return Err("the `data` of an attachment must be bytes in Base64".to_owned()),
        (None, Some(url)) if url.starts_with("https://") && url.len() <= MAX_URL => url,
        _ => return Err("an attachment needs either `data` or an https:// `url`".to_owned()),
    };
    Ok(Attachment { name, media_type, url })
}

/// Base64 without its line breaks: programs write it in lines.
pub(crate) fn in_one_line(data: &str) -> String {
    data.split_ascii_whitespace().collect()
}

/// The name of a file that has none, such as `image.png`.
#[must_use]
pub fn default_name(kind: &str, media_type: Option<&str>) -> String {
    let subtype = media_type.and_then(|media_type| media_type.split_once('/')).map_or("", |(_, subtype)| subtype);
    let extension: String = subtype.chars().take_while(char::is_ascii_alphanumeric).take(10).collect();
    if extension.is_empty() { kind.to_owned() } else { format!("{kind}.{extension}") }
}

/// Says in the log and in the record of the run which files of an answer are left out: the name of each, and why.
pub(crate) async fn leave_out(agent: &str, turn: &AgentTurn, events: &RunEvents, files: Vec<(String, String)>) {
    for (name, why) in files {
        tracing::warn!(agent, turn_id = %turn.turn, why, "a file of an answer is left out");
        let (tool, result) = ("files".to_owned(), format!("failed: {why}"));
        events.tool(ToolUse { name: tool, arguments: name, result, duration_ms: None }).await;
    }
}
