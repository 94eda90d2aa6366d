//! What the model is told of a result, and which files of it go with the answer. No I/O.

use std::fmt::Write as _;

use rejoinder_agents::{ForeignAnswer, attachment, default_name};
use rejoinder_core::Attachment;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents, Role};

/// The most bytes of a result that the model gets.
const MAX_RESULT: usize = 64 << 10;

const UNKNOWN: &str = "[content of an unknown kind, not shown]";

/// The result of a call as a text: of pictures, sounds and files only what they are. Pictures and sounds go with the answer.
pub(crate) fn told(result: CallToolResult) -> ForeignAnswer {
    let is_error = result.is_error == Some(true);
    let files = if is_error { Vec::new() } else { result.content.iter().filter_map(file).collect() };
    let parts: Vec<String> = result.content.into_iter().map(part).collect();
    let text = match (parts.is_empty(), result.structured_content) {
        (true, Some(content)) => content.to_string(),
        (true, None) => "done, without a result".to_owned(),
        (false, _) => parts.join("\n"),
    };
    let text = if is_error && !text.starts_with("error: ") { format!("error: {text}") } else { text };
    ForeignAnswer { text: cut(text), is_error, files }
}

/// What the model is told of a call that has no result.
pub(crate) fn failed(why: &str) -> ForeignAnswer {
    ForeignAnswer { text: cut(format!("error: {why}")), is_error: true, files: Vec::new() }
}

/// A picture or a sound, unless it is meant for the model only. One that cannot be sent is none.
fn file(content: &ContentBlock) -> Option<Attachment> {
    let (kind, media_type, data, annotations) = match content {
        ContentBlock::Image(image) => ("picture", &image.mime_type, &image.data, &image.annotations),
        ContentBlock::Audio(audio) => ("sound", &audio.mime_type, &audio.data, &audio.annotations),
        _ => return None,
    };
    let audience = annotations.as_ref().and_then(|annotations| annotations.audience.as_ref());
    if audience.is_some_and(|audience| !audience.contains(&Role::User)) {
        return None;
    }
    let media_type = media_type.split(';').next().unwrap_or_default().trim();
    let name = default_name(kind, Some(media_type));
    attachment(name, Some(media_type.to_owned()), Some(data.clone()), None).ok()
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
    use serde_json::json;

    use super::*;

    #[test]
    fn a_picture_is_a_note() {
        let content = vec![ContentBlock::text("Here:"), ContentBlock::image("AAAA", "image/png")];

        let answer = told(CallToolResult::success(content));

        assert_eq!(answer.text, "Here:\n[picture, image/png, 3 bytes, not shown]");
    }

    #[test]
    fn pictures_and_sounds_go_with_the_answer_unless_they_are_for_the_model() {
        let for_model = json!({ "type": "image", "data": "AAAA", "mimeType": "image/png", "annotations": { "audience": ["assistant"] } });
        let content = vec![
            ContentBlock::image("AAAA", "image/png"),
            ContentBlock::audio("AAAA", "audio/wav; rate=8000"),
            ContentBlock::image("no Base64", "image/png"),
            serde_json::from_value(for_model).expect("a content"),
        ];

        let files = told(CallToolResult::success(content.clone())).files;

        let names: Vec<_> = files.iter().map(|file| (&*file.name, &*file.url)).collect();
        assert_eq!(names, [("picture.png", "data:image/png;base64,AAAA"), ("sound.wav", "data:audio/wav;base64,AAAA")]);
        assert!(told(CallToolResult::error(content)).files.is_empty());
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
