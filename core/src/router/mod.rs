//! Routes events: which rule holds for an event, which agent or command handles it, and what is owed for it. Pure: it
//! stores and starts nothing.

pub(crate) mod explain;

use rejoinder_guard::Expectation;

use crate::{
    commands::{self, asks::ASKS, digest::DIGEST, link, message::MESSAGE},
    model::{
        Access, ChatKind, Directed, EventKind, Handler, InboundEvent, KnownPeople, Language, Rule, SenderKind, Settings,
    },
    operator::own_commands,
    people::{People, access::Permit},
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// It is stored and opens no turn.
    NoTurn,
    /// It is stored and opens no turn; its sender gets a notice that they may not talk to the agent.
    Stranger,
    /// As `Stranger`; the notice has a code to be let in with.
    Asks,
    /// An agent, or one of the gateway's own commands, handles it.
    To { handler: Handler, expectation: Expectation },
}

/// The first rule that an event meets, if somebody wrote it.
pub(crate) fn rule<'a>(event: &InboundEvent, settings: &'a Settings, known: &KnownPeople) -> Option<&'a Rule> {
    let is_written = event.sender.kind.is_human() || event.sender.kind == SenderKind::OtherAgent;
    is_written.then(|| settings.rules.iter().find(|rule| rule.unmet(event, known).is_none())).flatten()
}

/// The language of what the gateway tells the sender of an event: what they chose, else what its rule says, else what the
/// platform tells, else what the configuration says of them.
pub(crate) fn language(event: &InboundEvent, rule: Option<&Rule>, people: &People) -> Option<Language> {
    // What the gateway begins is in the language of its reader.
    let spoken = event.language.filter(|_| event.sender.kind == SenderKind::Operator);
    let chosen = spoken.or_else(|| people.chosen_language(&event.identity()));
    let told = chosen.or(rule.and_then(|rule| rule.language)).or(event.language);
    told.or_else(|| people.configured_language(&event.identity()))
}

/// Routes an event, with the rule that it meets. Only an event that a person, or an agent who is let in, directs at the agent
/// is owed an answer. What an operator has the gateway send is a turn of its own, for which access rules do not hold.
pub(crate) fn route(event: &InboundEvent, rule: Option<&Rule>, settings: &Settings, people: &People) -> Route {
    if let (SenderKind::Operator, EventKind::Prompt { agent, quiet, .. }) = (&event.sender.kind, &event.kind) {
        let agent = agent.as_ref().unwrap_or_else(|| settings.agent(&event.about().channel));
        let expectation = if *quiet { Expectation::Nothing } else { Expectation::Answer };
        return Route::To { handler: Handler::Agent(agent.clone()), expectation };
    }
    if event.sender.kind == SenderKind::Operator {
        let command = match event.kind {
            EventKind::PersonAsks { .. } | EventKind::LinkAsked { .. } | EventKind::ApprovalAsked { .. } => ASKS,
            EventKind::Digest { .. } => DIGEST,
            _ => MESSAGE,
        };
        return Route::To { handler: command.handler(), expectation: Expectation::Nothing };
    }
    let Some(permit) = permit(event, settings, people) else { return Route::NoTurn };
    let channel = &event.conversation.channel;
    let is_agent = event.sender.kind == SenderKind::OtherAgent;
    let is_message = match event.kind {
        EventKind::Message | EventKind::Choice { .. } | EventKind::Unreadable => true,
        EventKind::Reaction { .. } if settings.reaction_channels.contains(channel) => false,
        EventKind::Reaction { .. }
        | EventKind::ReactionsRemoved { .. }
        | EventKind::Moved { .. }
        | EventKind::Expired { .. }
        | EventKind::PersonAsks { .. }
        | EventKind::LinkAsked { .. }
        | EventKind::ApprovalAsked { .. }
        | EventKind::Prompt { .. }
        | EventKind::Digest { .. }
        | EventKind::Other => {
            return Route::NoTurn;
        }
    };
    let access = settings.access.get(channel);
    if permit != Permit::Granted && !is_agent && access.is_some_and(|access| links(event, access, people)) {
        return Route::To { handler: link::LINK.handler(), expectation: Expectation::Answer };
    }
    match permit {
        Permit::Granted => {}
        // Only a person can give a code to the operator.
        Permit::DeniedWithNotice | Permit::DeniedWithCode if is_agent => return Route::NoTurn,
        Permit::DeniedWithNotice => return Route::Stranger,
        Permit::DeniedWithCode => return Route::Asks,
        Permit::Denied => return Route::NoTurn,
    }
    let expectation = match event.directed {
        _ if !is_message => Expectation::Nothing,
        Directed::Ambient => Expectation::Nothing,
        Directed::DirectChat | Directed::Mention | Directed::ReplyToUs | Directed::Command | Directed::Asked => {
            Expectation::Answer
        }
    };
    // What somebody else wrote is no command of the sender's: a message that is forwarded, and a choice of a question. Nor is what
    // asks for a sealed answer: the gateway seals none.
    let is_picked = matches!(event.kind, EventKind::Choice { .. });
    let may_command =
        expectation == Expectation::Answer && event.forwarded.is_none() && !is_picked && event.seal_to.is_none();
    let is_spoken = event.directed == Directed::Asked || event.is_spoken();
    let spoken = || commands::spoken::find(&event.text).filter(|_| is_spoken);
    let command = commands::find(&event.text).or_else(spoken).filter(|_| may_command);
    let own = || own_commands::find(&event.text, &settings.commands).filter(|_| may_command);
    let handler = match command {
        Some(command) => command.handler(),
        None => own().and_then(|own| own.handler()).unwrap_or_else(|| {
            let of_rule = rule.and_then(|rule| rule.agent.as_ref());
            let asked = event.brief.as_ref().and_then(|brief| brief.agent.as_ref());
            Handler::Agent(asked.or(of_rule).unwrap_or_else(|| settings.agent(channel)).clone())
        }),
    };
    Route::To { handler, expectation }
}

/// Whether the sender of an event may talk to the agent in its chat. `None`: nobody listens to such a sender.
pub(crate) fn permit(event: &InboundEvent, settings: &Settings, people: &People) -> Option<Permit> {
    let access = settings.access.get(&event.conversation.channel);
    let is_sender = match event.sender.kind {
        SenderKind::Person | SenderKind::Unnamed | SenderKind::KeyHolder => true,
        SenderKind::OtherAgent => access.is_some_and(|access| access.agents.has_sender(&event.sender.id)),
        SenderKind::Ourselves | SenderKind::Operator => false,
    };
    is_sender.then(|| access.map_or(Permit::Granted, |access| access.permit(event, &people.known())))
}

/// Whether a stranger's message proves that they are known on another channel: `/link` with a code that is valid. Any other one
/// is a stranger's message, and costs as little.
fn links(event: &InboundEvent, access: &Access, people: &People) -> bool {
    let is_own = event.forwarded.is_none() && event.amends.is_none();
    let is_message = event.kind == EventKind::Message && event.sender.kind.is_person() && is_own;
    is_message
        && event.chat == ChatKind::Direct
        && access.admits_links()
        && link::code_in(&event.text).is_some_and(|code| people.is_used_link(&code) || people.is_link(&code, event))
}
