//! What agents schedule in the conversations in which they answer.

use super::{Worker, input::schedule_limits};
use crate::{
    events::Run,
    model::{Missed, NewSchedule, Schedule, ScheduleCall, Target, TurnRecord},
    operator::{actor::Actor, error::OperationError},
};

impl Worker {
    /// Does what an agent wants of the schedules of the turn's conversation. Returns the schedules, or what it is told.
    pub(super) async fn schedule(
        &self,
        turn: &TurnRecord,
        run: &Run,
        call: ScheduleCall,
    ) -> Result<Vec<Schedule>, String> {
        let limits = schedule_limits(run, &turn.event, &self.settings.get(), &self.channels);
        let limits = limits.ok_or_else(|| "nothing can be scheduled here".to_owned())?;
        let to = Target::Conversation(turn.event.conversation.clone());
        let by = Actor::named(format!("agent {}", run.handler));
        match call {
            ScheduleCall::List => Ok(self.calendar.of_agents(&to)),
            ScheduleCall::Add { name, when, time_zone, action } => {
                let new = NewSchedule { name, when, time_zone, to, action, missed: Missed::Once };
                let added = self.calendar.add_of_agent(new, (turn, run.started_at), limits, &by).await;
                added.map(|added| vec![added]).map_err(|error| told(&error))
            }
            ScheduleCall::Remove { name } => {
                let own = self.calendar.of_agents(&to).into_iter().find(|it| it.new.name == name);
                let own = own.ok_or_else(|| format!("there is no schedule `{name}` here"))?;
                self.calendar.remove(&own.id.to_string(), &by).await.map_err(|error| told(&error))?;
                Ok(vec![own])
            }
        }
    }
}

/// What an agent is told of why something was not done.
fn told(error: &OperationError) -> String {
    match error {
        OperationError::Store(_) => "it cannot be stored now: try again later".to_owned(),
        error => error.to_string(),
    }
}
