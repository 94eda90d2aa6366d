//! Several nodes on one store. The gateway is one of them, and the test does what another one would do.

mod leases;
mod permits;
mod turns;

use std::{sync::Arc, time::Duration};

use rejoinder_core::{
    AgentTurn, ConversationId, EventId, Expectation, Handler, InboundEvent, Obligation, Policy, Resend, SessionId,
    TurnId,
    conformance::scripted::Script,
    store::{Hint, LeaseName, NewEvent, NewTurn, RunStart, SessionUse},
};
use rejoinder_guard::Event;

use crate::gateway::{GatewaySetup, TestGateway, main_channel, other_node, policy, secs};

const MINUTE: Duration = secs(60);

const QUARTER: Duration = secs(900);

fn of_channel() -> LeaseName {
    LeaseName::Channel(main_channel())
}

/// A gateway whose agent says what it hears, while another node holds these leases.
async fn beside(held: &[LeaseName]) -> TestGateway {
    let setup = GatewaySetup { held_elsewhere: Some(held.to_vec()), ..GatewaySetup::new() };
    setup
        .capable(|it| it.resend = Resend::Idempotent)
        .policy(Policy { soft_deadline: None, ..policy() })
        .agent("main", |turn: &AgentTurn| Script::replies(&turn.message.text))
        .start()
        .await
}

/// A turn that another node has accepted, and that waits.
pub(crate) fn waits_elsewhere(event: InboundEvent) -> NewEvent {
    let at = event.received_at;
    let turn = NewTurn {
        id: TurnId::new(at),
        handler: Handler::Agent("main".into()),
        rule: None,
        obligation: Obligation::open(Expectation::Answer, &policy(), None, at),
        run: None,
        conversation: ConversationId::new(at),
        about: None,
        session: SessionUse::current(SessionId::new(at)),
        model: None,
        remark: None,
        repeats: None,
        day: None,
    };
    NewEvent { id: EventId::new(at), event: Arc::new(event), turn: Some(turn), only_if_known: false, files: Vec::new() }
}

/// What its node tells of a turn that waits.
fn hint_of(waits: &NewEvent) -> Hint {
    Hint::Waiting("main".into(), waits.turn.as_ref().expect("it has a turn").conversation)
}

/// A turn that another node has accepted and runs.
pub(crate) fn runs_elsewhere(event: InboundEvent) -> NewEvent {
    let at = event.received_at;
    let mut new = waits_elsewhere(event);
    let turn = new.turn.as_mut().expect("it has a turn");
    let _ = turn.obligation.on(Event::Begin, &policy(), at);
    turn.run = Some(RunStart { turn: turn.id, number: 1, handler: turn.handler.clone(), node: other_node(), at });
    new
}
