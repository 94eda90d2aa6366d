//! The budgets of agents: a run begins only while its agent has something left of the day.

use std::sync::Arc;

use tracing::{error, warn};

use crate::{
    events::Run,
    model::{AgentName, Budget, Cost, Day, LiveSettings, Usage},
    ports::{DayUse, PeopleStore, SharedClock, StoreError},
};

/// Operators are told once this part of a budget is used, in percent.
const MOST_OF_IT: u64 = 80;

/// Knows what agents with a budget have used today. Nothing is kept in memory: it is a row, which only these agents have.
pub(crate) struct Budgets {
    pub(crate) usage: Arc<dyn PeopleStore>,
    pub(crate) settings: LiveSettings,
    pub(crate) clock: SharedClock,
}

impl Budgets {
    /// Why an agent may begin no run today; `None` if it may.
    pub(super) async fn spent(&self, agent: &AgentName) -> Result<Option<String>, StoreError> {
        let Some((budget, today)) = self.budget(agent) else { return Ok(None) };
        let DayUse { tokens, micros, .. } = self.usage.agent_use(agent, today.number).await?;
        Ok((budget.percent(tokens, micros) >= 100).then(|| format!("the agent {agent} has used its budget of the day")))
    }

    /// The day on which the end of a run counts; `None` if its agent has no budget.
    pub(super) fn day(&self, run: &Run) -> Option<i64> {
        self.budget(run.handler.agent()?).map(|(_, today)| today.number)
    }

    /// Tells operators if this run, whose end is stored and which counts on `day`, was the one with which its agent had used most of its budget, or all.
    pub(super) async fn note(&self, run: &Run, day: i64, usage: Option<Usage>, cost: Option<Cost>) {
        let Some(agent) = run.handler.agent() else { return };
        let Some((budget, _)) = self.budget(agent) else { return };
        let DayUse { tokens, micros, .. } = match self.usage.agent_use(agent, day).await {
            Ok(used) => used,
            Err(error) => return warn!(%agent, %error, "cannot read what an agent has used of the day"),
        };
        let Usage { input_tokens, output_tokens } = usage.unwrap_or_default();
        let before = budget.percent(
            tokens.saturating_sub(input_tokens.saturating_add(output_tokens)),
            micros.saturating_sub(cost.map_or(0, |cost| cost.micros)),
        );
        let percent = budget.percent(tokens, micros);
        if before < 100 && percent >= 100 {
            error!(
                agent = &**agent,
                tokens, "an agent has used its budget of the day: it begins no run before the next"
            );
        } else if before < MOST_OF_IT && percent >= MOST_OF_IT {
            error!(agent = &**agent, tokens, percent, "an agent has used most of its budget of the day");
        }
    }

    fn budget(&self, agent: &AgentName) -> Option<(Budget, Day)> {
        let settings = self.settings.get();
        let budget = settings.budgets.get(agent)?;
        Some((*budget, Day::of(self.clock.now(), &settings.time_zone)))
    }
}
