//! Assembles the answer of a run from artifacts and messages. No I/O.

use rejoinder_agents::{
    MAX_FILES, attachment,
    report::{AnswerUpdate, VisibleText, cut},
};
use rejoinder_core::{Attachment, Reply, Shim, is_blank};

use crate::protocol::{Artifact, Message, Part};

/// How often a draft is written anew because an earlier artifact changed. After that only the outcome shows the changes.
const MAX_REWRITES: usize = 100;

/// The most artifacts of an answer.
const MAX_ARTIFACTS: usize = 1_000;

/// How many characters of what an agent says of its progress are read.
const MAX_TITLE: usize = 1_000;

/// What changes of the draft.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum DraftChange {
    /// All text so far is withdrawn.
    Withdraw,
    /// The rest of an artifact, after which another one begins; `gap`: whether something was shown before.
    Next {
        rest: String,
        gap: bool,
    },
    Update(AnswerUpdate),
}

/// An artifact: its id, its raw text, and its files.
#[derive(Debug, PartialEq, Eq)]
struct Piece {
    id: String,
    text: String,
    files: Files,
    /// Whether the end of its text is missing.
    is_cut: bool,
}

/// Files of an answer, and why others are not among them.
#[derive(Debug, Default, PartialEq, Eq)]
struct Files {
    sent: Vec<Attachment>,
    unsent: Vec<String>,
}

impl Files {
    fn append(&mut self, more: Self) {
        self.sent.extend(more.sent);
        self.unsent.extend(more.unsent);
        self.cut(MAX_FILES);
    }

    /// More than an answer may have are not kept in memory.
    fn cut(&mut self, most: usize) {
        if self.sent.len() > most {
            self.sent.truncate(most);
            self.unsent.push(format!("there are more than {MAX_FILES}"));
        }
        self.unsent.truncate(MAX_FILES);
    }
}

/// What the agent has said in a run.
#[derive(Default)]
pub(crate) struct Answer {
    artifacts: Vec<Piece>,
    /// Those of messages.
    files: Files,
    visible: VisibleText,
    size: usize,
    is_cut: bool,
    rewrites: usize,
}

impl Answer {
    /// Whether a person could see something of it.
    pub(crate) fn has_shown(&self) -> bool {
        self.artifacts.iter().any(|piece| !piece.text.trim().is_empty())
    }

    /// Whether the agent has said more than an answer may have: no more text is added to it.
    pub(crate) const fn is_full(&self) -> bool {
        self.is_cut
    }

    /// Whether it has no text and no file.
    pub(crate) fn is_empty(&self) -> bool {
        let files = self.artifacts.iter().map(|piece| &piece.files).chain([&self.files]);
        !self.has_shown() && files.into_iter().all(|files| files.sent.is_empty())
    }

    /// Reads an artifact, or more of one.
    pub(crate) fn artifact(&mut self, artifact: Artifact, append: bool) -> Vec<DraftChange> {
        let (text, files) = content(artifact.parts, "");
        let id = artifact.artifact_id;
        let known = self.artifacts.iter().position(|piece| piece.id == id);
        let mut changes = Vec::new();
        match known {
            None => self.push(Piece { id, text, files, is_cut: false }, &mut changes),
            Some(at) if append && at + 1 == self.artifacts.len() => {
                self.push(Piece { id, text, files, is_cut: false }, &mut changes);
            }
            Some(at) => {
                let piece = &mut self.artifacts[at];
                if !append {
                    self.size -= piece.text.len();
                    (piece.text, piece.files, piece.is_cut) = (String::new(), Files::default(), false);
                }
                let (more, is_cut) = cut(&text, self.size);
                self.size += more.len();
                piece.is_cut |= is_cut;
                self.is_cut |= is_cut;
                piece.text.push_str(more);
                piece.files.append(files);
                self.rewrites += 1;
                self.rewrite(&mut changes);
            }
        }
        self.cut_files();
        if self.rewrites > MAX_REWRITES {
            changes.clear();
        }
        changes
    }

