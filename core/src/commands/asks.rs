//! The questions to owners and approvers (whether to let a person in, whether to approve an agent's request), and their
//! answers.

use std::sync::Arc;

use rejoinder_guard::{ApprovalOption, ApprovalRequest, Choices, Event, Reply};

use super::{
    approve::{approve, decline, owner_of},
    backlog::{self, ASKS_ABOUT_BACKLOG},
    command::{Answer, Call, Command, Words},
    link,
};
use crate::{
    base::{
        verbatim::{code_block, verbatim},
        words::{excerpt, filled, plain},
    },
    events::TurnEvents,
    model::{
        Approval, ApprovalChange, ApprovalFilter, ApprovalId, ApprovalState, ChatKind, EventKind, InboundEvent,
        KnownPeople, Pairing, PersonId, QuestionFilter, Settings, TurnId, TurnRecord,
    },
    operator::actor::Actor,
    ports::StoreError,
    questions::request::{FOR_EVER, is_shortened, left_out},
};

/// How many characters of the message that the agent answers are shown.
const EXCERPT: usize = 200;

pub(crate) const ASKS: Command = Command::notice("asks", "Tell somebody what they may decide", |call| {
    Box::pin(async {
        Ok(match &call.turn.event.kind {
            EventKind::PersonAsks { code } => {
                let pairing = call.people.waiting_with(code);
                pairing.map_or_else(Answer::nothing, |pairing| Answer::saying(Words::Own(question(&pairing, call))))
            }
            EventKind::LinkAsked { turn } => link::asks(call, *turn).await?,
            EventKind::ApprovalAsked { approval, .. } => {
                let approval = call.approvals.get(*approval).await?.filter(|approval| approval.is_open(call.now));
                match approval {
                    Some(approval) => Answer::saying(Words::Own(wish(&approval, call).await?)),
                    None => Answer::nothing(),
                }
            }
            _ => Answer::nothing(),
        })
    })
});

pub(crate) const DECIDE: Command = Command::notice("decide", "Decide what was asked", |call| Box::pin(decide(call)));

/// For an approver whose pick is none of the choices: it decides nothing, and the question stays open.
pub(crate) const NO_CHOICE: Command =
    Command::notice("no_choice", "Tell somebody that they picked none of the choices", |_| {
        Box::pin(async { Ok(Answer::of("approval_no_choice")) })
    });

fn question(pairing: &Pairing, call: &Call<'_>) -> Reply {
    let names = [pairing.name.clone(), pairing.username.as_ref().map(|name| format!("@{name}"))];
    let name = names.into_iter().flatten().map(|name| plain(&name)).collect::<Vec<_>>().join(", ");
    let name = if name.is_empty() { pairing.identity.id.clone() } else { name };
    let values = [("name", name), ("identity", pairing.identity.to_string()), ("code", pairing.shown_code())];
    let text = filled(call.say("person_asks"), &values);
    call.yes_or_no(text, ["person_let_in", "person_keep_out"], Some(pairing.expires_at))
}

/// An agent's request, with the choices yes and no, and its own options. [`Approval::decision_at`] reads them.
async fn wish(approval: &Approval, call: &Call<'_>) -> Result<Reply, StoreError> {
    let told = told_wish(approval, call).await?;
    let plain = ["approval_approve", "approval_decline"].map(|answer| call.say(answer).to_owned());
    let own = approval.request.options.iter().map(|ApprovalOption { name, allows }| {
        let template = if *allows { "approval_approve_as" } else { "approval_decline_as" };
        filled(call.say(template), &[("option", told_option(name, call, str::to_owned))])
    });
    let options = told_apart(plain.into_iter().chain(own));
    Ok(Reply::question(told, Choices { options, free_text: false, expires: approval.expires_at }))
}

/// The labels of choices. What is picked is known by its label, so one that another one has already gets its number.
fn told_apart(labels: impl Iterator<Item = String>) -> Vec<String> {
    labels.fold(Vec::new(), |mut labels, label| {
        let number = labels.len() + 1;
        labels.push(if labels.contains(&label) { format!("{label} ({number})") } else { label });
        labels
    })
}

