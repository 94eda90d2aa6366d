//! The files of an answer: pictures, sounds and resources among its chunks. No I/O.

use rejoinder_agents::{MAX_DATA, MAX_FILES, attachment, default_name, text_attachment};
use rejoinder_core::Attachment;

use crate::protocol::{Content, Resource};

/// The files of an answer so far.
#[derive(Debug, Default)]
pub(crate) struct Files {
    /// Each with whether its chunk has an id.
    sent: Vec<(Attachment, bool)>,
    size: usize,
    /// Why others are not among them.
    unsent: Vec<String>,
}

impl Files {
    /// Adds what is a file, and returns whether it did. A text is none. `has_id`: whether its chunk has an id.
    pub(crate) fn add(&mut self, content: Content, has_id: bool) -> bool {
        let file = match read(content) {
            None => return false,
            Some(file) => file.and_then(|file| self.fits(file)),
        };
        match file {
            Ok(file) => {
                self.size += file.url.len();
                self.sent.push((file, has_id));
            }
            Err(why) => {
                self.leave_out(&why);
                return false;
            }
        }
        true
    }

    pub(crate) const fn count(&self) -> usize {
        self.sent.len()
    }

    fn fits(&self, file: Attachment) -> Result<Attachment, String> {
        if self.sent.len() == MAX_FILES {
            return Err(format!("there are more than {MAX_FILES}"));
        }
        if self.size + file.url.len() > MAX_DATA {
            return Err(format!("{} is too large", file.name));
        }
        Ok(file)
    }

    /// Removes those without an id: they were notices.
    pub(crate) fn keep_with_ids(&mut self) {
        let before = self.sent.len();
        self.sent.retain(|(_, has_id)| *has_id);
        if self.sent.len() < before {
            self.leave_out("one has no id, as words that are no answer");
        }
        self.size = self.sent.iter().map(|(file, _)| file.url.len()).sum();
    }

    /// Leaves out a file, and says why.
    pub(crate) fn leave_out(&mut self, why: &str) {
        if self.unsent.len() < MAX_FILES {
            self.unsent.push(why.to_owned());
        }
    }

    /// The files, and why others are not among them.
    pub(crate) fn take(&mut self) -> (Vec<Attachment>, Vec<String>) {
        let Self { sent, unsent, .. } = std::mem::take(self);
        (sent.into_iter().map(|(file, _)| file).collect(), unsent)
    }
}

fn read(content: Content) -> Option<Result<Attachment, String>> {
    // A parameter, such as a character set, is no part of the type here.
    let bare = |media_type: Option<String>| {
        let media_type =
            media_type.map(|media_type| media_type.split(';').next().unwrap_or_default().trim().to_owned());
        media_type.filter(|media_type| !media_type.is_empty())
    };
    let of_data = |kind: &str, uri: Option<String>, media_type: Option<String>, data: Option<String>| {
        let media_type = bare(media_type);
        let name = uri.as_deref().and_then(name_of).unwrap_or_else(|| default_name(kind, media_type.as_deref()));
        Some(attachment(name, media_type, Some(data.unwrap_or_default()), None))
    };
    match content {
        Content::Text { .. } | Content::Other => None,
        Content::Image { data, mime_type, uri } => of_data("image", uri, mime_type, data),
        Content::Audio { data, mime_type } => of_data("audio", None, mime_type, data),
        Content::Resource { resource } => match resource.unwrap_or_default() {
            Resource { uri, mime_type, blob: None, text: Some(text) } => {
                let name = uri.as_deref().and_then(name_of).unwrap_or_else(|| "text.txt".to_owned());
                Some(text_attachment(name, bare(mime_type), &text))
            }
            Resource { uri, mime_type, blob, .. } => of_data("file", uri, mime_type, blob),
        },
        Content::ResourceLink { name, uri, mime_type } => {
            let uri = uri.unwrap_or_default();
            let name = name.or_else(|| name_of(&uri)).unwrap_or_else(|| "link".to_owned());
            // Of a file on the agent's own machine only its name is known here.
            Some(if uri.starts_with("https://") {
                attachment(name, bare(mime_type), None, Some(uri))
            } else {
                Err(format!("{name} is a link that does not begin with https://"))
            })
        }
    }
}