    /// Reads all artifacts of a task, in place of those before.
    pub(crate) fn artifacts(&mut self, artifacts: Vec<Artifact>) -> Vec<DraftChange> {
        let are_too_many = artifacts.len() > MAX_ARTIFACTS;
        let pieces = artifacts.into_iter().take(MAX_ARTIFACTS).map(|artifact| {
            let (text, files) = content(artifact.parts, "");
            Piece { id: artifact.artifact_id, text, files, is_cut: false }
        });
        let pieces: Vec<_> = pieces.collect();
        let mut changes = Vec::new();
        if pieces != self.artifacts {
            self.rewrites += usize::from(!self.artifacts.is_empty());
            self.replace(pieces, &mut changes);
        }
        self.is_cut |= are_too_many;
        self.cut_files();
        if self.rewrites > MAX_REWRITES {
            changes.clear();
        }
        changes
    }

    /// Keeps no more files of all artifacts than the answer may have.
    fn cut_files(&mut self) {
        let mut most = MAX_FILES;
        for files in self.artifacts.iter_mut().map(|piece| &mut piece.files).chain([&mut self.files]) {
            files.cut(most);
            most -= files.sent.len();
        }
    }

    /// Writes the draft anew, unless that was done often.
    fn rewrite(&mut self, changes: &mut Vec<DraftChange>) {
        if self.rewrites <= MAX_REWRITES {
            let pieces = std::mem::take(&mut self.artifacts);
            self.replace(pieces, changes);
        }
    }

    fn replace(&mut self, pieces: Vec<Piece>, changes: &mut Vec<DraftChange>) {
        changes.push(DraftChange::Withdraw);
        self.artifacts.clear();
        self.visible = VisibleText::default();
        (self.size, self.is_cut) = (0, false);
        for piece in pieces {
            self.push(piece, changes);
        }
    }

    fn push(&mut self, Piece { id, text: whole, files, is_cut: was_cut }: Piece, changes: &mut Vec<DraftChange>) {
        let is_new = self.artifacts.last().is_none_or(|last| last.id != id);
        if is_new && self.artifacts.len() >= MAX_ARTIFACTS {
            self.is_cut = true;
            return;
        }
        let (text, is_cut) = cut(&whole, self.size);
        let is_cut = is_cut || was_cut;
        self.is_cut |= is_cut;
        self.size += text.len();
        if is_new && self.is_cut && text.is_empty() && files == Files::default() {
            return;
        }
        if is_new {
            if !self.artifacts.is_empty() {
                changes.push(DraftChange::Next { rest: self.visible.end(), gap: self.has_shown() });
                self.visible = VisibleText::default();
            }
            self.artifacts.push(Piece { id, text: String::new(), files: Files::default(), is_cut: false });
        }
        if let Some(piece) = self.artifacts.last_mut() {
            piece.text.push_str(text);
            piece.files.append(files);
            piece.is_cut |= is_cut;
        }
        let mut update = AnswerUpdate::default();
        self.visible.push(text, &mut update);
        self.visible.count(&update);
        changes.push(DraftChange::Update(update));
    }

    /// The text of a message, with its files among those of the answer.
    pub(crate) fn message(&mut self, message: Option<Message>) -> String {
        let (text, files) = content(message.and_then(|message| message.parts), "\n\n");
        self.files.append(files);
        self.cut_files();
        cut(&text, 0).0.to_owned()
    }

    /// Why files of the agent are not among those of the answer, for the operator.
    pub(crate) fn unsent(&self) -> impl Iterator<Item = &str> {
        let all = self.artifacts.iter().map(|piece| &piece.files).chain([&self.files]);
        all.flat_map(|files| &files.unsent).map(String::as_str)
    }

    /// The rest of the text to show.
    pub(crate) fn end(&mut self) -> String {
        self.visible.end()
    }

    /// The whole answer: the artifacts, and what the agent said at the end if they do not say it. `cut_off` says that the rest is missing.
    pub(crate) fn into_reply(self, last: &str, cut_off: &str) -> Reply {
        let mut files = Files::default();
        let mut texts = Vec::new();
        for piece in self.artifacts {
            files.append(piece.files);
            texts.push(piece.text);
        }
        files.append(self.files);
        texts.retain(|text| !is_blank(text));
        if !is_blank(last) && !texts.iter().any(|text| text.contains(last.trim())) {
            texts.push(last.to_owned());
        }
        let mut text = if texts.len() == 1 {
            texts.remove(0)
        } else {
            // Each has its own markers and thoughts at its ends.
            let visible = texts.iter().map(|text| Shim::whole(text)).filter(|text| !text.is_empty());
            visible.collect::<Vec<_>>().join("\n\n")
        };
        if self.is_cut || !files.unsent.is_empty() {
            text.push_str("\n\n");
            text.push_str(cut_off);
        }
        Reply { text, attachments: files.sent, ..Reply::default() }
    }
}

