//! The models of an API: the agents that may be chosen.

use std::sync::Arc;

use rejoinder_core::AgentName;
use serde::Serialize;
use utoipa::ToSchema;

/// The agents that callers may choose. An agent is a model of its name, and with each of its models one more:
/// `main` and `main/fast`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Models(Vec<OfferedAgent>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferedAgent {
    pub name: AgentName,
    /// Its models, of which one may be chosen.
    pub models: Vec<Arc<str>>,
}

impl Models {
    /// The first agent is the one that answers if nobody chooses. Further agents of a name that there is already are left
    /// out.
    #[must_use]
    pub fn new(agents: impl IntoIterator<Item = OfferedAgent>) -> Self {
        let mut offered: Vec<OfferedAgent> = Vec::new();
        for agent in agents {
            if offered.iter().all(|other| other.name != agent.name) {
                offered.push(agent);
            }
        }
        Self(offered)
    }

    /// The agent, and its model if that is named, too; `None` if they may not be chosen.
    pub(crate) fn find(&self, id: &str) -> Option<(AgentName, Option<Arc<str>>)> {
        if let Some(agent) = self.0.iter().find(|agent| *agent.name == *id) {
            return Some((Arc::clone(&agent.name), None));
        }
        let (name, model) = id.split_once('/')?;
        let agent = self.0.iter().find(|agent| *agent.name == *name)?;
        let model = agent.models.iter().find(|known| ***known == *model)?;
        Some((Arc::clone(&agent.name), Some(Arc::clone(model))))
    }

    /// The ids, agents before their models.
    pub(crate) fn ids(&self) -> impl Iterator<Item = String> {
        self.0.iter().flat_map(|agent| {
            let with_model = |model: &Arc<str>| format!("{}/{model}", agent.name);
            std::iter::once(agent.name.to_string()).chain(agent.models.iter().map(with_model))
        })
    }
}

/// A model: an agent, or one of its models.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CompletionModel)]
pub(crate) struct Model {
    /// `main` or `main/fast`.
    id: String,
    /// Always `model`.
    object: &'static str,
    /// When the gateway started, in seconds since 1970.
    created: i64,
    /// Always `rejoinder`.
    owned_by: &'static str,
}

impl Model {
    pub(crate) const fn new(id: String, created: i64) -> Self {
        Self { id, object: "model", created, owned_by: "rejoinder" }
    }
}

/// The models.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CompletionModels)]
pub(crate) struct ModelList {
    /// Always `list`.
    object: &'static str,
    data: Vec<Model>,
}

impl ModelList {
    pub(crate) fn of(models: &Models, created: i64) -> Self {
        Self { object: "list", data: models.ids().map(|id| Model::new(id, created)).collect() }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn models() -> Models {
        let agent = |name: &str, models: &[&str]| OfferedAgent {
            name: name.into(),
            models: models.iter().map(|model| Arc::from(*model)).collect(),
        };
        Models::new([agent("main", &["vendor/fast", "slow"]), agent("research", &[]), agent("main", &["other"])])
    }

    #[test]
    fn an_agent_is_a_model_and_so_is_each_of_its_models() {
        assert_eq!(models().ids().collect::<Vec<_>>(), ["main", "main/vendor/fast", "main/slow", "research"]);
    }

    #[rstest]
    #[case("main", Some(("main", None)))]
    #[case("main/vendor/fast", Some(("main", Some("vendor/fast"))))]
    #[case("research", Some(("research", None)))]
    #[case("main/other", None)]
    #[case("research/slow", None)]
    #[case("gpt-4o", None)]
    #[case("", None)]
    fn only_what_is_listed_may_be_chosen(#[case] id: &str, #[case] expected: Option<(&str, Option<&str>)>) {
        let found = models().find(id);

        let found = found.as_ref().map(|(agent, model)| (&**agent, model.as_deref()));
        assert_eq!(found, expected);
    }
}
