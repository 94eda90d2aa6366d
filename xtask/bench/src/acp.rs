//! An agent with the Agent Client Protocol that answers at once, as a program and as its client.

use std::io::{BufRead, Write};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
};

use crate::{helper::own_command, serve::agent::ANSWER};

/// Answers prompts on standard input and output until the input ends.
///
/// # Errors
///
/// When the input is not the protocol, or nobody reads the output.
pub(crate) fn answer_prompts() -> Result<()> {
    let (input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    let mut sessions = 0;
    for line in input.lines() {
        let message: Value = serde_json::from_str(&line?)?;
        let result = match message["method"].as_str() {
            Some("initialize") => json!({ "protocolVersion": 1, "agentInfo": { "name": "bench", "version": "1" } }),
            Some("session/new") => {
                sessions += 1;
                json!({ "sessionId": format!("s{sessions}") })
            }
            Some("session/prompt") => {
                let content = json!({ "type": "text", "text": ANSWER });
                let update = json!({ "sessionUpdate": "agent_message_chunk", "messageId": "m1", "content": content });
                let params = json!({ "sessionId": message["params"]["sessionId"], "update": update });
                writeln!(output, "{}", json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }))?;
                json!({ "stopReason": "end_turn" })
            }
            _ => json!({}),
        };
        if let Some(id) = message.get("id") {
            writeln!(output, "{}", json!({ "jsonrpc": "2.0", "id": id, "result": result }))?;
            output.flush()?;
        }
    }
    Ok(())
}

/// The agent in a process of its own, with one session; killed on drop.
pub(crate) struct Client {
    process: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    calls: u64,
    session: Value,
}

impl Client {
    /// Starts the agent and begins a session.
    ///
    /// # Errors
    ///
    /// When it does not start or does not answer.
    pub(crate) async fn start() -> Result<Self> {
        let mut command: Command = own_command()?;
        command.arg("acp").stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let mut process = command.spawn().context("cannot start the agent")?;
        let (input, output) = (process.stdin.take(), process.stdout.take());
        let output = BufReader::new(output.context("the agent has no output")?).lines();
        let input = input.context("the agent has no input")?;
        let mut client = Self { process, input, output, calls: 0, session: Value::Null };
        client.call("initialize", json!({ "protocolVersion": 1 })).await?;
        client.session = client.call("session/new", json!({ "cwd": "/", "mcpServers": [] })).await?["sessionId"].take();
        Ok(client)
    }

    /// Sends a prompt and waits for the end of the answer.
    ///
    /// # Errors
    ///
    /// When the agent has ended, or its answer is another one.
    pub(crate) async fn ask(&mut self, text: &str) -> Result<()> {
        let prompt = json!([{ "type": "text", "text": text }]);
        let end = self.call("session/prompt", json!({ "sessionId": self.session, "prompt": prompt })).await?;
        ensure!(end["stopReason"] == "end_turn", "the agent answered {end}");
        Ok(())
    }

    /// The id of the process.
    ///
    /// # Errors
    ///
    /// When it has exited.
    pub(crate) fn id(&self) -> Result<u32> {
        self.process.id().context("the agent has exited")
    }

    async fn call(&mut self, method: &str, params: Value) -> Result<Value> {
        self.calls += 1;
        let call = json!({ "jsonrpc": "2.0", "id": self.calls, "method": method, "params": params });
        self.input.write_all(format!("{call}\n").as_bytes()).await?;
        loop {
            let line = self.output.next_line().await?.context("the agent has ended")?;
            let mut message: Value = serde_json::from_str(&line)?;
            if message["id"] == self.calls {
                return Ok(message["result"].take());
            }
        }
    }
}
