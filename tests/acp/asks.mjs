// An agent with the Agent Client Protocol that asks the person twice, with the same choices, before it answers.

import { createInterface } from "node:readline";

const QUESTIONS = ["Shall I paint the door?", "Shall I paint it red?"];
const said = [];
let sessions = 0;
let [session, prompt] = [];

const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);

function ask() {
  const requestedSchema = { type: "object", properties: { go: { type: "boolean" } }, required: ["go"] };
  send({ id: `ask${said.length}`, method: "elicitation/create", params: { mode: "form", sessionId: session, message: QUESTIONS[said.length], requestedSchema } });
}

function answer() {
  const update = { sessionUpdate: "agent_message_chunk", content: { type: "text", text: `You said ${said.join(" and ")}.` } };
  send({ method: "session/update", params: { sessionId: session, update } });
  send({ id: prompt, result: { stopReason: "end_turn" } });
}

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params, result } = JSON.parse(line);
  if (method === "initialize") send({ id, result: { protocolVersion: 1, agentInfo: { name: "painter", version: "1" } } });
  else if (method === "session/new") send({ id, result: { sessionId: `s${(sessions += 1)}` } });
  else if (method === "session/prompt") {
    [session, prompt] = [params.sessionId, id];
    said.length = 0;
    ask();
  } else if (result?.action) {
    said.push(result.content?.go ? "yes" : "no");
    if (said.length < QUESTIONS.length) ask();
    else answer();
  }
}
