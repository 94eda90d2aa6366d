//! Files whose bytes the store keeps once, however many rows refer to them.

use std::{borrow::Cow, fmt};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use rejoinder_guard::{Attachment, Timestamp};
use sha2::{Digest as _, Sha256};

use crate::model::{event::InboundEvent, file_bytes::FileBytes, file_type::sniffed, ids::TurnId, name::file_name};

const SCHEME: &str = "sha256:";
const SIZE: &str = "?size=";

/// The SHA-256 of a file's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileDigest([u8; 32]);

impl FileDigest {
    /// The digest of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// 64 hexadecimal digits in lower case.
    pub fn digits(&self) -> String {
        hex::encode(self.0)
    }

    /// Reads what [`digits`](Self::digits) writes.
    pub fn read(digits: &str) -> Option<Self> {
        let mut digest = [0; 32];
        let is_read = hex::decode_to_slice(digits, &mut digest).is_ok();
        (is_read && !digits.bytes().any(|byte| byte.is_ascii_uppercase())).then_some(Self(digest))
    }
}

impl From<[u8; 32]> for FileDigest {
    fn from(digest: [u8; 32]) -> Self {
        Self(digest)
    }
}

/// `sha256:` and the [digits](FileDigest::digits).
impl fmt::Display for FileDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}", self.digits())
    }
}

/// A file that the store has. As the URL of an attachment it is `sha256:<digest>?size=<bytes>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredFile {
    pub digest: FileDigest,
    /// In bytes.
    pub size: usize,
}

impl StoredFile {
    /// The file with these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self { digest: FileDigest::of(bytes), size: bytes.len() }
    }

    /// The file that a URL refers to; `None` if it refers to no stored one.
    pub fn in_url(url: &str) -> Option<Self> {
        let (digits, size) = url.strip_prefix(SCHEME)?.split_once(SIZE)?;
        Some(Self { digest: FileDigest::read(digits)?, size: size.parse().ok()? })
    }
}

impl fmt::Display for StoredFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{SIZE}{}", self.digest, self.size)
    }
}

/// A file that a row refers to from now on.
#[derive(Clone, Debug, PartialEq)]
pub struct NewFile {
    pub file: StoredFile,
    /// `None` if the store has them: the row repeats what an earlier one said.
    pub bytes: Option<FileBytes>,
    /// Of the sound of spoken words: since when it is kept, for a [time of its own](crate::Lifetimes::voice). `None`: as long as its turn.
    pub spoken_at: Option<Timestamp>,
}

/// A file that a row of a turn refers to from now on.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnFile {
    pub turn: TurnId,
    pub file: NewFile,
}

/// A `data:` URL with these bytes.
pub fn data_url(media_type: &str, bytes: &[u8]) -> String {
    // A comma would end the type.
    let media_type = if media_type.contains(',') { "application/octet-stream" } else { media_type };
    format!("data:{media_type};base64,{}", BASE64_STANDARD.encode(bytes))
}

/// The Base64 in a `data:` URL.
fn encoded(url: &str) -> Option<&str> {
    let (head, data) = url.strip_prefix("data:")?.split_once(',')?;
    head.ends_with(";base64").then(|| data.trim())
}

/// The bytes in a `data:` URL; `None` if there are none, or they are not in Base64.
fn inline(url: &str) -> Option<Vec<u8>> {
    BASE64_STANDARD.decode(encoded(url)?).ok().filter(|bytes| !bytes.is_empty())
}

/// The size in bytes of a file that the store has, or whose URL has its bytes. `None` if it is elsewhere, or empty.
pub fn file_size(url: &str) -> Option<usize> {
    let in_url = || Some(encoded(url)?.trim_end_matches('=').len() * 3 / 4);
    StoredFile::in_url(url).map(|stored| stored.size).or_else(in_url).filter(|size| *size > 0)
}

/// The URL of a file that came from outside, as it is stored.
pub fn stored_url(url: &str) -> Cow<'_, str> {
    if url.starts_with(SCHEME) {
        return Cow::Borrowed("");
    }
    inline(url).map_or(Cow::Borrowed(url), |bytes| Cow::Owned(StoredFile::of(&bytes).to_string()))
}

/// Removes the URLs of files that came from outside and refer to stored ones: whoever knows the digest of a file has not got it.
pub(crate) fn refuse_references<'a>(files: impl IntoIterator<Item = &'a mut Attachment>) {
    files.into_iter().filter(|file| file.url.starts_with(SCHEME)).for_each(|file| file.url.clear());
}

