//! What the gateway adds to the prompt of an agent, for the operator.

use rejoinder_core::AgentTurn;
use serde::Serialize;

use crate::{piece::PieceName, prompt::instructions, tools::offered};

/// What the gateway adds to an agent's own prompt.
#[derive(Clone, Debug, Serialize)]
pub struct AddedToPrompt {
    /// Follow the system prompt, in this order.
    pub pieces: Vec<PromptPiece>,
    /// What the operator's configuration leaves out.
    pub left_out: Vec<PieceName>,
    /// The tools that the model may call.
    pub tools: Vec<OfferedTool>,
}

/// A part of the instructions.
#[derive(Clone, Debug, Serialize)]
pub struct PromptPiece {
    pub name: PieceName,
    /// The text that the model reads.
    pub text: String,
}

/// A tool of the gateway.
#[derive(Clone, Debug, Serialize)]
pub struct OfferedTool {
    /// Its name, for example `ask`.
    pub name: String,
    /// What the model reads about it.
    pub description: String,
}

/// What a model gets in this turn besides its system prompt and the messages. `has_tools`: whether it is offered tools.
pub fn added_to_prompt(turn: &AgentTurn, leave_out: &[PieceName], has_tools: bool) -> AddedToPrompt {
    let pieces = instructions::added(turn).into_iter().filter(|(name, _)| !leave_out.contains(name));
    let tools = if has_tools { offered(turn) } else { Vec::new() };
    AddedToPrompt {
        pieces: pieces.map(PromptPiece::of).collect(),
        left_out: leave_out.to_vec(),
        tools: tools
            .iter()
            .map(|tool| OfferedTool { name: tool.name.to_string(), description: tool.description.to_string() })
            .collect(),
    }
}

/// What an agent that remembers by itself is told at the beginning of a session, besides the operator's instructions and the transcript.
pub fn added_to_session(turn: &AgentTurn) -> AddedToPrompt {
    let pieces = instructions::added_to_session(turn).into_iter().map(PromptPiece::of).collect();
    AddedToPrompt { pieces, left_out: Vec::new(), tools: Vec::new() }
}

impl PromptPiece {
    fn of((name, text): (PieceName, String)) -> Self {
        Self { name, text: text.trim().to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::turn;

    #[test]
    fn the_pieces_are_what_the_model_reads() {
        let turn = turn("Hi");
        let added = added_to_prompt(&turn, &[PieceName::Legend], true);

        let names: Vec<_> = added.pieces.iter().map(|piece| piece.name).collect();
        assert_eq!((names, &*added.left_out), (vec![PieceName::Place, PieceName::Date], &[PieceName::Legend][..]));
        let texts: Vec<_> = added.pieces.iter().map(|piece| piece.text.as_str()).collect();
        assert_eq!(
            instructions::of(&turn, "Be kind.", &[PieceName::Legend]),
            format!("Be kind.\n\n{}", texts.join(" "))
        );
        let tools: Vec<_> = added.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert!(tools.contains(&"ask") && tools.contains(&"defer"), "{tools:?}");
        assert!(added_to_prompt(&turn, &[], false).tools.is_empty());
    }

    #[test]
    fn a_session_begins_with_what_holds_for_all_of_it() {
        let turn = turn("Hi");
        let added = added_to_session(&turn);

        let names: Vec<_> = added.pieces.iter().map(|piece| piece.name).collect();
        assert_eq!(names, [PieceName::Place, PieceName::Legend]);
        let told = instructions::of_session(&turn, "Be kind.");
        assert!(added.pieces.iter().all(|piece| told.contains(&piece.text)), "{told}");
    }
}
