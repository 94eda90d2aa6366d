//! Routes a pick from a question of the gateway's own to the command that decides it.

use crate::{
    commands::{
        asks::{self, DECIDE, NO_CHOICE},
        digest::{ASKS_AGAIN, DIGEST},
        link,
    },
    intake::arrival::{Arrival, Verdict},
    model::EventKind,
    people::People,
    questions::{
        digest,
        open_questions::{Asks, OpenQuestions},
    },
};

/// A sender who may not decide picks nothing, nor does who picks none of the choices: the question stays open for the person who was
/// asked.
pub(in crate::intake) async fn own_question(
    arrival: &mut Arrival,
    questions: &OpenQuestions,
    people: &People,
) -> Verdict {
    let (event, settings, known) = (&arrival.event, &arrival.settings, &arrival.known);
    let (command, decides) = match arrival.asks {
        None => return Ok(()),
        Some(Asks::Approve(_, person)) if asks::may_decide(event, person, settings, known) => {
            let is_choice = questions.offers(event).await?;
            (if is_choice { &DECIDE } else { &NO_CHOICE }, is_choice)
        }
        Some(Asks::Approve(..)) => (&DECIDE, false),
        Some(Asks::Digest(person)) => {
            let command = if questions.is_shown_again(event).await? { &ASKS_AGAIN } else { &DIGEST };
            (command, digest::may_press(event, person, known))
        }
        Some(Asks::Link(turn)) => (&DECIDE, link::may_confirm(event, turn, people)),
        Some(Asks::AboutBacklog) => (&DECIDE, !settings.is_guest_of_group(event, known)),
        Some(Asks::LetIn | Asks::Run(_)) => (&DECIDE, true),
    };
    if !decides {
        arrival.event.kind = EventKind::Message;
    }
    arrival.handling.handler = command.handler();
    Ok(())
}