/// Removes such files: of those that an agent sends, nothing is left to show.
pub(crate) fn drop_references(files: &mut Vec<Attachment>) {
    files.retain(|file| !file.url.starts_with(SCHEME));
}

/// Cleans the names of files, replaces the bytes in their URLs by references, and returns what these refer to. What the bytes show
/// is the type from then on.
pub(crate) fn detach<'a>(files: impl IntoIterator<Item = &'a mut Attachment>) -> Vec<NewFile> {
    files.into_iter().filter_map(|file| detach_one(file).map(|(new, _)| new)).collect()
}

/// As [`detach`], from an event and its payload. What it quotes may be removed before its turn, and stays as it is.
pub(crate) fn detach_from(event: &mut InboundEvent) -> Vec<NewFile> {
    let (mut new, recording) = (Vec::new(), event.voice.map(|voice| voice.file));
    for (index, file) in event.attachments.iter_mut().enumerate() {
        let Some((mut detached, url)) = detach_one(file) else { continue };
        detached.spoken_at = (recording == Some(index)).then_some(event.received_at);
        if detached.bytes.is_some() && event.raw.len() > url.len() {
            event.raw = replace_text(&event.raw, &url, &file.url);
        }
        new.push(detached);
    }
    new
}

/// Replaces a text in a payload, in JSON however its characters are escaped there. `by` has none that must be.
fn replace_text(payload: &str, text: &str, by: &str) -> String {
    let (payload, mut replaced) = (payload.replace(text, by), String::new());
    let mut rest = &*payload;
    while let Some(start) = rest.find('"') {
        let (before, from) = rest.split_at(start + 1);
        let mut is_escaped = false;
        let end = from.bytes().position(|byte| {
            let is_end = byte == b'"' && !is_escaped;
            is_escaped = byte == b'\\' && !is_escaped;
            is_end
        });
        let Some(end) = end else { break };
        let (written, after) = from.split_at(end);
        let with_quotes = &rest[start..=start + 1 + end];
        let is_text = written.len() > text.len()
            && written.contains('\\')
            && serde_json::from_str::<String>(with_quotes).is_ok_and(|read| read == text);
        replaced.push_str(before);
        replaced.push_str(if is_text { by } else { written });
        replaced.push('"');
        rest = &after[1..];
    }
    replaced.push_str(rest);
    replaced
}

