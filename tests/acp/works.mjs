// An agent with the Agent Client Protocol that thinks and uses a tool, until the file exists that its argument names.

import { existsSync } from "node:fs";
import { createInterface } from "node:readline";

const [, , gate] = process.argv;
let sessions = 0;

const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);

async function work(id, sessionId) {
  const tell = (update) => send({ method: "session/update", params: { sessionId, update } });
  const text = (words) => ({ type: "text", text: words });
  tell({ sessionUpdate: "agent_thought_chunk", content: text("Where is ") });
  tell({ sessionUpdate: "agent_thought_chunk", content: text("<b>the key</b>?") });
  tell({ sessionUpdate: "tool_call", toolCallId: "t", title: "Look into 3 drawers", status: "in_progress" });
  while (!existsSync(gate)) await new Promise((resolve) => setTimeout(resolve, 20));
  tell({ sessionUpdate: "tool_call_update", toolCallId: "t", status: "completed" });
  tell({ sessionUpdate: "agent_message_chunk", content: text("In the second drawer.") });
  send({ id, result: { stopReason: "end_turn" } });
}

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (method === "initialize") send({ id, result: { protocolVersion: 1, agentInfo: { name: "finder", version: "1" } } });
  else if (method === "session/new") send({ id, result: { sessionId: `s${(sessions += 1)}` } });
  else if (method === "session/prompt") work(id, params.sessionId);
}
