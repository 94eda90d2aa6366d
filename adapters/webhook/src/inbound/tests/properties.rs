//! Whatever a caller sends is read or refused: nothing panics, and nothing costs more than its length asks for.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use proptest::{collection::vec, prelude::*, sample::select};
use rejoinder_core::conformance::growth::assert_linear;

use super::{super::*, read};

const FORM: &str = "application/x-www-form-urlencoded";
const MULTIPART: &str = "multipart/form-data; boundary=b";

const TYPES: [Option<&str>; 6] = [
    None,
    Some("application/json"),
    Some("text/plain"),
    Some(FORM),
    Some(MULTIPART),
    Some("multipart/form-data; boundary=\"\""),
];

/// Pieces of bodies of all types.
const PIECES: [&[u8]; 44] = [
    b"--b",
    b"\r\n",
    b"\r\n--b\r\n",
    b"\r\n--b--",
    b"Content-Disposition: form-data; name=\"message\"",
    b"; filename=\"a\"",
    b"; name=",
    b"Content-Type: ",
    b"\r\n\r\n",
    b"message=",
    b"sender=",
    b"&",
    b"=",
    b"%",
    b"%4",
    b"%41",
    b"%ff",
    b"+",
    b"attachments=",
    b"data:",
    b"data:;base64,",
    b",",
    b"https://a.example/",
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"message\":",
    b"\"attachments\":",
    b"\"url\":",
    b"\"name\":",
    b"\"",
    b"\\",
    b"\\u0000",
    b"\\ud800",
    b":",
    b"null",
    b"1e999",
    b"-",
    b"\xff",
    b"\xef\xbb\xbf",
    b"a",
    b" ",
    b"\0",
];

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(content_type in select(&TYPES), body in vec(any::<u8>(), 0..300)) {
        drop(read(content_type, &body));
    }

    #[test]
    fn anything_like_a_body_is_read_or_refused(content_type in select(&TYPES), pieces in vec(select(&PIECES), 0..40)) {
        drop(read(content_type, &pieces.concat()));
    }

    #[test]
    fn any_content_type_is_read_or_refused(
        pieces in vec(select(vec!["multipart/form-data", "application/json", ";", "boundary=", "\"", "charset=", "utf-8", "\\", " ", "é", "+json"]), 0..12),
        body in vec(select(&PIECES), 0..10),
    ) {
        drop(read(Some(&pieces.concat()), &body.concat()));
    }

    #[test]
    fn a_text_comes_out_of_any_body_as_it_went_in(text in "[a-z](\\PC|\n){0,80}") {
        let form = format!("message={}", utf8_percent_encode(&text, NON_ALPHANUMERIC));
        let part = format!("--b\r\nContent-Disposition: form-data; name=\"message\"\r\n\r\n{text}\r\n--b--\r\n");
        let json = serde_json::json!({ "message": text }).to_string();
        for (content_type, body) in [(FORM, form), (MULTIPART, part), ("application/json", json)] {
            prop_assert_eq!(read(Some(content_type), body.as_bytes()).map(|message| message.text).ok(), Some(text.clone()));
        }
    }

    #[test]
    fn a_field_with_a_command_is_a_command_or_refused(
        command in prop_oneof!["[ \t]{0,2}/{0,2}[A-Za-z0-9_]{0,12}[ \t]{0,2}", "\\PC{0,12}", "(stop|/Weather|status)( |\n|é|/){0,2}"],
        text in prop_oneof![Just(String::new()), "[ \n]{0,3}", "[a-z/](\\PC|\n){0,40}"],
    ) {
        let json = serde_json::json!({ "command": command, "message": text }).to_string();
        let form = [("command", &command), ("message", &text)]
            .map(|(name, value)| format!("{name}={}", utf8_percent_encode(value, NON_ALPHANUMERIC)))
            .join("&");
        let name = command.trim().trim_start_matches('/').to_ascii_lowercase();
        let is_name = !name.is_empty() && name.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_');
        let is_line = !command.chars().any(char::is_control);
        for (content_type, body) in [("application/json", json), (FORM, form)] {
            let read = read(Some(content_type), body.as_bytes());
            if is_name && is_line {
                let message = read.expect("a command");
                prop_assert_eq!(message.command.as_deref(), Some(&*name));
                let whole = format!("/{name} {text}");
                prop_assert_eq!(message.text, whole.trim_end());
            } else if command.trim().is_empty() && is_line {
                prop_assert_eq!(read.map(|message| (message.text, message.command)).ok().unwrap_or((text.clone(), None)), (text.clone(), None));
            } else {
                prop_assert_eq!(read.map(|_| ()).map_err(|problem| problem.status()), Err(StatusCode::UNPROCESSABLE_ENTITY));
            }
        }
    }
}

