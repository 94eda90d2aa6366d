//! What the model is told of a result. No I/O.

use std::fmt::Write as _;

use rejoinder_agents::ToolAnswer;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

/// The most bytes of a result that the model gets.
const MAX_RESULT: usize = 64 << 10;

const UNKNOWN: &str = "[content of an unknown kind, not shown]";

/// The result of a call as a text: of pictures, sounds and files only what they are.
pub(crate) fn told(result: CallToolResult) -> ToolAnswer {
    let is_error = result.is_error == Some(true);
    let parts: Vec<String> = result.content.into_iter().map(part).collect();
    let text = match (parts.is_empty(), result.structured_content) {
        (true, Some(content)) => content.to_string(),
        (true, None) => "done, without a result".to_owned(),
        (false, _) => parts.join("\n"),
    };
    let text = if is_error && !text.starts_with("error: ") { format!("error: {text}") } else { text };
    ToolAnswer { text: cut(text), is_error }
}

/// What the model is told of a call that has no result.
pub(crate) fn failed(why: &str) -> ToolAnswer {
    ToolAnswer { text: cut(format!("error: {why}")), is_error: true }
}

fn part(content: ContentBlock) -> String {
    let not_shown = |what: &str, media_type: &str, encoded: &str| {
        let bytes = encoded.trim_end_matches('=').len() * 3 / 4;
        format!("[{what}, {media_type}, {bytes} bytes, not shown]")
    };
    match content {
        ContentBlock::Text(text) => text.text,
        ContentBlock::Image(image) => not_shown("picture", &image.mime_type, &image.data),
        ContentBlock::Audio(audio) => not_shown("sound", &audio.mime_type, &audio.data),
        ContentBlock::Resource(embedded) => match embedded.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => format!("[{uri}]\n{text}"),
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                not_shown(&format!("file {uri}"), mime_type.as_deref().unwrap_or("of unknown type"), &blob)
            }
            _ => UNKNOWN.to_owned(),
        },
        ContentBlock::ResourceLink(link) => format!("[link to {}: {}]", link.name, link.uri),
        _ => UNKNOWN.to_owned(),
    }
}

fn cut(mut text: String) -> String {
    if text.len() > MAX_RESULT {
        let end = text.floor_char_boundary(MAX_RESULT);
        let missing = text.len() - end;
        text.truncate(end);
        let _ = write!(text, "\n[… {missing} more bytes are not shown]");
    }
    text
}

#[cfg(test)]
mod tests {
    use rmcp::model::ContentBlock;

    use super::*;

    #[test]
    fn a_picture_is_a_note() {
        let content = vec![ContentBlock::text("Here:"), ContentBlock::image("AAAA", "image/png")];

        let answer = told(CallToolResult::success(content));

        assert_eq!(answer.text, "Here:\n[picture, image/png, 3 bytes, not shown]");
    }

    #[test]
    fn a_long_result_is_cut_between_characters() {
        let answer = told(CallToolResult::success(vec![ContentBlock::text("é".repeat(MAX_RESULT))]));

        let note = format!("\n[… {MAX_RESULT} more bytes are not shown]");
        assert_eq!(answer.text, "é".repeat(MAX_RESULT / 2) + &note);
    }

    #[test]
    fn an_error_says_that_it_is_one() {
        let answer = told(CallToolResult::error(vec![ContentBlock::text("no such file")]));

        assert_eq!((answer.text.as_str(), answer.is_error), ("error: no such file", true));
    }
}
