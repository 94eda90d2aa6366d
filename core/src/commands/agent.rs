//! `/agent`: tells or chooses the agent of the session. `/model`: the model of that agent.

use std::sync::Arc;

use super::command::{Answer, Call, Command};
use crate::{
    model::{AgentName, SessionChange, SessionChoice, Settings},
    ports::StoreError,
};

pub(super) const AGENT: Command =
    Command::new("agent", &["/agent"], 1, "Which agent answers", |call| Box::pin(agent(call)));

pub(super) const MODEL: Command =
    Command::new("model", &["/model"], 1, "Which model answers", |call| Box::pin(model(call)));

async fn agent(call: &Call<'_>) -> Result<Answer, StoreError> {
    let routed: AgentName = call.configured_agent().into();
    let names = agents(call.settings, &routed);
    let find = |word: &str| names.iter().find(|name| name.eq_ignore_ascii_case(word)).cloned();
    let choice = |agent: AgentName| SessionChoice { agent: (agent != routed).then_some(agent), model: None };
    choose(call, ["agent", "agent_fixed", "agent_chosen", "agent_unknown"], &names, find, choice).await
}

/// The agents that can be chosen where messages are routed to this one.
pub(super) fn agents(settings: &Settings, routed: &AgentName) -> Vec<AgentName> {
    let mut names = settings.sessions.agents.clone();
    if !names.contains(routed) {
        names.insert(0, Arc::clone(routed));
    }
    names
}

/// The models of these agents, each once.
pub(super) fn models(settings: &Settings, routed: &AgentName) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for model in agents(settings, routed).iter().filter_map(|agent| settings.sessions.models.get(agent)).flatten() {
        if !names.iter().any(|known| **known == **model) {
            names.push(model.to_string());
        }
    }
    names
}

async fn model(call: &Call<'_>) -> Result<Answer, StoreError> {
    let agent = call.agent();
    let models = call.settings.sessions.models.get(agent).cloned().unwrap_or_default();
    // The first is the agent's own.
    let own = models.first().cloned();
    let find = |word: &str| models.iter().find(|name| name.eq_ignore_ascii_case(word)).cloned();
    let choice = |model: Arc<str>| SessionChoice {
        agent: call.choice.agent.clone(),
        model: Some(model).filter(|model| Some(model) != own.as_ref()),
    };
    choose(call, ["model", "model_fixed", "model_chosen", "model_unknown"], &models, find, choice).await
}

/// Tells what can be chosen, or chooses what the message names. The templates: for what is chosen now, for when there is
/// nothing to choose, for what was chosen, for a name that is not among them.
async fn choose(
    call: &Call<'_>,
    [now, fixed, chosen, unknown]: [&'static str; 4],
    names: &[Arc<str>],
    find: impl Fn(&str) -> Option<Arc<str>>,
    choice: impl Fn(Arc<str>) -> SessionChoice,
) -> Result<Answer, StoreError> {
    if names.len() < 2 {
        return Ok(Answer::of(fixed));
    }
    let current = call.choice.model.clone().or_else(|| names.first().cloned()).unwrap_or_default();
    let listed = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let told = |template, model: &str| Answer::filled(template, vec![("names", listed), ("model", model.to_owned())]);
    let Some(word) = call.turn.event.text.split_whitespace().nth(1) else { return Ok(told(now, &current)) };
    if call.is_guest_of_group() {
        return Ok(Answer::of("session_guest"));
    }
    let Some(name) = find(word) else { return Ok(told(unknown, &current)) };
    let seen = call.sessions.seen(call.turn.conversation, call.session_person).await?;
    let Some((session, _)) = call.sessions.store.current_session(call.turn.conversation, call.session_person).await?
    else {
        return Ok(Answer::of("session_unknown"));
    };
    let sessions = vec![SessionChange::Choose { session, choice: choice(Arc::clone(&name)) }];
    let answer = Answer::filled(chosen, vec![("name", name.to_string())]);
    Ok(Answer { sessions, seen, ..answer })
}