/// An agent's request, its person, and the message that it answers.
pub(super) async fn told_wish(approval: &Approval, call: &Call<'_>) -> Result<String, StoreError> {
    let Approval { agent, request, channel, .. } = approval;
    let asked_by = asked_by(approval, call).await?;
    let mut names: Vec<String> = Vec::new();
    for event in &asked_by {
        let name = name_of(event, call);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let texts: Vec<_> = asked_by.iter().map(|event| event.text.trim()).collect();
    let values = [
        ("agent", agent.to_string()),
        ("name", names.join(", ")),
        ("channel", channel.to_string()),
        ("text", plain(&excerpt(&texts.join(" / "), EXCERPT))),
        ("action", verbatim(&request.action)),
    ];
    let mut told = vec![filled(call.say("approval_asks"), &values).trim_end().to_owned()];
    told.extend(asks(request, call));
    if let Some(details) = &request.details {
        told.push(code_block(details));
        told.extend(left_out(details).map(|count| filled(call.say("approval_cut"), &[("count", count.to_string())])));
    }
    if approval.has_whole {
        told.push(filled(call.say("approval_whole"), &[("id", approval.id.to_string())]));
    } else if is_shortened(request) {
        // Also beside a count, which the agent may have written itself.
        told.push(call.say("approval_shortened").to_owned());
    }
    told.retain(|part| !part.is_empty());
    Ok(told.join("\n\n"))
}

/// What asks, if that is known of the kind. Agents cannot name such a kind themselves.
fn asks(request: &ApprovalRequest, call: &Call<'_>) -> Option<String> {
    let kind = request.kind.as_deref().unwrap_or_default();
    if let Some(tool) = kind.strip_prefix("mcp.") {
        let server = tool.split('.').next().unwrap_or_default();
        return Some(filled(call.say("approval_mcp"), &[("server", plain(server))]));
    }
    if kind.starts_with("acp.") {
        return Some(call.say("approval_acp").to_owned());
    }
    request.details.as_ref().map(|_| call.say("approval_own").to_owned())
}

/// The messages that the turn of an approval answers.
async fn asked_by(approval: &Approval, call: &Call<'_>) -> Result<Vec<Arc<InboundEvent>>, StoreError> {
    let Some(turn) = call.store.turn(approval.turn).await? else { return Ok(Vec::new()) };
    let mut events = vec![Arc::clone(&turn.event)];
    for merged in turn.obligation.merged_turns() {
        let Ok(id) = merged.turn.parse() else { continue };
        events.extend(call.store.turn(id).await?.map(|merged| merged.event));
    }
    Ok(events)
}

/// Who wrote a message: the name by which they are known, or the one that they chose, with their id.
pub(super) fn name_of(event: &InboundEvent, call: &Call<'_>) -> String {
    const LONGEST: usize = 80;
    let known = call.people.known();
    if let Some((_, name)) = event.known_as(&known) {
        return plain(&excerpt(name, LONGEST));
    }
    let id = plain(&excerpt(event.person(), LONGEST));
    match &event.sender.name {
        Some(name) => format!("{}, {id}", plain(&excerpt(name, LONGEST))),
        None => id,
    }
}

/// Whether the sender of an event may answer a question to this person: they are that person, in a direct chat, and
/// still may decide.
pub(crate) fn may_decide(event: &InboundEvent, person: PersonId, settings: &Settings, known: &KnownPeople) -> bool {
    let identity = event.identity();
    event.chat == ChatKind::Direct
        && event.sender.kind.is_person()
        && known.person(&identity.channel, &identity.id) == Some(person)
        && settings.approvals.is_approver(&identity, known)
}

/// A person's answer to such a question.
async fn decide(call: &Call<'_>) -> Result<Answer, StoreError> {
    // Only what an approver picks stays a pick.
    let EventKind::Choice { turn } = call.turn.event.kind else { return Ok(Answer::of("approval_not_yours")) };
    let question = call.questions.questions(QuestionFilter::Of(turn), 1).await?.pop();
    let position = |choices: &[String]| choices.iter().position(|choice| *choice == call.turn.event.text);
    let picked = question.as_ref().map(|question| position(&question.question.choices));
    let is_yes = picked.map(|position| position == Some(0));
    let told = call.store.turn(turn).await?;
    if told.as_ref().is_some_and(|told| told.handler == ASKS_ABOUT_BACKLOG.handler()) {
        return backlog::decide(call, Some(is_yes == Some(true))).await;
    }
    if let Some(asked) = told.as_ref().filter(|told| !told.handler.is_gateway()) {
        return answer_run(call, asked.id).await;
    }
    match told.map(|told| told.event.kind.clone()) {
        Some(EventKind::ApprovalAsked { approval, person }) => {
            decide_wish(call, approval, person, picked.flatten()).await
        }
        Some(EventKind::LinkAsked { turn }) => link::decide(call, turn, is_yes).await,
        told => Ok(decide_person(call, told, is_yes)),
    }
}

fn decide_person(call: &Call<'_>, told: Option<EventKind>, is_yes: Option<bool>) -> Answer {
    let Some(owner) = owner_of(call) else { return Answer::of("owners_only") };
    let seen = call.people.seen();
    let pairing = match told {
        Some(EventKind::PersonAsks { code }) => call.people.waiting_with(&code),
        _ => None,
    };
    let (Some(is_yes), Some(pairing)) = (is_yes, pairing) else { return Answer::of("person_decided") };
    if is_yes { approve(call, &owner, &pairing, seen) } else { decline(call, &owner, &pairing, seen) }
}

/// An approver's decision on an agent's request.
async fn decide_wish(
    call: &Call<'_>,
    approval: ApprovalId,
    person: PersonId,
    picked: Option<usize>,
) -> Result<Answer, StoreError> {
    let known = call.people.known();
    if !may_decide(&call.turn.event, person, call.settings, &known) {
        return Ok(Answer::of("approval_not_yours"));
    }
    decide_approval(call, approval, picked).await
}

/// The decision of a person who may decide: they picked the choice at this position.
pub(super) async fn decide_approval(
    call: &Call<'_>,
    id: ApprovalId,
    picked: Option<usize>,
) -> Result<Answer, StoreError> {
    let (event, known) = (&call.turn.event, call.people.known());
    let identity = event.identity();
    let Some(name) = event.known_as(&known).map(|(_, name)| name.to_owned()) else {
        return Ok(Answer::of("approval_not_yours"));
    };
    let Some(approval) = call.approvals.get(id).await? else { return Ok(Answer::of("approval_over")) };
    if !approval.is_open(call.now) {
        return Ok(was_decided(&approval, call));
    }
    let Some(decision) = picked.and_then(|position| approval.decision_at(position)) else {
        return Ok(Answer::of("approval_no_choice"));
    };
    let Some(waiting) = waiting(call, approval.turn).await? else {
        // Another approver may have decided since the first read.
        let decided = call.approvals.get(id).await?;
        return Ok(decided.map_or_else(|| Answer::of("approval_over"), |it| was_decided(&it, call)));
    };
    let by = Actor::named(format!("{name} ({identity})"));
    let decided = approval.decided(&waiting, decision, &name, &by, call.now);
    let template = if decision.approves { "approval_approved" } else { "approval_declined" };
    let chosen = decision.option.and_then(|number| approval.option(number)).map(|option| &*option.name);
    let answer = Answer::filled(template, vec![("action", told_action(&approval, chosen, call))]);
    Ok(Answer {
        turn_events: vec![TurnEvents { turn: waiting, events: vec![Event::Decided] }],
        approval: Some(decided),
        ..answer
    })
}

/// A person's answer to what a run waits for.
async fn answer_run(call: &Call<'_>, asked: TurnId) -> Result<Answer, StoreError> {
    const LONGEST: usize = 64 * 1024;
    let (event, over) = (&call.turn.event, Answer::of("question_over"));
    let approvals = call.approvals.list(ApprovalFilter::Of(asked)).await?;
    let question = approvals.into_iter().rfind(|approval| approval.request.choices.is_some());
    let Some(question) = question.filter(|question| question.is_open(call.now)) else { return Ok(over) };
    let choices = question.request.choices.iter();
    let may_say = choices.clone().any(|it| it.free_text || it.options.contains(&event.text));
    let Some(waiting) = waiting(call, asked).await?.filter(|_| may_say) else { return Ok(over) };
    let by = Actor::named(event.sender.name.clone().unwrap_or_else(|| event.sender.id.clone()));
    let mut decided = question.decided(&waiting, true.into(), &by.name, &by, call.now);
    if let ApprovalChange::Decided { note, .. } = &mut decided.change {
        *note = Some(event.text.trim().chars().take(LONGEST).collect());
    }
    Ok(Answer {
        turn_events: vec![TurnEvents { turn: waiting, events: vec![Event::Decided] }],
        approval: Some(decided),
        ..Answer::filled("question_answered", vec![("answer", plain(&excerpt(&event.text, EXCERPT)))])
    })
}

async fn waiting(call: &Call<'_>, turn: TurnId) -> Result<Option<TurnRecord>, StoreError> {
    let turn = call.store.readable_turn(turn).await?;
    Ok(turn.filter(|turn| turn.obligation.decide_by().is_some()))
}

fn was_decided(approval: &Approval, call: &Call<'_>) -> Answer {
    let template = match approval.state {
        ApprovalState::Approved => "approval_was_approved",
        ApprovalState::Declined => "approval_was_declined",
        ApprovalState::Waiting | ApprovalState::Expired | ApprovalState::Dropped => "approval_over",
    };
    let by = approval.decided_by.as_deref().map(plain).unwrap_or_default();
    let action = told_action(approval, approval.chosen.as_deref(), call);
    Answer::filled(template, vec![("name", by), ("action", action)])
}

/// What was decided, and the option that was chosen.
fn told_action(approval: &Approval, chosen: Option<&str>, call: &Call<'_>) -> String {
    let action = verbatim(&approval.request.action);
    match chosen {
        Some(option) => format!("{action} ({})", told_option(option, call, verbatim)),
        None => action,
    }
}

/// The name of an option, in the agent's words. That it holds for ever is said in the gateway's.
fn told_option(name: &str, call: &Call<'_>, shown: fn(&str) -> String) -> String {
    match name.strip_prefix(FOR_EVER) {
        Some(own) => filled(call.say("approval_for_ever"), &[("option", shown(own))]),
        None => shown(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An operator's own words may leave out the name of an option.
    #[test]
    fn choices_with_the_same_words_are_told_apart() {
        let labels = ["Yes", "No", "Yes", "No: never", "Yes"].map(str::to_owned);

        assert_eq!(told_apart(labels.into_iter()), ["Yes", "No", "Yes (3)", "No: never", "Yes (5)"]);
    }
}
