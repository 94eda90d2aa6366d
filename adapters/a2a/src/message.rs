//! What the agent gets of a turn, as a message of the protocol. No I/O.

use rejoinder_agents::{
    Takes,
    prompt::blocks::{self, Block},
};
use rejoinder_core::AgentTurn;
use serde_json::{Value, json};

use crate::{A2aSection, card::Endpoint, memory::Memory};

/// What a message consists of. `memory` is the context and the task in which it is sent: without one, it begins with the introduction.
pub(crate) fn blocks(turn: &AgentTurn, settings: &A2aSection, to: &Endpoint, memory: Option<&Memory>) -> Vec<Block> {
    let mut blocks = Vec::new();
    if memory.is_none() && settings.introduction {
        blocks = blocks::of_session(turn, &settings.system_prompt, settings.history_messages);
    }
    blocks.extend(blocks::of_turn(turn, if to.takes_pictures { Takes::PICTURES } else { Takes::default() }));
    blocks
}

/// The parameters of the request. By `messageId` and `metadata` the agent can recognise a turn that it gets again.
pub(crate) fn params(turn: &AgentTurn, blocks: &[Block], to: &Endpoint, memory: Option<&Memory>) -> Value {
    let parts: Vec<_> = blocks.iter().map(part).collect();
    let (id, attempt) = (turn.turn.to_string(), turn.attempt);
    let mut message = json!({
        "messageId": format!("{id}-{attempt}"), "role": "ROLE_USER", "parts": parts,
        "metadata": { "rejoinder": { "turn": id, "attempt": attempt } },
    });
    if let Some(memory) = memory {
        message["contextId"] = memory.context.as_str().into();
        if let Some(task) = memory.waiting() {
            message["taskId"] = task.into();
        }
    }
    let mut configuration = json!({ "historyLength": 0 });
    // The state of a task that goes on may still be that of the question for a moment: its answer is waited for.
    if !to.streams && memory.and_then(Memory::waiting).is_none() {
        configuration["returnImmediately"] = true.into();
    }
    json!({ "message": message, "configuration": configuration })
}

fn part(block: &Block) -> Value {
    match block {
        Block::Text(text) => json!({ "text": text, "mediaType": "text/plain" }),
        Block::File { media_type, data, .. } => json!({ "raw": data, "mediaType": media_type }),
    }
}

#[cfg(test)]
mod tests {
    use rejoinder_agents::FileKind;
    use rejoinder_core::conformance::runtime::turn;

    use super::*;
    use crate::{binding::Binding, memory::TaskMemory};

    fn endpoint(streams: bool) -> Endpoint {
        let url = "http://127.0.0.1:9/".parse().expect("a URL");
        Endpoint { binding: Binding::JsonRpc, url, tenant: None, streams, takes_pictures: false }
    }

    #[test]
    fn a_new_context_begins_with_the_introduction_and_a_known_one_does_not() {
        let (turn, settings, to) = (turn("Hi"), A2aSection::default(), endpoint(true));
        let memory = Memory { context: "c1".to_owned(), task: None };

        assert_eq!(blocks(&turn, &settings, &to, None).len(), 2);
        assert_eq!(blocks(&turn, &settings, &to, Some(&memory)), [Block::Text("Hi".to_owned())]);
        let bare = A2aSection { introduction: false, ..settings };
        assert_eq!(blocks(&turn, &bare, &to, None), [Block::Text("Hi".to_owned())]);
    }

    #[test]
    fn a_message_names_its_turn_and_where_it_goes_on() {
        let turn = turn("Hi");
        let task = TaskMemory { id: "t1".to_owned(), turn: String::new(), messages: 1, waits: true };
        let memory = Memory { context: "c1".to_owned(), task: Some(task) };
        let (name, media_type) = ("a.png".to_owned(), "image/png".to_owned());
        let block = Block::File { name, kind: FileKind::Picture, media_type, data: "YWJj".to_owned() };

        let params = params(&turn, &[block], &endpoint(false), Some(&memory));

        let id = turn.turn.to_string();
        let message = json!({
            "messageId": format!("{id}-1"), "role": "ROLE_USER", "contextId": "c1", "taskId": "t1",
            "parts": [{ "raw": "YWJj", "mediaType": "image/png" }],
            "metadata": { "rejoinder": { "turn": id, "attempt": 1 } },
        });
        assert_eq!(params, json!({ "message": message, "configuration": { "historyLength": 0 } }));
    }

    #[test]
    fn an_agent_that_does_not_stream_answers_at_once_unless_a_task_goes_on() {
        let configuration = |streams, memory: Option<&Memory>| {
            params(&turn("Hi"), &[], &endpoint(streams), memory)["configuration"]["returnImmediately"].clone()
        };
        let memory = Memory { context: "c1".to_owned(), task: None };

        assert_eq!(configuration(false, Some(&memory)), true);
        assert_eq!(configuration(true, Some(&memory)), Value::Null);
    }
}
