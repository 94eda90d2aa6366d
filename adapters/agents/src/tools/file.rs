//! The tool `send_file`. No I/O.

use rejoinder_core::Attachment;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::attachments::{attachment, in_one_line};

/// The name of the tool.
pub(crate) const SEND_FILE: &str = "send_file";

/// How large a file may be, in bytes of Base64.
const MAX_FILE: usize = 16 << 20;

#[derive(Deserialize)]
pub(super) struct Arguments {
    name: String,
    media_type: Option<String>,
    data: Option<String>,
    url: Option<String>,
}

impl Arguments {
    /// The file. The error is for the agent.
    pub(super) fn file(self) -> Result<Attachment, String> {
        let Self { name, media_type, data, url } = self;
        // Some models fill in all arguments.
        let [media_type, data, url] = [media_type, data, url].map(|it| it.filter(|text| !text.trim().is_empty()));
        if name.trim().is_empty() {
            return Err("error: `name` is empty".to_owned());
        }
        if data.as_ref().is_some_and(|data| data.len() > MAX_FILE) {
            return Err(format!("error: the file is too large: `data` has at most {} MiB", MAX_FILE >> 20));
        }
        let media_type = media_type.and_then(|it| it.split(';').next().map(|it| it.trim().to_owned()));
        let data = data.map(|data| in_one_line(&data));
        attachment(name.trim().to_owned(), media_type, data, url).map_err(|why| format!("error: {why}"))
    }
}

/// The arguments of a call with a size in place of the bytes of a file; `None` if there are none.
pub(crate) fn without_bytes(tool: &str, arguments: &str) -> Option<String> {
    if tool != SEND_FILE {
        return None;
    }
    let mut arguments: Map<String, Value> = serde_json::from_str(arguments).ok()?;
    drop_bytes(&mut arguments);
    Some(Value::from(arguments).to_string())
}

/// Puts a size in place of the bytes of a file.
pub(crate) fn drop_bytes(arguments: &mut Map<String, Value>) {
    if let Some(Value::String(data)) = arguments.get_mut("data") {
        *data = format!("[{} bytes of Base64]", data.len());
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn file(arguments: &Value) -> Result<Attachment, String> {
        serde_json::from_value::<Arguments>(arguments.clone()).expect("arguments").file()
    }

    #[rstest]
    #[case(json!({"name": " a.png ", "media_type": "image/png", "data": "aGVs\nbG8=\n", "url": ""}), "data:image/png;base64,aGVsbG8=")]
    #[case(json!({"name": "a.txt", "media_type": "text/plain; charset=utf-8", "data": "aGk="}), "data:text/plain;base64,aGk=")]
    #[case(json!({"name": "a", "data": "aGk="}), "data:application/octet-stream;base64,aGk=")]
    #[case(json!({"name": "a.png", "media_type": null, "url": "https://example.org/a.png"}), "https://example.org/a.png")]
    fn a_file_has_bytes_or_an_address(#[case] arguments: Value, #[case] url: &str) {
        assert_eq!(file(&arguments).map(|file| file.url), Ok(url.to_owned()));
    }

    #[rstest]
    #[case(json!({"name": " ", "data": "aGk="}), "`name` is empty")]
    #[case(json!({"name": "a", "data": "aGk"}), "must be bytes in Base64")]
    #[case(json!({"name": "a", "data": "a picture!"}), "must be bytes in Base64")]
    #[case(json!({"name": "a", "data": "a".repeat(MAX_FILE + 1)}), "too large: `data` has at most 16 MiB")]
    #[case(json!({"name": "a", "media_type": "a picture", "data": "aGk="}), "a media type without blanks")]
    #[case(json!({"name": "a"}), "either `data` or an https:// `url`")]
    #[case(json!({"name": "a", "data": "aGk=", "url": "https://example.org/a"}), "either `data` or an https:// `url`")]
    #[case(json!({"name": "a", "url": "file:///etc/passwd"}), "either `data` or an https:// `url`")]
    #[case(json!({"name": "a", "url": "http://169.254.169.254/"}), "either `data` or an https:// `url`")]
    fn what_is_no_file_is_told_to_the_agent(#[case] arguments: Value, #[case] told: &str) {
        let why = file(&arguments).expect_err("no file");
        assert!(why.starts_with("error: ") && why.contains(told), "{why}");
    }

    #[test]
    fn the_bytes_of_a_file_are_not_kept_in_its_call() {
        let call = json!({"name": "a.png", "data": "aGVsbG8="}).to_string();

        let kept = without_bytes(SEND_FILE, &call).expect("they had bytes");

        assert!(kept.contains("a.png") && kept.contains("[8 bytes of Base64]"), "{kept}");
        assert_eq!((without_bytes("files_write", &call), without_bytes(SEND_FILE, "[1]")), (None, None));
    }
}
