//! An agent that obeys the turn's first word.

use rejoinder_core::{
    Attachment, Reply, SharedClock,
    conformance::scripted::{Gate, Script, ScriptedAgent},
};

/// An agent that obeys the first word of a turn, applied to the rest of its text:
///
/// | Word | Action |
/// | --- | --- |
/// | `say` | answers with the rest |
/// | `react` | reacts with the rest, an emoji |
/// | `stay` | stays silent |
/// | `begin` | streams the rest, waits at the gate, and answers with the rest and "and that is all." |
/// | `wait` | the same without streaming |
/// | `ask` | asks "Which?", with the words of the rest as choices |
/// | `choose` | asks the same in the middle of its run, and answers "It is chosen." |
/// | `send` | sends files; the rest is the media type and the URL of each |
///
/// It repeats any other text.
#[must_use]
pub fn obedient(clock: SharedClock, gate: &Gate) -> ScriptedAgent {
    let gate = gate.clone();
    ScriptedAgent::new(clock, move |turn| {
        let (verb, rest) = turn.message.text.split_once(' ').unwrap_or((&turn.message.text, ""));
        let words = || rest.split_whitespace().collect::<Vec<_>>();
        let whole = || Script::replies(&format!("{rest} and that is all."));
        match verb {
            "say" => Script::replies(rest),
            "react" => Script::reacts(rest),
            "ask" => Script::asks("Which?", &words()),
            "choose" if turn.past.answers.is_empty() => {
                Script::replies("It is chosen.").asking_person("Which?", &words(), false)
            }
            "choose" => Script::replies("It is chosen."),
            "stay" => Script::is_silent("told to"),
            "begin" => whole().streaming(rest).waiting(&gate),
            "wait" => whole().waiting(&gate),
            "send" => Script::answers(files(rest)),
            _ => Script::replies(&format!("You said: {}", turn.message.text)),
        }
    })
}

/// A reply with files; `arguments` are the media type and the URL of each.
fn files(arguments: &str) -> Reply {
    let words: Vec<_> = arguments.split_whitespace().collect();
    let file = |pair: &[&str]| {
        let [media_type, url] = pair else { panic!("{pair:?} is no media type and URL") };
        let name = if media_type.starts_with("image/") { "cat.png" } else { "cat.txt" };
        Attachment { name: name.to_owned(), media_type: (*media_type).to_owned(), url: (*url).to_owned() }
    };
    Reply { attachments: words.chunks(2).map(file).collect(), ..Reply::text("Here it is.") }
}
