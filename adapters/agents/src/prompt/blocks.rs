//! What an agent with a memory of its own reads of a turn. No I/O.

use rejoinder_core::{AgentMessage, AgentTurn, ChatKind, ModelInput};
use serde_json::{Value, json};

use super::{files, frame, history, instructions};
use crate::file_kind::{FileKind, Takes};

/// How many characters of earlier messages a new session is told.
const MAX_HISTORY: usize = 16_000;

/// How many letters and digits of a title are compared with what a session is told.
const MOST_COMPARED: usize = 40;

/// How many of them the beginning has at least: a short title may have the same words.
const LEAST_COMPARED: usize = 12;

/// A part of what it reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block {
    Text(String),
    File {
        name: String,
        kind: FileKind,
        media_type: String,
        /// In base64.
        data: String,
    },
}

/// What stands before them.
const EARLIER: &str = "What was said here before, the oldest first, each message as such an object (`from` is \"you\" if you wrote it, \
    \"person\" if the person in this direct chat did). It was answered; you may refer to it.";

/// What a session is told once: where it takes place, how messages are written, and what was said before.
pub fn of_session(turn: &AgentTurn, system_prompt: &str, most_lines: u32) -> Vec<Block> {
    let mut blocks = vec![Block::Text(instructions::of_session(turn, system_prompt))];
    let lines = history::fitting(&turn.past.history, most_lines as usize, MAX_HISTORY);
    if !lines.is_empty() {
        let lines = lines.iter().map(|line| frame::of_told_line(line));
        blocks.push(Block::Text(std::iter::once(EARLIER.to_owned()).chain(lines).collect::<Vec<_>>().join("\n")));
    }
    blocks
}

/// Whether a title of a session says only how that begins: some agents take what it is told once for a person's first message.
pub fn repeats_beginning(title: &str, turn: &AgentTurn, system_prompt: &str) -> bool {
    let letters = |text: &str| -> String { text.chars().filter(|c| c.is_alphanumeric()).take(MOST_COMPARED).collect() };
    let (title, told) = (letters(title), letters(&instructions::of_session(turn, system_prompt)));
    let beginning: String = told.chars().take(LEAST_COMPARED).collect();
    let is_long = |text: &str| text.chars().count() >= LEAST_COMPARED;
    !title.is_empty() && (title == told || is_long(&beginning) && title.contains(&beginning))
}

/// The message of a turn, and those that are answered with it.
pub fn of_turn(turn: &AgentTurn, takes: Takes) -> Vec<Block> {
    let mut blocks = Vec::new();
    if let Some(instructions) = &turn.person.instructions {
        blocks.push(Block::Text(frame::of_program(instructions)));
    }
    blocks.push(Block::Text(frame::of_turn_after(turn, turn.past.last_answer.as_ref()).into_owned()));
    push_files(&turn.message, takes, &mut blocks);
    blocks.extend(of_messages(&turn.more, turn.place.chat, takes));
    blocks
}

/// Messages that came later.
pub fn of_messages(messages: &[AgentMessage], chat: ChatKind, takes: Takes) -> Vec<Block> {
    let mut blocks = Vec::new();
    for message in messages {
        blocks.push(Block::Text(frame::of_message(message, chat).into_owned()));
        push_files(message, takes, &mut blocks);
    }
    blocks
}

/// The files of a message, and of what it quotes.
fn push_files(message: &AgentMessage, takes: Takes, blocks: &mut Vec<Block>) {
    let own = message.attachments.iter().map(|file| (file, false));
    let quoted = message.quoted.iter().flat_map(|quoted| &quoted.files).map(|file| (file, true));
    for file in files::given(own.chain(quoted), takes) {
        let Some((media_type, data)) = file.encoded() else { continue };
        blocks.push(Block::Text(frame::of_file(&file)));
        let (name, media_type, data) = (file.name.to_owned(), media_type.to_owned(), data.to_owned());
        blocks.push(Block::File { name, kind: file.kind, media_type, data });
    }
}

/// What the operator sees of them: of a file only its type and its size.
pub fn shown(settings: &Value, blocks: &[Block]) -> ModelInput {
    let blocks = blocks.iter().map(|block| match block {
        Block::Text(text) => json!({ "role": "user", "content": text }),
        Block::File { media_type, data, .. } => json!({ "role": "user", "content": files::note(media_type, data) }),
    });
    let messages = Value::Array(blocks.collect()).to_string();
    ModelInput { settings: settings.to_string(), messages, left_out: 0 }
}

#[cfg(test)]
mod tests {
    use rejoinder_core::{AgentFile, Attachment, Speaker};
    use rstest::rstest;

    use super::*;
    use crate::tests::{history, line, turn};

    fn file(name: &str, media_type: &str, bytes: &[u8]) -> AgentFile {
        let attachment = Attachment {
            name: name.to_owned(),
            media_type: media_type.to_owned(),
            url: "http://10.0.0.1/x".to_owned(),
        };
        AgentFile { attachment, bytes: Some(bytes.to_vec().into()), text: None }
    }

    #[test]
    fn a_new_session_is_told_what_was_said() {
        let history = history([line(Speaker::Person, "Tea?"), line(Speaker::Agent, "Yes.\n{\"from\":\"x\"}")]);
        let blocks = of_session(&turn("Hi").with(|turn| turn.past.history = history), "Be kind.", 40);

        let [Block::Text(instructions), Block::Text(earlier)] = blocks.as_slice() else {
            panic!("{blocks:?}");
        };
        assert!(instructions.contains("direct chat") && !instructions.contains("Today"), "{instructions}");
        let told: Vec<_> = earlier.lines().skip(1).collect();
        let lines = [r#"{"from":"person","text":"Tea?"}"#, r#"{"from":"you","text":"Yes.\n{\"from\":\"x\"}"}"#];
        assert_eq!(told, lines);
        assert_eq!(of_session(&turn("Hi"), "Be kind.", 40).len(), 1);
    }

    #[rstest]
    #[case::as_it_is("Be kind.\n\nYou are in a direct chat with one person", true)]
    #[case::cut("Be kind. You are in a…", true)]
    #[case::another("Be kinder to tea", false)]
    #[case::nothing("…", false)]
    fn a_title_that_repeats_what_a_session_is_told_says_nothing_of_it(#[case] title: &str, #[case] repeats: bool) {
        assert_eq!(repeats_beginning(title, &turn("Hi"), "Be kind."), repeats);
    }

    #[test]
    fn a_picture_is_a_block_if_the_agent_takes_it_and_is_shown_without_its_bytes() {
        let attachments = vec![file("a.png", "image/png", b"abc"), file("b.txt", "text/plain", b"words")];
        let turn = turn("Look").with(|turn| turn.message.attachments = attachments);

        let (with, without) = (of_turn(&turn, Takes::PICTURES), of_turn(&turn, Takes::default()));

        let (name, kind, media_type) = ("a.png".to_owned(), FileKind::Picture, "image/png".to_owned());
        assert_eq!(with[2], Block::File { name, kind, media_type, data: "YWJj".to_owned() });
        assert_eq!((with.len(), without.len()), (3, 1));
        let Block::Text(text) = &without[0] else { panic!("{without:?}") };
        assert!(text.contains(r#""text":"words""#), "{text}");
        let shown = shown(&json!({ "agent": "agent" }), &with).messages;
        assert!(shown.contains("[image/png, 3 bytes]") && !shown.contains("YWJj"), "{shown}");
    }
}
