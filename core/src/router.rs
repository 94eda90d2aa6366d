//! Routes events: which agent or command handles an event, and what is owed for it.

use rejoinder_guard::Expectation;

use crate::{
    access::Permit,
    commands::{self, message::MESSAGE},
    model::{
        command::CommandAnswer,
        event::{Directed, EventKind, InboundEvent, SenderKind},
        people::KnownPeople,
        settings::Settings,
        turn::Handler,
    },
};

/// The route of an event.
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

/// Routes an event. Only an event that a person directs at the agent is owed an answer. What an operator has the gateway
/// send is a turn of its own, for which access rules do not hold.
pub(crate) fn route(event: &InboundEvent, settings: &Settings, known: &KnownPeople) -> Route {
    if event.sender.kind == SenderKind::Operator {
        return Route::To { handler: MESSAGE.handler(), expectation: Expectation::Nothing };
    }
    if !matches!(event.sender.kind, SenderKind::Person | SenderKind::Unnamed) {
        return Route::NoTurn;
    }
    let channel = &event.conversation.channel;
    let is_message = match event.kind {
        EventKind::Message | EventKind::Choice { .. } | EventKind::Unreadable => true,
        EventKind::Reaction { .. } if settings.reaction_channels.contains(channel) => false,
        EventKind::Reaction { .. } | EventKind::Moved { .. } | EventKind::Expired { .. } | EventKind::Other => {
            return Route::NoTurn;
        }
    };
    match settings.access.get(channel).map_or(Permit::Granted, |access| access.permit(event, known)) {
        Permit::Granted => {}
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
    // What somebody else wrote is no command of the sender's: a message that is forwarded, and a choice of a question.
    let is_picked = matches!(event.kind, EventKind::Choice { .. });
    let may_command = expectation == Expectation::Answer && event.forwarded.is_none() && !is_picked;
    let command = commands::find(&event.text).filter(|_| may_command);
    let own = || commands::own::find(&event.text, settings).filter(|_| may_command);
    let handler = match command {
        Some(command) => command.handler(),
        None => match own() {
            Some(own) if matches!(own.command.answer, CommandAnswer::Words(_)) => Handler::Gateway(own.name.into()),
            _ => Handler::Agent(settings.agent(channel).clone()),
        },
    };
    Route::To { handler, expectation }
}
