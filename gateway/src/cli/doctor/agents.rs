//! An agent: whether it can be reached, and has the model.

use rejoinder_agents::{Knows, ModelsError};
use reqwest::Client;

use super::Finding;
use crate::wiring::{AgentContact, ModelServer};

/// How many models are named.
const MOST_NAMED: usize = 10;

pub(super) async fn look(agent: AgentContact<'_>, http: &Client) -> Vec<Finding> {
    let about = format!("agents.{}", agent.name);
    let role = if agent.is_default { ", the default" } else { "" };
    vec![match &agent.server {
        Some(server) => {
            let who = format!("{} at {}{role}", server.model(), server.place());
            finding(about, &who, server, server.ask(http).await)
        }
        None if agent.is_default => Finding::ok(about, "the built-in front desk answers, without a model")
            .so("rejoinder init connects an agent."),
        None => Finding::ok(about, "the built-in front desk"),
    }]
}

fn finding(about: String, who: &str, server: &ModelServer<'_>, asked: Result<Knows, ModelsError>) -> Finding {
    let (model, key) = (format!("{about}.model"), format!("{about}.api_key"));
    let base_url = format!("{about}.base_url");
    match asked {
        Ok(Knows::Yes) => Finding::ok(about, who),
        Ok(Knows::No(listed)) => Finding::wrong(about, format!("{who}: there is no such model"))
            .so(format!("Set {model} to one that is there: {}.", named(&listed))),
        Ok(Knows::Unlisted(listed)) => Finding::warning(about, format!("{who}: the server does not list this model"))
            .so(format!("If it does not take other names, set {model} to one that it lists: {}.", named(&listed))),
        Err(error @ ModelsError::Unreachable(_)) => Finding::wrong(about, format!("{who}: {error}"))
            .so(format!("Start the server, or set {base_url} to where it is.")),
        Err(ModelsError::KeyRefused(status)) if !server.has_key() => {
            Finding::wrong(about, format!("{who}: it wants a key ({status})")).so(format!("Set {key}."))
        }
        Err(error @ ModelsError::KeyRefused(_)) => {
            Finding::wrong(about, format!("{who}: {error}")).so(format!("Set {key} to one that is valid."))
        }
        Err(error @ ModelsError::Failing(_)) => {
            Finding::wrong(about, format!("{who}: {error}")).so("Its own log says why; look again in a moment.")
        }
        Err(error @ ModelsError::NoList(_)) => Finding::warning(about, format!("{who}: {error}"))
            .so(format!("Does {base_url} end with /v1, where the server has it? If turns are answered, all is well.")),
    }
}

fn named(models: &[String]) -> String {
    if models.is_empty() {
        return "it lists none".to_owned();
    }
    let names: Vec<_> = models.iter().take(MOST_NAMED).map(String::as_str).collect();
    let more = models.len() - names.len();
    if more == 0 { names.join(", ") } else { format!("{} and {more} more", names.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_of_models_is_cut() {
        let models: Vec<_> = (1..=12).map(|number| format!("m{number}")).collect();

        assert_eq!(named(&models), "m1, m2, m3, m4, m5, m6, m7, m8, m9, m10 and 2 more");
        assert_eq!(named(&models[..2]), "m1, m2");
        assert_eq!(named(&[]), "it lists none");
    }
}
