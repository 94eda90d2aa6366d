//! What is shown of a turn.

use rejoinder_core::{SignalKind, TurnStatus};

use super::frames::{File, Signal, Turn};
use crate::output::{local_time, printable};

/// What stands on the screen for one turn. Safe to print.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Block {
    /// Who speaks, and how.
    pub(crate) head: String,
    pub(crate) body: String,
    /// What stands below it: choices and files.
    pub(crate) foot: Vec<String>,
    pub(crate) speaker: Speaker,
    /// Whether something else will stand there soon.
    pub(crate) is_passing: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Speaker {
    Agent,
    #[default]
    Gateway,
}

/// What is known of an answer that is being written.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress<'a> {
    /// The Markdown so far.
    pub(crate) draft: Option<&'a str>,
    pub(crate) is_typing: bool,
}

/// What is shown of a turn that the agent `agent` answers; `None`: nothing.
pub(crate) fn block(turn: &Turn, progress: Progress<'_>, agent: &str) -> Option<Block> {
    // What nobody asked for may come to nothing.
    let is_nothing = turn.is_final() && turn.shown.is_none() && turn.is_unasked();
    if turn.merged_into.is_some() || is_nothing {
        return None;
    }
    if !turn.is_final()
        && let Some(draft) = progress.draft
    {
        let (head, body) = (printable(agent), printable(draft));
        let foot = vec!["…".to_owned()];
        return Some(Block { head, body, foot, speaker: Speaker::Agent, is_passing: true });
    }
    match (turn.status, &turn.shown) {
        (TurnStatus::Silent, _) => Some(said_of(&format!("{agent} says nothing: no answer was owed."))),
        (TurnStatus::Cancelled, Some(shown)) if shown.signal != SignalKind::Deferral => {
            Some(block_of(shown, None, agent))
        }
        (TurnStatus::Cancelled, _) => Some(said_of("Stopped.")),
        (TurnStatus::Undeliverable, _) => {
            let how = format!("No answer could be delivered. Why: rejoinder turns explain {}", turn.turn_id);
            Some(said_of(&how))
        }
        (_, Some(shown)) => Some(block_of(shown, turn.picked.as_deref(), agent)),
        (TurnStatus::Accepted | TurnStatus::Deferred, None) if progress.is_typing => {
            Some(Block { is_passing: true, ..said_of(&format!("{agent} is writing…")) })
        }
        (_, None) => None,
    }
}

/// A line of this program's own.
fn said_of(words: &str) -> Block {
    Block { head: format!("({})", printable(words)), ..Block::default() }
}

fn block_of(shown: &Signal, picked: Option<&str>, agent: &str) -> Block {
    let speaker = if shown.agent.is_some() { Speaker::Agent } else { Speaker::Gateway };
    let who = match (&shown.agent, shown.fallback) {
        (Some(name), _) => name.clone(),
        (None, true) => format!("gateway, as {agent} gave no answer"),
        (None, false) => "gateway".to_owned(),
    };
    let due = shown.due.as_deref().and_then(|at| at.trim().parse().ok()).map(local_time);
    let how = match (shown.signal, due) {
        (SignalKind::Reply, _) => String::new(),
        (SignalKind::Reaction, _) => " reacts".to_owned(),
        (SignalKind::Deferral, Some(due)) => format!(", for now (the answer is due at {due})"),
        (SignalKind::Deferral, None) => ", for now (the answer follows)".to_owned(),
    };
    Block {
        head: printable(&format!("{who}{how}")),
        body: printable(shown.text.trim_end()),
        foot: foot(shown, picked),
        speaker,
        is_passing: false,
    }
}

fn foot(shown: &Signal, picked: Option<&str>) -> Vec<String> {
    let choices = (1..).zip(&shown.choices).map(|(number, choice)| {
        let mark = if picked == Some(choice) { "  ✓" } else { "" };
        printable(&format!("{number}. {choice}{mark}"))
    });
    choices.chain(shown.files.iter().map(file)).collect()
}

