//! What is sent in place of files that a platform refuses.

use rejoinder_guard::{Attachment, Timestamp};

use super::Attempts;
use crate::{
    base::{verbatim::verbatim, words::filled},
    model::{Action, Content, DeliveryRecord, Language},
    shown::render::parts,
};

/// The template that is sent in place of an answer that is not spoken.
pub(in crate::outbox) const UNSPOKEN: &str = "unspoken";

impl Attempts {
    /// What is sent in place of refused files: their text, and a line for each, with a link if everybody can open that, as far as a
    /// message has room. Then the parts after them are sent as well. `None` if nothing was sent before, and the files have neither a text
    /// nor a link: the guard tries the next way.
    pub(super) fn instead_of_files(
        &self,
        delivery: &DeliveryRecord,
        language: Option<Language>,
        now: Timestamp,
    ) -> Option<Action> {
        let Action::Send { content: Content { text, attachments, spoken, .. }, reply_to } = &delivery.action else {
            return None;
        };
        if attachments.is_empty() || delivery.is_copy {
            return None;
        }
        let settings = self.settings.get();
        let channel = &delivery.conversation.channel;
        let adapter = self.channels.get(channel).map(AsRef::as_ref);
        let say = |name: &str| settings.templates.template(channel, language, name).to_owned();
        // The words of a voice are above it.
        let url_of = |file: &Attachment| match spoken {
            Some(_) => None,
            None => self.file_links.url_to(delivery.turn, &file.url, now),
        };
        let with = |lines: &[String]| match (&**text, lines) {
            (text, []) => text.to_owned(),
            ("", lines) => lines.join("\n"),
            (text, lines) => format!("{text}\n\n{}", lines.join("\n")),
        };
        // What is too long would be refused with the text.
        let has_room = |lines: &[String], line: &str| {
            let mut longer = lines.to_vec();
            longer.push(line.to_owned());
            let longer = with(&longer);
            longer == line || parts(adapter, &longer).len() == 1
        };
        let (mut lines, mut linked) = (Vec::new(), Vec::new());
        for file in attachments {
            let to_file = |url| filled(&say("file_link"), &[("name", verbatim(&file.name)), ("url", url)]);
            if let Some(link) = url_of(file).map(to_file).filter(|link| has_room(&lines, link)) {
                lines.push(link);
                linked.push(file.clone());
                continue;
            }
            let line = match spoken {
                Some(_) => say(UNSPOKEN),
                None => say("file_not_sent").replace("{name}", &file.name),
            };
            if has_room(&lines, &line) {
                lines.push(line);
            }
        }
        if delivery.part == 1 && text.is_empty() && linked.is_empty() {
            return None;
        }
        // The file has all of an answer that is too long.
        let promises_file = linked.is_empty() && *text == say("in_file");
        let text = if promises_file { say("cut_long") } else { with(&lines) };
        let content = Content { text, linked, ..Content::default() };
        Some(Action::Send { content, reply_to: reply_to.clone() })
    }
}
