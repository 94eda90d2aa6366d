//! Decides which agent handles a turn, with which model and whose history: the agent that the sender's program or a prompt
//! names, else the one that is chosen for the session, else the one that it was routed to.

use crate::{
    conversations::{
        addresses::Addresses,
        sessions::{self, Sessions},
    },
    intake::arrival::{Arrival, Verdict},
    model::{EventKind, Handler},
};

pub(in crate::intake) async fn handling(arrival: &mut Arrival, addresses: &Addresses, sessions: &Sessions) -> Verdict {
    let mut of_session = arrival.conversation(addresses).await?;
    let (event, handling) = (&arrival.event, &mut arrival.handling);
    if let Some(other) = event.about_another() {
        of_session = addresses.resolve(other).await?;
        handling.about = Some(of_session.id);
    }
    let Handler::Agent(agent) = &handling.handler else {
        handling.repeats = None;
        arrival.event.instead_of = None;
        return Ok(());
    };
    if matches!(event.kind, EventKind::Prompt { agent: Some(_), .. }) {
        return Ok(());
    }
    if let Some(asked) = event.brief.as_ref().filter(|brief| brief.agent.is_some()) {
        handling.model.clone_from(&asked.model);
        return Ok(());
    }
    // What is chosen for the session comes before the rule.
    let person = sessions::session_person(event, &arrival.known);
    let (choice, remark) = sessions.chosen(&of_session, person, agent, &arrival.settings.sessions).await?;
    if let Some(chosen) = choice.agent {
        handling.handler = Handler::Agent(chosen);
    }
    handling.model = choice.model;
    handling.remark = remark;
    Ok(())
}
