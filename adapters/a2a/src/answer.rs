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

/// What the agent has said in a run.
#[derive(Default)]
pub(crate) struct Answer {
    /// The id and the raw text of each artifact.
    artifacts: Vec<(String, String)>,
    files: Vec<Attachment>,
    visible: VisibleText,
    size: usize,
    is_cut: bool,
    rewrites: usize,
}

impl Answer {
    /// Whether a person could see something of it.
    pub(crate) fn has_shown(&self) -> bool {
        self.artifacts.iter().any(|(_, text)| !text.trim().is_empty())
    }

    /// Reads an artifact, or more of one.
    ///
    /// # Errors
    /// When it has a file that cannot be sent.
    pub(crate) fn artifact(&mut self, artifact: Artifact, append: bool) -> Result<Vec<DraftChange>, String> {
        let text = self.text_of(artifact.parts, "")?;
        let id = artifact.artifact_id;
        let known = self.artifacts.iter().position(|(one, _)| *one == id);
        let mut changes = Vec::new();
        match known {
            None => self.push(&id, &text, &mut changes),
            Some(at) if append && at + 1 == self.artifacts.len() => self.push(&id, &text, &mut changes),
            Some(at) => {
                let mut artifacts = self.artifacts.clone();
                let whole = &mut artifacts[at].1;
                if !append {
                    whole.clear();
                }
                whole.push_str(&text);
                self.replace(artifacts, &mut changes);
            }
        }
        Ok(changes)
    }

    /// Reads all artifacts of a task, in place of those before.
    ///
    /// # Errors
    /// As [`artifact`](Self::artifact).
    pub(crate) fn artifacts(&mut self, artifacts: Vec<Artifact>) -> Result<Vec<DraftChange>, String> {
        self.files.clear();
        let mut texts = Vec::new();
        for artifact in artifacts.into_iter().take(MAX_ARTIFACTS) {
            texts.push((artifact.artifact_id, self.text_of(artifact.parts, "")?));
        }
        let mut changes = Vec::new();
        if texts != self.artifacts {
            self.replace(texts, &mut changes);
        }
        Ok(changes)
    }

    fn replace(&mut self, artifacts: Vec<(String, String)>, changes: &mut Vec<DraftChange>) {
        self.rewrites += usize::from(!self.artifacts.is_empty());
        changes.push(DraftChange::Withdraw);
        self.artifacts.clear();
        self.visible = VisibleText::default();
        (self.size, self.is_cut) = (0, false);
        for (id, text) in artifacts {
            self.push(&id, &text, changes);
        }
        if self.rewrites > MAX_REWRITES {
            changes.clear();
        }
    }

    fn push(&mut self, id: &str, whole: &str, changes: &mut Vec<DraftChange>) {
        if self.is_cut || self.artifacts.len() >= MAX_ARTIFACTS {
            self.is_cut = true;
            return;
        }
        let (text, is_cut) = cut(whole, self.size);
        self.is_cut |= is_cut;
        self.size += text.len();
        if self.artifacts.last().is_none_or(|(last, _)| last != id) {
            if !self.artifacts.is_empty() {
                changes.push(DraftChange::Next { rest: self.visible.end(), gap: self.has_shown() });
                self.visible = VisibleText::default();
            }
            self.artifacts.push((id.to_owned(), String::new()));
        }
        if let Some((_, artifact)) = self.artifacts.last_mut() {
            artifact.push_str(text);
        }
        let mut update = AnswerUpdate::default();
        self.visible.push(text, &mut update);
        self.visible.count(&update);
        changes.push(DraftChange::Update(update));
    }

    /// The text of a message, with its files among those of the answer.
    ///
    /// # Errors
    /// As [`artifact`](Self::artifact).
    pub(crate) fn message(&mut self, message: Option<Message>) -> Result<String, String> {
        let text = self.text_of(message.and_then(|message| message.parts), "\n\n")?;
        Ok(cut(&text, 0).0.to_owned())
    }