/// The file, and its URL before.
fn detach_one(file: &mut Attachment) -> Option<(NewFile, String)> {
    file.name = file_name(&file.name);
    if let Some(stored) = StoredFile::in_url(&file.url) {
        return Some((NewFile { file: stored, bytes: None, spoken_at: None }, file.url.clone()));
    }
    let bytes = inline(&file.url)?;
    file.media_type = sniffed(&bytes, &file.media_type);
    let stored = StoredFile::of(&bytes);
    let url = std::mem::replace(&mut file.url, stored.to_string());
    Some((NewFile { file: stored, bytes: Some(bytes.into()), spoken_at: None }, url))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::model::{ChannelId, ChatKind, ConversationRef, Sender, SenderKind, Voice};

    const HELLO: &str = "data:text/plain;base64,aGVsbG8=";
    const STORED: &str = "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824?size=5";

    fn file(url: &str) -> Attachment {
        Attachment { name: "a.txt".to_owned(), media_type: "text/plain".to_owned(), url: url.to_owned() }
    }

    #[test]
    fn bytes_become_a_reference_that_is_read_again() {
        let mut files = [file(HELLO), file("https://example.org/a"), file(STORED)];

        let new = detach(&mut files);

        assert_eq!(files.each_ref().map(|file| &*file.url), [STORED, "https://example.org/a", STORED]);
        let stored = StoredFile::in_url(STORED).expect("a reference");
        assert_eq!((stored.size, stored.to_string()), (5, STORED.to_owned()));
        let bytes: Vec<_> = new.iter().map(|new| (new.file, new.bytes.as_deref())).collect();
        assert_eq!(bytes, [(stored, Some(&b"hello"[..])), (stored, None)]);
        assert_eq!((data_url("text/plain", b"hello").as_str(), &*stored_url(HELLO)), (HELLO, STORED));
    }

    #[test]
    fn a_file_has_a_clean_name_and_the_type_that_its_bytes_show() {
        let given = |media_type: &str, url: &str| Attachment {
            name: "../\u{202e}a.png".to_owned(),
            media_type: media_type.to_owned(),
            url: url.to_owned(),
        };
        let mut files = [
            given("image/jpeg", "data:image/jpeg;base64,iVBORw0KGgo="),
            given("image/png", "data:image/png;base64,PGh0bWw+"),
            given("image/png", "https://example.org/a"),
        ];

        detach(&mut files);

        let types = files.each_ref().map(|file| (&*file.name, &*file.media_type));
        assert_eq!(types, [("a.png", "image/png"), ("a.png", "application/octet-stream"), ("a.png", "image/png")]);
    }

    #[rstest]
    #[case::another_url("https://example.org/a")]
    #[case::not_base64("data:text/plain,hello")]
    #[case::broken("data:text/plain;base64,%%%")]
    #[case::empty("data:text/plain;base64,")]
    fn what_has_no_bytes_stays_as_it_is(#[case] url: &str) {
        let mut files = [file(url)];

        assert_eq!((detach(&mut files).len(), &*files[0].url, &*stored_url(url)), (0, url, url));
    }

    #[rstest]
    #[case(STORED, Some(5))]
    #[case(HELLO, Some(5))]
    #[case("data:text/plain;base64,aGVsbG8", Some(5))]
    #[case("data:text/plain;base64,aGVsbA==", Some(4))]
    #[case("data:text/plain;base64,", None)]
    #[case("https://example.org/a", None)]
    fn the_size_of_a_file_is_known_from_its_url(#[case] url: &str, #[case] size: Option<usize>) {
        assert_eq!(file_size(url), size);
    }

    #[rstest]
    #[case::no_size("sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824")]
    #[case::short("sha256:2cf2?size=5")]
    #[case::upper_case("sha256:2CF24DBA5FB0A30E26E83B2AC5B9E29E1B161E5C1FA7425E73043362938B9824?size=5")]
    #[case::another_letter("sha256:éf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824?size=5")]
    #[case::no_number("sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824?size=x")]
    fn no_other_url_is_a_reference(#[case] url: &str) {
        assert_eq!(StoredFile::in_url(url), None);
    }

    #[test]
    fn a_reference_from_outside_is_refused() {
        let mut files = [file(STORED), file(HELLO)];

        refuse_references(&mut files);

        assert_eq!(files.each_ref().map(|file| &*file.url), ["", HELLO]);
        assert_eq!(stored_url(STORED), "");
        let mut sent = vec![file(STORED), file(HELLO)];
        drop_references(&mut sent);
        assert_eq!(sent, [file(HELLO)]);
    }

    #[test]
    fn the_payload_of_an_event_has_the_reference_too() {
        let conversation = ConversationRef::new(ChannelId::new("test", "main"), "ada");
        let sender = Sender { id: "ada".to_owned(), name: None, username: None, kind: SenderKind::Person };
        let mut event = InboundEvent {
            attachments: vec![file(HELLO)],
            raw: format!("{{\"url\":\"{HELLO}\"}}"),
            ..InboundEvent::new(conversation, ChatKind::Direct, "1".to_owned(), sender, Timestamp::from_millis(0))
        };

        assert_eq!(detach_from(&mut event).len(), 1);

        assert_eq!((&*event.attachments[0].url, &*event.raw), (STORED, &*format!("{{\"url\":\"{STORED}\"}}")));
    }

    #[test]
    fn the_recording_of_a_voice_note_is_kept_since_it_came() {
        let conversation = ConversationRef::new(ChannelId::new("test", "main"), "ada");
        let sender = Sender { id: "ada".to_owned(), name: None, username: None, kind: SenderKind::Person };
        let now = Timestamp::from_millis(7);
        let mut event = InboundEvent {
            attachments: vec![file("data:text/plain;base64,Ynll"), file(HELLO)],
            voice: Some(Voice { file: 1, ..Voice::lasting(None) }),
            ..InboundEvent::new(conversation, ChatKind::Direct, "1".to_owned(), sender, now)
        };

        let kept: Vec<_> = detach_from(&mut event).iter().map(|new| new.spoken_at).collect();

        assert_eq!(kept, [None, Some(now)]);
    }

    #[test]
    fn a_file_is_found_in_a_payload_however_it_is_escaped() {
        for escaped in [HELLO.replace('/', "\\/"), HELLO.replace('=', "\\u003d"), HELLO.replace('a', "\\u0061")] {
            let payload = |url: &str| format!(r#"{{"a\"b\\": "c: \/", "url":"{url}", "n": ["{url}", 1, "é\n"]}}"#);

            assert_eq!(replace_text(&payload(&escaped), HELLO, STORED), payload(STORED));
        }
        for other in ["", "no JSON", "\"", "{\"a\": \"b\\", "\"\\ud800\""] {
            assert_eq!(replace_text(other, HELLO, STORED), other);
        }
    }
}
