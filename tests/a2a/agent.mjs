// An agent on the server of @a2a-js/sdk, which speaks the protocol. Arguments: its port, its binding as a card calls it, and "whole" if it
// does not stream.
//
// "fail" fails, "message" is answered by a message, "book" asks for the day, "slow" waits for POST /test/release, and everything is echoed.
// GET /test/state has the numbers of tasks that were begun and canceled, and the contexts of all messages.
import { createRequire } from "node:module";

const require = createRequire(process.env.REJOINDER_COUNTERPARTS + "/");
const express = require("express");
const { AGENT_CARD_PATH, A2A_PROTOCOL_VERSION, TaskState, Role } = require("@a2a-js/sdk");
const { InMemoryTaskStore, DefaultRequestHandler, AgentEvent } = require("@a2a-js/sdk/server");
const { agentCardHandler, jsonRpcHandler, restHandler, UserBuilder } = require("@a2a-js/sdk/server/express");

const port = Number(process.argv[2]);
const protocolBinding = process.argv[3];
const streaming = process.argv[4] !== "whole";
const card = {
  name: "echo",
  description: "An agent of the tests",
  version: "1.0.0",
  provider: { organization: "tests", url: "http://127.0.0.1" },
  documentationUrl: "",
  signatures: [],
  securitySchemes: {},
  securityRequirements: [],
  supportedInterfaces: [
    { url: `http://127.0.0.1:${port}/`, protocolBinding, tenant: "", protocolVersion: A2A_PROTOCOL_VERSION },
  ],
  capabilities: { streaming, pushNotifications: false, extensions: [], extendedAgentCard: false },
  defaultInputModes: ["text/plain"],
  defaultOutputModes: ["text/plain"],
  skills: [],
};

const state = { begun: 0, canceled: 0, contexts: [] };
let release;
const released = new Promise((resolve) => (release = resolve));
const canceled = new Map();

const textPart = (value) => ({
  content: { $case: "text", value },
  metadata: undefined,
  filename: "",
  mediaType: "text/plain",
});

class Executor {
  cancelTask = async (taskId) => {
    state.canceled += 1;
    canceled.get(taskId)?.();
  };

  async execute({ taskId, contextId, userMessage, task }, bus) {
    const said = userMessage.parts.map((part) => (part.content?.$case === "text" ? part.content.value : "")).join(" ");
    state.contexts.push(contextId);
    const message = (text) => ({
      role: Role.ROLE_AGENT,
      messageId: crypto.randomUUID(),
      parts: [textPart(text)],
      taskId,
      contextId,
      extensions: [],
      metadata: {},
      referenceTaskIds: [],
    });
    const status = (state, text) => {
      const told = { state, timestamp: new Date().toISOString(), message: text && message(text) };
      bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status: told, metadata: {} }));
    };
    const artifactId = crypto.randomUUID();
    const artifact = (text, append) => {
      const one = { artifactId, name: "answer", description: "", parts: [textPart(text)], metadata: undefined, extensions: [] };
      bus.publish(AgentEvent.artifactUpdate({ taskId, contextId, artifact: one, append, lastChunk: append, metadata: {} }));
    };

    if (said.includes("message")) {
      bus.publish(AgentEvent.message({ ...message(`direct: ${said}`), taskId: "" }));
      return bus.finished?.();
    }
    state.begun += task ? 0 : 1;
    const submitted = { state: TaskState.TASK_STATE_SUBMITTED, timestamp: new Date().toISOString(), message: undefined };
    // The SDK requires a task or a message first, also if the task goes on.
    bus.publish(
      AgentEvent.task(
        task ?? { id: taskId, contextId, status: submitted, artifacts: [], history: [userMessage], metadata: {} },
      ),
    );
    status(TaskState.TASK_STATE_WORKING, "working");
    if (said.includes("book")) {
      status(TaskState.TASK_STATE_INPUT_REQUIRED, "Which day?");
      return bus.finished?.();
    }
    if (said.includes("slow")) {
      const stopped = new Promise((resolve) => canceled.set(taskId, () => resolve("stopped")));
      if ((await Promise.race([released, stopped])) === "stopped") {
        status(TaskState.TASK_STATE_CANCELED);
        return bus.finished?.();
      }
    }
    if (said.includes("fail")) {
      status(TaskState.TASK_STATE_FAILED, "it has no fuel");
      return bus.finished?.();
    }
    artifact("echo: ", false);
    artifact(said, true);
    status(TaskState.TASK_STATE_COMPLETED);
    bus.finished?.();
  }
}

const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new Executor());
const app = express();
app.get("/test/state", (_, response) => response.json(state));
app.post("/test/release", (_, response) => {
  release();
  response.json({});
});
app.use(`/${AGENT_CARD_PATH}`, agentCardHandler({ agentCardProvider: requestHandler }));
const bindingHandler = protocolBinding === "HTTP+JSON" ? restHandler : jsonRpcHandler;
app.use(bindingHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication }));
app.listen(port, "127.0.0.1");