/// The last part of a path.
fn name_of(uri: &str) -> Option<String> {
    let path = uri.split(['?', '#']).next().unwrap_or_default();
    let name = path.rsplit('/').next().unwrap_or_default();
    (!name.is_empty() && !name.contains(':')).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    fn of(contents: impl IntoIterator<Item = Value>) -> (Vec<Attachment>, Vec<String>) {
        let mut files = Files::default();
        for content in contents {
            files.add(serde_json::from_value(content).expect("a content"), true);
        }
        files.take()
    }

    #[rstest]
    #[case::image(json!({"type": "image", "data": "aGk=", "mimeType": "image/png"}), "image.png", "data:image/png;base64,aGk=")]
    #[case::named_image(
        json!({"type": "image", "data": "aGk=", "mimeType": "image/svg+xml", "uri": "file:///srv/a/chart.svg"}),
        "chart.svg",
        "data:image/svg+xml;base64,aGk="
    )]
    #[case::sound(json!({"type": "audio", "data": "aGk=", "mimeType": "audio/wav"}), "audio.wav", "data:audio/wav;base64,aGk=")]
    #[case::bytes(
        json!({"type": "resource", "resource": {"uri": "file:///srv/a.pdf?x=1", "mimeType": "application/pdf", "blob": "aGk="}}),
        "a.pdf",
        "data:application/pdf;base64,aGk="
    )]
    #[case::text(
        json!({"type": "resource", "resource": {"uri": null, "mimeType": "text/plain; charset=utf-8", "text": "hi"}}),
        "text.txt",
        "data:text/plain;base64,aGk="
    )]
    #[case::link(
        json!({"type": "resource_link", "name": "Map", "uri": "https://example.org/map.png", "mimeType": "image/png"}),
        "Map",
        "https://example.org/map.png"
    )]
    fn a_content_is_a_file(#[case] content: Value, #[case] name: &str, #[case] url: &str) {
        let (sent, unsent) = of([content]);
        assert_eq!(sent.iter().map(|file| (&*file.name, &*file.url)).collect::<Vec<_>>(), [(name, url)]);
        assert!(unsent.is_empty(), "{unsent:?}");
    }

    #[rstest]
    #[case::text(json!({"type": "text", "text": "hi"}))]
    #[case::unknown(json!({"type": "hologram"}))]
    fn other_contents_are_none(#[case] content: Value) {
        assert_eq!(of([content]), (Vec::new(), Vec::new()));
    }

    #[test]
    fn what_is_no_file_or_too_much_is_said() {
        let image = |data: &str| json!({"type": "image", "data": data, "mimeType": "image/png"});
        let broken = ["image", "audio", "resource", "resource_link"].map(|kind| json!({ "type": kind }));
        let (sent, unsent) = of(broken.into_iter().chain([
            json!({"type": "image", "data": null, "mimeType": ""}),
            json!({"type": "resource", "resource": null}),
            json!({"type": "resource_link", "name": "a", "uri": "file:///etc/passwd"}),
        ]));
        assert_eq!((sent.len(), unsent.len()), (0, 7), "{unsent:?}");
        let (sent, unsent) = of(std::iter::once(image("?")).chain((0..=MAX_FILES).map(|_| image("aGk="))));
        assert_eq!((sent.len(), unsent.len()), (MAX_FILES, 2), "{unsent:?}");

        let large = "aaaa".repeat(MAX_DATA / 6);
        let (sent, unsent) = of([image(&large), image(&large)]);
        assert_eq!((sent.len(), &*unsent), (1, &["image.png is too large".to_owned()][..]));
    }
}