#[test]
fn a_long_body_costs_what_its_length_asks_for() {
    assert_linear(&["a", "\n", "{", "[", "é"], |body| drop(read(Some("text/plain"), body.as_bytes())));
    assert_linear(&["&", "=", "%", "%41", "+", "a=b&", "message", "attachments=https://a.example/&"], |body| {
        drop(read(Some(FORM), body.as_bytes()));
        drop(read(Some(FORM), format!("message={body}").as_bytes()));
    });
    assert_linear(&["[", "{\"a\":", "\"\\u00e9", "\\\"", "{\"url\":\"data:,\"},", "[[],", " ", "-1,"], |body| {
        drop(read(Some("application/json"), body.as_bytes()));
        drop(read(Some("application/json"), format!("{{\"message\":\"a\",\"more\":[{body}").as_bytes()));
        drop(read(Some("application/json"), format!("{{\"message\":\"a\",\"attachments\":[{body}null]}}").as_bytes()));
        drop(read(Some("application/json"), format!("{{\"message\":\"{body}\"}}").as_bytes()));
    });
    let empty = "\r\n--b\r\nContent-Disposition: form-data; name=a; filename=\"\"\r\n\r\n";
    assert_linear(&["\r\n", "\r\n--", "-", "\r\n--b\r\n", ";", "a:b\r\n", "\"", empty], |body| {
        drop(read(Some(MULTIPART), body.as_bytes()));
        let head = "--b\r\nContent-Disposition: form-data; name=message";
        for form in [
            format!("{head}{body}\r\n\r\nx\r\n--b--"),
            format!("{head}\r\n{body}\r\n\r\nx\r\n--b--"),
            format!("{head}\r\n\r\n{body}\r\n--b--"),
        ] {
            drop(read(Some(MULTIPART), form.as_bytes()));
        }
    });
}

/// Deeper than the stack of any thread would bear, if it were read by recursion.
#[test]
fn json_of_any_depth_is_refused_or_ignored() {
    let deep = |open: &str, close: &str| format!("{}1{}", open.repeat(200_000), close.repeat(200_000));
    let (list, object) = (deep("[", "]"), deep("{\"a\":", "}"));
    let status =
        |body: String| read(Some("application/json"), body.as_bytes()).map(|_| ()).map_err(|problem| problem.status());

    for deep in [&list, &object] {
        // Nothing is kept of a field that means nothing.
        assert_eq!(status(format!("{{\"message\":\"a\",\"more\":{deep}}}")), Ok(()));
        assert_eq!(status(format!("{{\"message\":{deep}}}")), Err(StatusCode::UNPROCESSABLE_ENTITY));
        let file =
            format!("{{\"message\":\"a\",\"attachments\":[{{\"url\":\"https://a.example/\",\"more\":{deep}}}]}}");
        assert_eq!(status(file), Err(StatusCode::BAD_REQUEST));
    }
    assert_eq!(status(list), Err(StatusCode::UNPROCESSABLE_ENTITY));
    assert_eq!(status("[".repeat(1 << 20)), Err(StatusCode::BAD_REQUEST));
    assert_eq!(status("{\"a\":".repeat(100_000)), Err(StatusCode::BAD_REQUEST));
}
