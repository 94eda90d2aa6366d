//! An agent that does what it is told.

use rejoinder_core::{
    Attachment, Reply, SharedClock,
    conformance::scripted::{Gate, Script, ScriptedAgent},
};

/// An agent that does what the first word says, with the rest:
///
/// | word | what it does |
/// | --- | --- |
/// | `say` | answers with it |
/// | `react` | reacts with it |
/// | `stay` | is silent |
/// | `begin` | streams it, waits at the gate, and answers with it "and that is all." |
/// | `wait` | waits at the gate, and answers the same |
/// | `send` | sends a file: its media type and its address |
///
/// Anything else it says back.
#[must_use]
pub fn obedient(clock: SharedClock, gate: &Gate) -> ScriptedAgent {
    let gate = gate.clone();
    ScriptedAgent::new(clock, move |turn| {
        let (verb, rest) = turn.text.split_once(' ').unwrap_or((&turn.text, ""));
        let whole = || Script::replies(&format!("{rest} and that is all."));
        match verb {
            "say" => Script::replies(rest),
            "react" => Script::reacts(rest),
            "stay" => Script::is_silent("told to"),
            "begin" => whole().streaming(rest).waiting(&gate),
            "wait" => whole().waiting(&gate),
            "send" => Script::answers(file(rest)),
            _ => Script::replies(&format!("You said: {}", turn.text)),
        }
    })
}

/// A reply with the file of this media type at this address.
fn file(told: &str) -> Reply {
    let (media_type, url) = told.split_once(' ').expect("a media type and an address");
    let name = if media_type.starts_with("image/") { "cat.png" } else { "cat.txt" };
    let file = Attachment { name: name.to_owned(), media_type: media_type.to_owned(), url: url.to_owned() };
    Reply { text: "Here it is.".to_owned(), attachments: vec![file] }
}