/// The text of parts, and their files.
/// What a message says of the agent's progress: the beginning of its first text.
pub(crate) fn title(message: Message) -> Option<String> {
    let text = message.parts?.into_iter().find_map(|part| part.text)?;
    Some(text.trim().chars().take(MAX_TITLE).collect::<String>()).filter(|title| !title.is_empty())
}

fn content(parts: Option<Vec<Part>>, between: &str) -> (String, Files) {
    let (mut texts, mut files) = (Vec::new(), Files::default());
    for part in parts.unwrap_or_default() {
        match part {
            Part { text: Some(text), .. } => texts.push(text),
            Part { data: Some(data), .. } => texts.push(format!("```json\n{data:#}\n```")),
            Part { raw: None, url: None, .. } => {}
            Part { raw, url, filename, media_type, .. } => {
                let name = filename.filter(|name| !name.is_empty()).unwrap_or_else(|| "file".to_owned());
                let media_type = media_type.filter(|kind| !kind.is_empty());
                match attachment(name, media_type, raw, url) {
                    Ok(file) => files.sent.push(file),
                    Err(why) => files.unsent.push(why),
                }
                files.cut(MAX_FILES);
            }
        }
    }
    (texts.join(between), files)
}

#[cfg(test)]
mod tests {
    use rejoinder_agents::report::MAX_ANSWER;
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    fn artifact(id: &str, parts: &Value) -> Artifact {
        serde_json::from_value(json!({ "artifactId": id, "parts": parts })).expect("an artifact")
    }

    /// The draft after these changes.
    fn apply(seen: &mut String, changes: Vec<DraftChange>) {
        for change in changes {
            match change {
                DraftChange::Withdraw => seen.clear(),
                DraftChange::Next { rest, gap } => {
                    seen.push_str(&rest);
                    seen.push_str(if gap { "\n\n" } else { "" });
                }
                DraftChange::Update(update) => seen.push_str(&update.show),
            }
        }
    }

    #[rstest]
    #[case::pieces(&[("a", "Hello, ", false), ("a", "Ada.", true)], "Hello, Ada.")]
    #[case::two(&[("a", "One.", false), ("b", "Two.", false)], "One.\n\nTwo.")]
    #[case::replaced(&[("a", "Hello, ", false), ("a", "Good morning.", false)], "Good morning.")]
    #[case::an_earlier_one(&[("a", "One", false), ("b", "Two.", false), ("a", " more.", true)], "One more.\n\nTwo.")]
    #[case::more_of_nothing(&[("a", "One.", true)], "One.")]
    fn an_answer_is_its_artifacts(#[case] pieces: &[(&str, &str, bool)], #[case] whole: &str) {
        let (mut answer, mut seen) = (Answer::default(), String::new());
        for (id, text, append) in pieces {
            apply(&mut seen, answer.artifact(artifact(id, &json!([{ "text": text }])), *append));
        }
        seen.push_str(&answer.end());

        assert_eq!((seen.as_str(), answer.into_reply("", "").text.as_str()), (whole, whole));
    }

    #[test]
    fn the_state_of_a_task_takes_the_place_of_what_was_streamed() {
        let (mut answer, mut seen) = (Answer::default(), String::new());
        apply(&mut seen, answer.artifact(artifact("a", &json!([{ "text": "Hel" }])), false));
        let same = answer.artifacts(vec![artifact("a", &json!([{ "text": "Hel" }]))]);
        assert_eq!(same, []);

        let parts = json!([{ "text": "Hel" }, { "text": "lo." }]);
        apply(&mut seen, answer.artifacts(vec![artifact("a", &parts)]));

        assert_eq!((seen.as_str(), answer.into_reply("", "").text.as_str()), ("Hello.", "Hello."));
    }

