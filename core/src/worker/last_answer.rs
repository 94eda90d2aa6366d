//! What an agent is told of its last answer.

use super::input::{Inputs, state_by_now};
use crate::{
    base::words::excerpt,
    model::{AgentName, AnsweredTurn, HistoryLine, LastAnswer, LineState, Reaction, Speaker, TurnRecord},
    ports::{AgentRuntime, StoreError},
};

/// How many characters of the gateway's text the agent is told.
const MOST_SAID: usize = 300;

impl Inputs {
    /// What became of the answer to the agent's turn before this one: each is told in one turn. Nothing is read for an agent that gets
    /// no history and keeps no sessions.
    pub(super) async fn last_answer(
        &self,
        turn: &TurnRecord,
        runtime: &dyn AgentRuntime,
        agent: &AgentName,
    ) -> Result<Option<LastAnswer>, StoreError> {
        let event = &turn.event;
        let is_told = runtime.history() > 0 || runtime.keeps_sessions();
        let has_own_history = event.brief.as_ref().is_some_and(|brief| brief.said_before.is_some());
        if !is_told || !turn.has_history || has_own_history || event.about_another().is_some() || event.is_on_copy() {
            return Ok(None);
        }
        let Some(mut before) = self.store.answered_before(turn.session, turn.id, agent).await? else { return Ok(None) };
        let now = self.clock.now();
        for line in &mut before.lines {
            if let Some(state) = state_by_now(line, now) {
                line.state = state;
            }
        }
        Ok(of_turn(before))
    }
}

fn of_turn(AnsweredTurn { lines, reactions }: AnsweredTurn) -> Option<LastAnswer> {
    let last = lines.last()?;
    match (last.speaker, &last.state) {
        (Speaker::Person, LineState::Stopped) => Some(LastAnswer::Stopped),
        (Speaker::Person, _) => None,
        (Speaker::Agent, state) => of_state(state, reactions),
        (Speaker::Gateway, _) => {
            let is_seen = |line: &&HistoryLine| {
                line.speaker == Speaker::Agent
                    && matches!(line.state, LineState::Seen | LineState::Partly | LineState::OnItsWay)
            };
            // What an operator says after an answer is the gateway's line, too.
            match lines.iter().rfind(is_seen) {
                Some(line) => of_state(&line.state, reactions),
                None if lines.iter().any(|line| line.state == LineState::Stopped) => Some(LastAnswer::Stopped),
                None => Some(LastAnswer::Replaced(excerpt(&last.text, MOST_SAID))),
            }
        }
    }
}

fn of_state(state: &LineState, reactions: Vec<Reaction>) -> Option<LastAnswer> {
    match state {
        LineState::NotDelivered(reason) => Some(LastAnswer::NotDelivered(reason.clone())),
        LineState::Partly => Some(LastAnswer::Partly(reactions)),
        LineState::Seen => (!reactions.is_empty()).then_some(LastAnswer::Seen(reactions)),
        LineState::OnItsWay | LineState::Stopped => None,
    }
}

#[cfg(test)]
mod tests {
    use rejoinder_guard::Timestamp;
    use rstest::rstest;

    use super::*;

    fn line((speaker, state): &(Speaker, LineState)) -> HistoryLine {
        let (at, text) = (Timestamp::from_millis(1), "Sorry.".to_owned());
        HistoryLine { spoken: false, speaker: *speaker, author: None, forwarded: None, text, at, state: state.clone() }
    }

    #[rstest]
    #[case(&[], None)]
    #[case(&[(Speaker::Person, LineState::Seen), (Speaker::Agent, LineState::Seen)], None)]
    #[case(&[(Speaker::Person, LineState::Seen), (Speaker::Agent, LineState::OnItsWay)], None)]
    #[case(&[(Speaker::Person, LineState::Seen), (Speaker::Agent, LineState::Partly)], Some(LastAnswer::Partly(Vec::new())))]
    #[case(&[(Speaker::Person, LineState::Stopped)], Some(LastAnswer::Stopped))]
    #[case(
        &[(Speaker::Person, LineState::Seen), (Speaker::Agent, not_delivered())],
        Some(LastAnswer::NotDelivered("refused".to_owned()))
    )]
    #[case(
        &[(Speaker::Person, LineState::Seen), (Speaker::Agent, not_delivered()), (Speaker::Gateway, LineState::Seen)],
        Some(LastAnswer::Replaced("Sorry.".to_owned()))
    )]
    #[case(
        &[(Speaker::Person, LineState::Seen), (Speaker::Gateway, LineState::Partly)],
        Some(LastAnswer::Replaced("Sorry.".to_owned()))
    )]
    #[case(&[(Speaker::Gateway, LineState::Seen)], Some(LastAnswer::Replaced("Sorry.".to_owned())))]
    #[case(&[(Speaker::Person, LineState::Stopped), (Speaker::Gateway, LineState::Seen)], Some(LastAnswer::Stopped))]
    #[case(
        &[(Speaker::Person, LineState::Seen), (Speaker::Agent, LineState::Seen), (Speaker::Gateway, LineState::Seen)],
        None
    )]
    #[case(
        &[(Speaker::Person, LineState::Seen), (Speaker::Agent, LineState::Partly), (Speaker::Gateway, LineState::Seen)],
        Some(LastAnswer::Partly(Vec::new()))
    )]
    fn it_follows_from_the_lines_of_the_turn(
        #[case] lines: &[(Speaker, LineState)],
        #[case] expected: Option<LastAnswer>,
    ) {
        let lines = lines.iter().map(line).collect();

        assert_eq!(of_turn(AnsweredTurn { lines, reactions: Vec::new() }), expected);
    }

    #[rstest]
    #[case(LineState::Seen, Some(LastAnswer::Seen(vec![thumb()])))]
    #[case(LineState::Partly, Some(LastAnswer::Partly(vec![thumb()])))]
    #[case(LineState::OnItsWay, None)]
    #[case(not_delivered(), Some(LastAnswer::NotDelivered("refused".to_owned())))]
    fn people_react_to_what_they_have_seen(#[case] state: LineState, #[case] expected: Option<LastAnswer>) {
        let lines = [(Speaker::Person, LineState::Seen), (Speaker::Agent, state)].iter().map(line).collect();

        assert_eq!(of_turn(AnsweredTurn { lines, reactions: vec![thumb()] }), expected);
    }

    fn thumb() -> Reaction {
        Reaction { emoji: "👍".to_owned(), by: None }
    }

    fn not_delivered() -> LineState {
        LineState::NotDelivered("refused".to_owned())
    }
}
