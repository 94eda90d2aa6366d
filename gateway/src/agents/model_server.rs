//! A server with a model: what every kind that uses one checks and remarks.

use std::future::Future;

use rejoinder_agents::{ModelStatus, ModelsError};
use rejoinder_config::Secret;
use url::Url;

use crate::{
    client::{CHECK_TIMEOUT, is_readable_on_the_way},
    console::finding::Finding,
};

/// How many of the server's models a finding names.
const MAX_LISTED: usize = 10;

/// The server of the agent `name`.
pub(super) struct ModelServer<'a> {
    pub(super) name: &'a str,
    pub(super) base_url: &'a Url,
    pub(super) model: &'a str,
    pub(super) api_key: Option<&'a Secret>,
    /// What may be wrong with `base_url` if the server does not list its models, as a question about it.
    pub(super) doubt: &'static str,
}

impl ModelServer<'_> {
    /// [`AgentFactory::remark_on`](super::factory::AgentFactory::remark_on).
    pub(super) fn remark(&self) -> Option<String> {
        (self.api_key.is_some() && is_readable_on_the_way(self.base_url)).then(|| {
            format!(
                "agents.{}.base_url begins with http://: the key and all messages can be read on the way.",
                self.name
            )
        })
    }

    /// [`AgentFactory::check`](super::factory::AgentFactory::check): what is found once `status` is there.
    pub(super) async fn check(
        &self,
        is_default: bool,
        status: impl Future<Output = Result<ModelStatus, ModelsError>>,
    ) -> Vec<Finding> {
        let role = if is_default { ", the default" } else { "" };
        let url = rejoinder_agents::redacted_url(self.base_url);
        let who = format!("{} at {}{role}", self.model, url.as_str().trim_end_matches('/'));
        let in_time = tokio::time::timeout(CHECK_TIMEOUT, status).await;
        let unreachable = || Err(ModelsError::Unreachable("it does not answer in time".to_owned()));
        vec![self.finding(&who, in_time.unwrap_or_else(|_| unreachable()))]
    }

    fn finding(&self, who: &str, status: Result<ModelStatus, ModelsError>) -> Finding {
        let about = format!("agents.{}", self.name);
        let (model, key) = (format!("{about}.model"), format!("{about}.api_key"));
        let base_url = format!("{about}.base_url");
        match status {
            Ok(ModelStatus::Available) => Finding::ok(about, who),
            Ok(ModelStatus::Missing(listed)) => Finding::wrong(about, format!("{who}: the server has no such model"))
                .with_advice(format!("Set {model} to one that it has: {}.", list_models(&listed))),
            Ok(ModelStatus::Unlisted(listed)) => {
                Finding::warning(about, format!("{who}: the server does not list this model")).with_advice(format!(
                    "If it accepts only listed models, set {model} to one of them: {}.",
                    list_models(&listed)
                ))
            }
            Err(error @ ModelsError::Unreachable(_)) => Finding::wrong(about, format!("{who}: {error}"))
                .with_advice(format!("Start the server, or correct its address in {base_url}.")),
            Err(ModelsError::KeyRefused(status)) if self.api_key.is_none() => {
                Finding::wrong(about, format!("{who}: it needs a key ({status})")).with_advice(format!("Set {key}."))
            }
            Err(error @ ModelsError::KeyRefused(_)) => {
                Finding::wrong(about, format!("{who}: {error}")).with_advice(format!("Set {key} to a valid key."))
            }
            Err(error @ ModelsError::Failing(_)) => Finding::wrong(about, format!("{who}: {error}"))
                .with_advice("See the server's log, and try again in a moment."),
            Err(error @ ModelsError::NoList(_)) => Finding::warning(about, format!("{who}: {error}"))
                .with_advice(format!("Does {base_url} {}? If turns are answered, ignore this.", self.doubt)),
        }
    }
}

fn list_models(models: &[String]) -> String {
    if models.is_empty() {
        return "it lists none".to_owned();
    }
    let names: Vec<_> = models.iter().take(MAX_LISTED).map(String::as_str).collect();
    let more = models.len() - names.len();
    if more == 0 { names.join(", ") } else { format!("{} and {more} more", names.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_of_models_is_cut() {
        let models: Vec<_> = (1..=12).map(|number| format!("m{number}")).collect();

        assert_eq!(list_models(&models), "m1, m2, m3, m4, m5, m6, m7, m8, m9, m10 and 2 more");
        assert_eq!(list_models(&models[..2]), "m1, m2");
        assert_eq!(list_models(&[]), "it lists none");
    }
}
