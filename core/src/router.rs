//! Which agent a turn goes to, and what is owed for it.

use rejoinder_guard::Expectation;

use crate::{
    access::Permit,
    commands::{self, command::Command},
    model::{
        event::{Directed, EventKind, InboundEvent, SenderKind},
        settings::Settings,
        turn::Handler,
    },
};

/// Where an event goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// It is kept, and given to nobody.
    Nowhere,
    /// It is kept, and its sender is told that they may not talk to the agent.
    Stranger,
    /// To an agent, or to one of the gateway's own commands.
    To { handler: Handler, expectation: Expectation },
}

/// Routes an event. Only what is directed at the agent by a person opens an obligation.
pub(crate) fn route(event: &InboundEvent, settings: &Settings) -> Route {
    if event.sender.kind != SenderKind::Person {
        return Route::Nowhere;
    }
    let channel = &event.conversation.channel;
    let is_said = match event.kind {
        EventKind::Message | EventKind::Choice { .. } | EventKind::Unreadable => true,
        EventKind::Reaction { .. } if settings.tells_reactions.contains(channel) => false,
        EventKind::Reaction { .. } | EventKind::Moved { .. } | EventKind::Other => {
            return Route::Nowhere;
        }
    };
    match settings.access.get(channel).map_or(Permit::Granted, |access| access.permit(event)) {
        Permit::Granted => {}
        Permit::Told => return Route::Stranger,
        Permit::Denied => return Route::Nowhere,
    }
    let expectation = match event.directed {
        _ if !is_said => Expectation::Nothing,
        Directed::Ambient => Expectation::Nothing,
        Directed::DirectChat | Directed::Mention | Directed::ReplyToUs | Directed::Command | Directed::Asked => {
            Expectation::Answer
        }
    };
    let command = commands::find(&event.text).filter(|_| expectation == Expectation::Answer);
    let handler = command.map_or_else(|| Handler::Agent(settings.agent(channel).clone()), Command::handler);
    Route::To { handler, expectation }
}