    #[rstest]
    #[case("", "The report.")]
    #[case("The report.", "The report.")]
    #[case("Done.", "The report.\n\nDone.")]
    fn what_the_agent_says_at_the_end_is_said_once(#[case] last: &str, #[case] whole: &str) {
        let mut answer = Answer::default();
        answer.artifact(artifact("a", &json!([{ "text": "The report." }])), false);
        assert_eq!(answer.into_reply(last, "").text, whole);
    }

    #[test]
    fn files_and_data_are_part_of_the_answer() {
        let parts = json!([
            { "raw": "YWJj", "filename": "a.txt", "mediaType": "text/plain" },
            { "url": "https://x.example/b.png", "mediaType": "image/png" },
            { "data": { "a": 1 } },
            { "later": "version" },
        ]);
        let mut answer = Answer::default();
        answer.artifact(artifact("a", &parts), false);

        let reply = answer.into_reply("", "");
        let urls: Vec<_> = reply.attachments.iter().map(|file| (&*file.name, &*file.url)).collect();
        assert_eq!(urls, [("a.txt", "data:text/plain;base64,YWJj"), ("file", "https://x.example/b.png")]);
        assert_eq!(reply.text, "```json\n{\n  \"a\": 1\n}\n```");
    }

    #[rstest]
    #[case(json!({ "raw": "no base64!", "mediaType": "text/plain" }))]
    #[case(json!({ "url": "file:///etc/passwd" }))]
    fn a_file_that_cannot_be_sent_costs_itself(#[case] part: Value) {
        let mut answer = Answer::default();
        answer.artifact(artifact("a", &json!([{ "text": "The report." }, part])), false);

        assert_eq!(answer.unsent().count(), 1);
        let reply = answer.into_reply("", "Something is missing.");
        assert_eq!((reply.text.as_str(), reply.attachments.len()), ("The report.\n\nSomething is missing.", 0));
    }

    #[test]
    fn the_file_of_an_artifact_that_comes_again_is_attached_once() {
        let parts = json!([{ "text": "Here." }, { "url": "https://x.example/b.png" }]);
        let mut answer = Answer::default();
        answer.artifact(artifact("a", &parts), false);
        answer.artifact(artifact("a", &parts), false);
        answer.artifacts(vec![artifact("a", &parts)]);

        assert_eq!(answer.into_reply("", "").attachments.len(), 1);
    }

    #[test]
    fn more_files_than_an_answer_may_have_cost_no_text() {
        let mut answer = Answer::default();
        for number in 0..=MAX_FILES {
            answer.artifact(artifact(&number.to_string(), &json!([{ "url": "https://x.example/" }])), false);
        }
        answer.artifact(artifact("last", &json!([{ "text": "The report." }])), false);

        let reply = answer.into_reply("", "Something is missing.");
        assert_eq!((reply.text.as_str(), reply.attachments.len()), ("The report.\n\nSomething is missing.", MAX_FILES));
    }

    /// The draft is not written anew without end; the answer is whole.
    #[test]
    fn two_artifacts_that_grow_in_turn_are_whole() {
        let mut answer = Answer::default();
        let mut changes = 0;
        for _ in 0..1_000 {
            for id in ["a", "b"] {
                changes += answer.artifact(artifact(id, &json!([{ "text": id }])), true).len();
            }
        }

        assert!(changes < 10 * MAX_REWRITES, "{changes}");
        assert_eq!(answer.into_reply("", "").text, format!("{}\n\n{}", "a".repeat(1_000), "b".repeat(1_000)));
    }

    #[test]
    fn an_answer_has_an_end() {
        let mut answer = Answer::default();
        for _ in 0..3 {
            answer.artifact(artifact("a", &json!([{ "text": "ä".repeat(MAX_ANSWER / 4 + 1) }])), true);
        }
        for number in 0..2 * MAX_ARTIFACTS {
            answer.artifact(artifact(&number.to_string(), &json!([{ "text": "" }])), true);
        }
        for _ in 0..=MAX_FILES {
            answer.artifact(artifact("a", &json!([{ "url": "https://x.example/" }])), true);
        }

        assert_eq!(answer.artifacts.len(), 1);
        let reply = answer.into_reply("", "The rest is missing.");
        assert_eq!((reply.text.len(), reply.attachments.len()), (MAX_ANSWER + 22, MAX_FILES));
    }
}
