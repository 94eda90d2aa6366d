//! The message to an owner that somebody asks to be let in, and what the owner picks from it.

use rejoinder_guard::{Choices, Reply};

use super::{
    approve::{approve, decline, owner_of, plain},
    command::{Answer, Call, Command, Words},
    filled,
};
use crate::{
    model::{event::EventKind, people::Pairing, question::QuestionFilter},
    ports::store::StoreError,
};

pub(crate) const ASKS: Command = Command {
    name: "asks",
    texts: &[],
    arguments: 0,
    description: "Tell an owner that somebody asks to be let in",
    is_recorded: false,
    act: |call| {
        Box::pin(async {
            let EventKind::PersonAsks { code } = &call.turn.event.kind else { return Ok(nothing()) };
            let pairing = call.people.waiting_with(code);
            Ok(pairing.map_or_else(nothing, |pairing| Answer::saying(Words::Own(question(&pairing, call)))))
        })
    },
};

pub(crate) const DECIDE: Command = Command {
    name: "decide",
    texts: &[],
    arguments: 0,
    description: "Let somebody in who asks, or do not",
    is_recorded: false,
    act: |call| Box::pin(decide(call)),
};

/// It was decided before the owner could be told.
fn nothing() -> Answer {
    Answer::saying(Words::Own(Reply::text("")))
}

fn question(pairing: &Pairing, call: &Call<'_>) -> Reply {
    let event = &call.turn.event;
    let say = |template| call.settings.templates.template(&event.conversation.channel, event.language, template);
    let names = [pairing.name.clone(), pairing.username.as_ref().map(|name| format!("@{name}"))];
    let name = names.into_iter().flatten().map(|name| plain(&name)).collect::<Vec<_>>().join(", ");
    let name = if name.is_empty() { pairing.identity.id.clone() } else { name };
    let values = [("name", name), ("identity", pairing.identity.to_string()), ("code", pairing.shown_code())];
    let options = vec![say("person_let_in").to_owned(), say("person_keep_out").to_owned()];
    let choices = Choices { options, free_text: false, expires: Some(pairing.expires_at) };
    Reply::question(filled(say("person_asks"), &values), choices)
}

/// An owner's decision on the request that they were told of.
async fn decide(call: &Call<'_>) -> Result<Answer, StoreError> {
    let EventKind::Choice { turn } = call.turn.event.kind else { return Ok(Answer::of("person_decided")) };
    let Some(owner) = owner_of(call) else { return Ok(Answer::of("owners_only")) };
    let question = call.store.questions(QuestionFilter::Of(turn), 1).await?.pop();
    let told = call.store.turn(turn).await?;
    let held = call.people.deciding().await;
    let pairing = told.and_then(|told| match &told.event.kind {
        EventKind::PersonAsks { code } => call.people.waiting_with(code),
        _ => None,
    });
    let (Some(question), Some(pairing)) = (question, pairing) else { return Ok(Answer::of("person_decided")) };
    let is_let_in = question.question.choices.first() == Some(&call.turn.event.text);
    Ok(if is_let_in { approve(call, &owner, &pairing, held) } else { decline(call, &owner, &pairing, held) })
}