    fn text_of(&mut self, parts: Option<Vec<Part>>, between: &str) -> Result<String, String> {
        let mut texts = Vec::new();
        for part in parts.unwrap_or_default() {
            match part {
                Part { text: Some(text), .. } => texts.push(text),
                Part { data: Some(data), .. } => texts.push(format!("```json\n{data:#}\n```")),
                Part { raw: None, url: None, .. } => {}
                Part { raw, url, filename, media_type, .. } => {
                    if self.files.len() >= MAX_FILES {
                        self.is_cut = true;
                        continue;
                    }
                    let name = filename.filter(|name| !name.is_empty()).unwrap_or_else(|| "file".to_owned());
                    let media_type = media_type.filter(|kind| !kind.is_empty());
                    let file = attachment(name, media_type, raw, url);
                    self.files.push(file.map_err(|why| format!("a file of the agent cannot be sent: {why}"))?);
                }
            }
        }
        Ok(texts.join(between))
    }

    /// The rest of the text to show.
    pub(crate) fn end(&mut self) -> String {
        self.visible.end()
    }

    /// The whole answer: the artifacts, and what the agent said at the end if they do not say it. `cut_off` says that the rest is missing.
    pub(crate) fn into_reply(self, last: &str, cut_off: &str) -> Reply {
        let mut texts: Vec<_> =
            self.artifacts.into_iter().map(|(_, text)| text).filter(|text| !is_blank(text)).collect();
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
        if self.is_cut {
            text.push_str("\n\n");
            text.push_str(cut_off);
        }
        Reply { text, attachments: self.files, choices: None }
    }
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
            apply(&mut seen, answer.artifact(artifact(id, &json!([{ "text": text }])), *append).expect("good"));
        }
        seen.push_str(&answer.end());

        assert_eq!((seen.as_str(), answer.into_reply("", "").text.as_str()), (whole, whole));
    }

    #[test]
    fn the_state_of_a_task_takes_the_place_of_what_was_streamed() {
        let (mut answer, mut seen) = (Answer::default(), String::new());
        apply(&mut seen, answer.artifact(artifact("a", &json!([{ "text": "Hel" }])), false).expect("good"));
        let same = answer.artifacts(vec![artifact("a", &json!([{ "text": "Hel" }]))]).expect("good");
        assert_eq!(same, []);

        let parts = json!([{ "text": "Hel" }, { "text": "lo." }]);
        apply(&mut seen, answer.artifacts(vec![artifact("a", &parts)]).expect("good"));

        assert_eq!((seen.as_str(), answer.into_reply("", "").text.as_str()), ("Hello.", "Hello."));
    }

    #[rstest]
    #[case("", "The report.")]
    #[case("The report.", "The report.")]
    #[case("Done.", "The report.\n\nDone.")]
    fn what_the_agent_says_at_the_end_is_said_once(#[case] last: &str, #[case] whole: &str) {
        let mut answer = Answer::default();
        answer.artifact(artifact("a", &json!([{ "text": "The report." }])), false).expect("good");
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
        answer.artifact(artifact("a", &parts), false).expect("good");

        let reply = answer.into_reply("", "");
        let urls: Vec<_> = reply.attachments.iter().map(|file| (&*file.name, &*file.url)).collect();
        assert_eq!(urls, [("a.txt", "data:text/plain;base64,YWJj"), ("file", "https://x.example/b.png")]);
        assert_eq!(reply.text, "```json\n{\n  \"a\": 1\n}\n```");
    }

    #[rstest]
    #[case(json!([{ "raw": "no base64!", "mediaType": "text/plain" }]))]
    #[case(json!([{ "url": "file:///etc/passwd" }]))]
    fn a_file_that_cannot_be_sent_is_an_error(#[case] parts: Value) {
        assert!(Answer::default().artifact(artifact("a", &parts), false).is_err());
    }

    #[test]
    fn an_answer_has_an_end() {
        let mut answer = Answer::default();
        for _ in 0..3 {
            answer.artifact(artifact("a", &json!([{ "text": "ä".repeat(MAX_ANSWER / 4 + 1) }])), true).expect("good");
        }
        for number in 0..2 * MAX_ARTIFACTS {
            answer.artifact(artifact(&number.to_string(), &json!([{ "text": "" }])), true).expect("good");
        }
        for _ in 0..=MAX_FILES {
            answer.artifact(artifact("a", &json!([{ "url": "https://x.example/" }])), true).expect("good");
        }

        assert_eq!(answer.artifacts.len(), 1);
        let reply = answer.into_reply("", "The rest is missing.");
        assert_eq!((reply.text.len(), reply.attachments.len()), (MAX_ANSWER + 22, MAX_FILES));
    }
}
