//! What an agent is told of its last answer.

use super::input::{Inputs, note_if_late};
use crate::{
    base::words::excerpt,
    model::{HistoryLine, LastAnswer, LineState, Speaker, TurnRecord},
    ports::{AgentRuntime, StoreError},
};

/// How many lines are read of the session of an agent that gets no history: those of one turn.
const LINES: u32 = 8;

/// How many characters of the gateway's text the agent is told.
const MOST_SAID: usize = 300;

impl Inputs {
    /// What became of the last answer before the turn. Nothing is read for it, except for an agent that keeps sessions and gets no
    /// `history`.
    pub(super) async fn last_answer(
        &self,
        turn: &TurnRecord,
        runtime: &dyn AgentRuntime,
        history: &[HistoryLine],
    ) -> Result<Option<LastAnswer>, StoreError> {
        let event = &turn.event;
        let is_told = event.brief.as_ref().is_some_and(|brief| brief.said_before.is_some());
        if !turn.has_history || is_told || event.about_another().is_some() || event.is_on_copy() {
            return Ok(None);
        }
        // An earlier run has said something in this turn: a deferral.
        let own = |line: &HistoryLine| line.speaker == Speaker::Person && line.at == event.received_at;
        let before = |lines: &[HistoryLine]| match lines.iter().rposition(own) {
            Some(own) if turn.obligation.claims() > 0 => of_lines(&lines[..own]),
            _ => of_lines(lines),
        };
        if runtime.history() > 0 {
            return Ok(before(history));
        }
        if !runtime.keeps_sessions() {
            return Ok(None);
        }
        let mut lines = self.store.transcript(turn.session, LINES).await?;
        let now = self.clock.now();
        for line in &mut lines {
            note_if_late(line, now);
        }
        Ok(before(&lines))
    }
}

/// The same of the lines before the turn, oldest first.
fn of_lines(lines: &[HistoryLine]) -> Option<LastAnswer> {
    let last = lines.last()?;
    match (last.speaker, &last.state) {
        (Speaker::Person, LineState::Stopped) => Some(LastAnswer::Stopped),
        (Speaker::Person, _) => None,
        (Speaker::Agent, state) => of_state(state),
        (Speaker::Gateway, _) => {
            let ours = lines.iter().rev().take_while(|line| line.speaker != Speaker::Person);
            let seen = ours
                .filter(|line| line.speaker == Speaker::Agent)
                .find(|line| matches!(line.state, LineState::Seen | LineState::Partly | LineState::OnItsWay));
            // What an operator says after an answer, or without a question, is the gateway's line, too.
            match (seen, lines.iter().rfind(|line| line.speaker == Speaker::Person)) {
                (Some(line), _) => of_state(&line.state),
                (None, Some(asked)) if asked.state == LineState::Stopped => Some(LastAnswer::Stopped),
                (None, Some(_)) => Some(LastAnswer::Replaced(excerpt(&last.text, MOST_SAID))),
                (None, None) => None,
            }
        }
    }
}

fn of_state(state: &LineState) -> Option<LastAnswer> {
    match state {
        LineState::NotDelivered(reason) => Some(LastAnswer::NotDelivered(reason.clone())),
        LineState::Partly => Some(LastAnswer::Partly),
        LineState::Seen | LineState::OnItsWay | LineState::Stopped => None,
    }
}

#[cfg(test)]
mod tests {
    use rejoinder_guard::Timestamp;
    use rstest::rstest;

    use super::*;

    fn line((speaker, state): &(Speaker, LineState)) -> HistoryLine {
        let (at, text) = (Timestamp::from_millis(1), "Sorry.".to_owned());
        HistoryLine { speaker: *speaker, author: None, forwarded: None, text, at, state: state.clone() }
    }

    #[rstest]
    #[case(&[], None)]
    #[case(&[(Speaker::Person, LineState::Seen), (Speaker::Agent, LineState::Seen)], None)]
    #[case(&[(Speaker::Person, LineState::Seen), (Speaker::Agent, LineState::OnItsWay)], None)]
    #[case(&[(Speaker::Agent, LineState::Partly), (Speaker::Person, LineState::Seen)], None)]
    #[case(&[(Speaker::Person, LineState::Seen), (Speaker::Agent, LineState::Partly)], Some(LastAnswer::Partly))]
    #[case(&[(Speaker::Agent, LineState::Seen), (Speaker::Person, LineState::Stopped)], Some(LastAnswer::Stopped))]
    #[case(
        &[(Speaker::Person, LineState::Seen), (Speaker::Agent, not_delivered())],
        Some(LastAnswer::NotDelivered("refused".to_owned()))
    )]
    #[case(
        &[(Speaker::Person, LineState::Seen), (Speaker::Agent, not_delivered()), (Speaker::Gateway, LineState::Seen)],
        Some(LastAnswer::Replaced("Sorry.".to_owned()))
    )]
    #[case(
        &[(Speaker::Agent, LineState::Seen), (Speaker::Person, LineState::Seen), (Speaker::Gateway, LineState::Partly)],
        Some(LastAnswer::Replaced("Sorry.".to_owned()))
    )]
    #[case(&[(Speaker::Gateway, LineState::Seen)], None)]
    #[case(&[(Speaker::Person, LineState::Stopped), (Speaker::Gateway, LineState::Seen)], Some(LastAnswer::Stopped))]
    #[case(
        &[(Speaker::Person, LineState::Seen), (Speaker::Agent, LineState::Seen), (Speaker::Gateway, LineState::Seen)],
        None
    )]
    #[case(
        &[(Speaker::Person, LineState::Seen), (Speaker::Agent, LineState::Partly), (Speaker::Gateway, LineState::Seen)],
        Some(LastAnswer::Partly)
    )]
    fn it_follows_from_the_last_lines(#[case] lines: &[(Speaker, LineState)], #[case] expected: Option<LastAnswer>) {
        let lines: Vec<_> = lines.iter().map(line).collect();

        assert_eq!(of_lines(&lines), expected);
    }

    fn not_delivered() -> LineState {
        LineState::NotDelivered("refused".to_owned())
    }
}
