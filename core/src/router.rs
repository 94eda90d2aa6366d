//! Which agent a turn goes to, and what is owed for it.

use crate::{AgentName, Directed, EventKind, Expectation, InboundEvent, SenderKind, Settings, commands};

/// Where an event goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// It is kept, and given to nobody.
    Nowhere,
    /// To the gateway's own commands.
    Command,
    /// To an agent.
    Agent { agent: AgentName, expectation: Expectation },
}

/// Routes an event. Only what is directed at the agent by a person opens an obligation.
pub(crate) fn route(event: &InboundEvent, settings: &Settings) -> Route {
    if event.kind == EventKind::Other || event.sender.kind != SenderKind::Person {
        return Route::Nowhere;
    }
    let expectation = match event.directed {
        Directed::Ambient => Expectation::Nothing,
        Directed::DirectChat | Directed::Mention | Directed::ReplyToUs | Directed::Command | Directed::Asked => {
            Expectation::Answer
        }
    };
    if expectation == Expectation::Answer && commands::Command::parse(&event.text).is_some() {
        return Route::Command;
    }
    Route::Agent { agent: settings.agent(&event.conversation.channel).clone(), expectation }
}