/// A file, on one line.
pub(crate) fn file(file: &File) -> String {
    let File { name, r#type: kind, url, .. } = file;
    printable(&format!("[file] {name} ({kind}): {}", url.as_deref().unwrap_or("no link")))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::{
        super::frames::examples::{reply, turn},
        *,
    };

    fn shown(turn: &Turn) -> Option<Block> {
        block(turn, Progress::default(), "main")
    }

    fn signal(kind: &str, more: &Value) -> Value {
        let mut signal = json!({ "signal": kind, "text": "words", "at": "2026-01-01T10:00:01.000Z" });
        signal.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        signal
    }

    #[rstest]
    #[case("answered", signal("reply", &json!({ "agent": "main" })), "main", Speaker::Agent)]
    #[case("answered", signal("reaction", &json!({ "agent": "main" })), "main reacts", Speaker::Agent)]
    #[case("answered", signal("reply", &json!({})), "gateway", Speaker::Gateway)]
    #[case("answered", signal("reply", &json!({ "fallback": true })), "gateway, as main gave no answer", Speaker::Gateway)]
    #[case("deferred", signal("deferral", &json!({})), "gateway, for now (the answer follows)", Speaker::Gateway)]
    #[case("deferred", signal("deferral", &json!({ "agent": "main" })), "main, for now (the answer follows)", Speaker::Agent)]
    fn who_speaks_is_named(#[case] status: &str, #[case] signal: Value, #[case] head: &str, #[case] speaker: Speaker) {
        let block = shown(&turn(status, &signal)).unwrap();

        assert_eq!((&*block.head, &*block.body, block.speaker), (head, "words", speaker));
    }

    #[test]
    fn what_is_said_of_a_turn_that_is_given_up_is_shown() {
        let block = shown(&turn("cancelled", &signal("reply", &json!({})))).unwrap();

        assert_eq!((&*block.head, &*block.body), ("gateway", "words"));
    }

    #[test]
    fn the_time_that_an_agent_promised_is_shown() {
        let deferral = signal("deferral", &json!({ "agent": "main", "due": "2020-01-01T12:00:00.000Z" }));

        let head = shown(&turn("deferred", &deferral)).unwrap().head;

        assert!(head.starts_with("main, for now (the answer is due at 20"), "{head}");
    }

    #[rstest]
    #[case("silent", "(main says nothing: no answer was owed.)")]
    #[case("cancelled", "(Stopped.)")]
    #[case("undeliverable", "(No answer could be delivered. Why: rejoinder turns explain t1)")]
    fn an_end_without_words_is_told(#[case] status: &str, #[case] head: &str) {
        let block = shown(&turn(status, &json!(null))).unwrap();

        assert_eq!((&*block.head, &*block.body, block.is_passing), (head, "", false));
    }

    /// What the gateway began by itself.
    #[rstest]
    #[case("silent")]
    #[case("cancelled")]
    #[case("undeliverable")]
    fn of_an_end_that_nobody_waits_for_nothing_is_told(#[case] status: &str) {
        let mut unasked = turn(status, &json!(null));
        unasked.text = String::new();
        assert_eq!(shown(&unasked), None);

        // Files without words are a question, too.
        unasked.rest.insert("files".to_owned(), json!([{ "name": "a.png", "type": "image/png" }]));
        assert!(shown(&unasked).is_some());
    }

    #[test]
    fn what_nobody_asked_for_is_shown_once_it_is_there() {
        let mut unasked = turn("answered", &reply("Good morning."));
        unasked.text = String::new();

        assert_eq!(shown(&unasked).map(|block| block.body), Some("Good morning.".to_owned()));
    }

    #[test]
    fn a_draft_begins_as_its_answer_will() {
        let accepted = turn("accepted", &json!(null));
        let progress = Progress { draft: Some("Hi th"), is_typing: true };

        let draft = block(&accepted, progress, "main").unwrap();
        let answer = block(&turn("answered", &reply("Hi there")), progress, "main").unwrap();

        assert_eq!((&*draft.head, &*draft.body, draft.is_passing), ("main", "Hi th", true));
        assert_eq!((&*answer.head, &*answer.body, answer.is_passing), ("main", "Hi there", false));
        assert_eq!(shown(&accepted), None);
    }

    #[test]
    fn choices_are_numbered_and_the_picked_one_is_marked() {
        let mut question = reply("Which?");
        question["choices"] = json!(["this", "that"]);
        let mut asked = turn("answered", &question);

        assert_eq!(shown(&asked).unwrap().foot, ["1. this", "2. that"]);
        asked.picked = Some("that".to_owned());
        assert_eq!(shown(&asked).unwrap().foot, ["1. this", "2. that  ✓"]);
    }

    #[test]
    fn files_are_links() {
        let mut answer = reply("");
        answer["files"] = json!([
            { "name": "a.pdf", "type": "application/pdf", "url": "https://example.org/a.pdf" },
            { "name": "b.md", "type": "text/markdown", "url": "/files/1" },
            { "name": "c.md", "type": "text/markdown" },
        ]);
        let mut turn = turn("answered", &answer);
        turn.complete_links("http://127.0.0.1:7420");

        let foot = shown(&turn).unwrap().foot;

        let expected = [
            "[file] a.pdf (application/pdf): https://example.org/a.pdf",
            "[file] b.md (text/markdown): http://127.0.0.1:7420/files/1",
            "[file] c.md (text/markdown): no link",
        ];
        assert_eq!(foot, expected);
    }

    /// Nothing that an agent says controls the terminal.
    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        let mut answer = reply("\u{1b}[2J\u{9b}0m\r\u{7}");
        answer["agent"] = json!("ma\u{1b}in");
        answer["choices"] = json!(["\u{1b}]0;title\u{7}"]);
        answer["files"] = json!([{ "name": "\u{1b}c", "type": "\u{8}", "url": "https://\u{1b}" }]);
        let draft = Progress { draft: Some("\u{1b}[2J"), is_typing: false };

        for block in [
            shown(&turn("answered", &answer)),
            block(&turn("accepted", &json!(null)), draft, "m\u{1b}"),
            block(&turn("silent", &json!(null)), Progress::default(), "m\u{1b}"),
        ] {
            let block = block.unwrap();
            let all = format!("{}{}{}", block.head, block.body, block.foot.concat());
            assert!(!all.chars().any(char::is_control), "{all:?}");
        }
    }

    #[test]
    fn a_merged_turn_shows_nothing() {
        let mut merged = turn("answered", &json!(null));
        merged.merged_into = Some("t2".to_owned());

        assert_eq!(shown(&merged), None);
    }
}
