//! Who began a turn, and who says what in it, whatever becomes of it.

use super::*;
use crate::{explain::Initiator, model::EventKind};

/// Who can begin a turn, and whether an agent answers it.
fn origins() -> Vec<(Initiator<'static>, bool, InboundEvent)> {
    let person = Arc::unwrap_or_clone(Life::new().dossier.turn.event);
    let own = |id: &str, key: &str, is_prompt: bool| {
        let kind = if is_prompt {
            EventKind::Prompt { agent: None, quiet: false, asked_by: None, about: None, on_copy: false }
        } else {
            EventKind::Other
        };
        let sender =
            Sender { id: id.to_owned(), name: Some(id.to_owned()), kind: SenderKind::Operator, username: None };
        InboundEvent { kind, sender, external_id: format!("operator:{key}"), ..person.clone() }
    };
    let expired = EventKind::Expired { turn: uuid(8).into() };
    vec![
        (Initiator::Person, true, person.clone()),
        (Initiator::Person, false, person.clone()),
        (Initiator::Operator("root"), false, own("root", "send:4:root:1", false)),
        (Initiator::Operator("schedule"), false, own("schedule", "send:8:schedule:1", false)),
        (Initiator::Schedule("morning"), false, own("morning", "schedule:1:60000:ada", false)),
        (Initiator::Schedule("morning"), true, own("morning", "run:1:4:root:1:ada", true)),
        (Initiator::Trigger("reflect"), true, own("trigger:reflect", "trigger:reflect:9:ada", true)),
        (Initiator::Event("webhook.ci"), false, own("webhook.ci", "news:webhook.ci:1:ada", false)),
        (Initiator::Event("webhook.ci"), true, own("webhook.ci", "news:webhook.ci:1:ada", true)),
        (Initiator::Alert, false, own("alerts", "send:6:alerts:1", false)),
        (Initiator::Gateway, false, own("gateway", "paired:7:0", false)),
        (Initiator::Gateway, false, InboundEvent { kind: expired, ..own("gateway", "expired", false) }),
    ]
}

fn began_by(event: &InboundEvent, is_agents: bool) -> Life {
    let mut life = Life::new();
    life.dossier.turn.event = Arc::new(event.clone());
    if !is_agents {
        life.dossier.turn.handler = Handler::Gateway("message".into());
    }
    life
}

/// What becomes of a turn.
type End = fn(Life) -> Life;

/// What becomes of a turn that an agent answers, and the sentence that names who says the last word.
fn ends_of_agents() -> [(End, &'static str); 6] {
    [
        (|life| life.begins().answers("Words.").delivered("42"), "The agent's answer is cleared: “Words.”"),
        (
            |life| life.begins().run_ends("reaction", None).event(Event::Outcome(Outcome::React("👍".to_owned()))),
            "The agent's reaction is cleared: 👍",
        ),
        (
            |life| {
                let due = Timestamp::from_millis(60_000);
                life.begins().event(Event::Outcome(Outcome::Defer { note: Some("Soon.".to_owned()), due }))
            },
            "The agent's deferral is cleared: “Soon.”",
        ),
        (|life| life.begins().fails("broken").delivered("42"), "so the ladder says `failed`"),
        (
            |life| life.begins().event(Event::Sent(Reply::text("Words."))),
            "What the agent sent during its run is cleared",
        ),
        (
            |life| life.begins().event(Event::GivenUp { reason: "it loops".to_owned(), say: None }),
            "The turn is given up, and the person is told",
        ),
    ]
}

#[test]
fn whoever_begins_a_turn_the_agents_words_are_the_agents() {
    for (initiator, is_agents, event) in origins() {
        assert_eq!(Initiator::of(&event), initiator, "{}", event.external_id);
        for (end, said) in ends_of_agents() {
            let text = end(began_by(&event, true)).explained();

            assert!(text.contains(said), "{initiator:?}, {is_agents}: {text}");
            assert!(!text.contains("message of") && !text.contains("sends it"), "{initiator:?}: {text}");
        }
    }
}

#[test]
fn what_no_agent_says_is_said_by_who_began_the_turn() {
    for (initiator, _, event) in origins().into_iter().filter(|(_, is_agents, _)| !is_agents) {
        let said = Event::Answered(Reply::text("Words."));
        let text = began_by(&event, false).event(said).delivered("42").explained();

        let expected = match initiator {
            Initiator::Person => "The gateway's answer is cleared: “Words.”".to_owned(),
            initiator => format!("The message of {initiator} is cleared: “Words.”"),
        };
        assert!(text.contains(&expected) && !text.contains("agent's"), "{initiator:?}: {text}");
    }
}

/// The operator is named only where an operator did something.
#[test]
fn the_first_sentence_names_who_began_the_turn() {
    for (initiator, is_agents, event) in origins() {
        let life = began_by(&event, is_agents);
        let life = if is_agents {
            life.begins().answers("Words.")
        } else {
            life.event(Event::Answered(Reply::text("Words.")))
        };
        let text = life.after(secs(1)).delivered("42").explained();
        let (headline, _) = text.split_once('\n').expect("there are more lines");

        assert!(headline.contains(&format!(" after {}", initiator.began())), "{headline}");
        assert_eq!(text.contains("operator"), matches!(initiator, Initiator::Operator(_)), "{text}");
    }
}
