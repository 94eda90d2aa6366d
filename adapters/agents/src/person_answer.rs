//! What the person answered in the middle of a run, as JSON, as an agent reads it.

use rejoinder_core::PersonAnswer;
use serde::Serialize;
use utoipa::ToSchema;

#[derive(Serialize, ToSchema)]
#[schema(as = AgentTurnAnswer)]
pub(crate) struct Answer<'a> {
    question: &'a str,
    /// The choice, or the person's words; `null`: they have not answered in time.
    answer: Option<&'a str>,
}

impl<'a> From<&'a PersonAnswer> for Answer<'a> {
    fn from(PersonAnswer { question, answer }: &'a PersonAnswer) -> Self {
        Self { question: &question.action, answer: answer.as_deref() }
    }
}

impl Answer<'_> {
    pub(crate) fn json(&self) -> String {
        serde_json::to_string(self).expect("texts serialise to JSON")
    }
}
