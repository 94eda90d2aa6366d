// An agent that calls the gateway's tools with the official SDK of the Model Context Protocol. Run by tests/tests/e2e/mcp.rs for each turn.
// The message says which tool it calls: `react {"emoji": "👍"}`. It answers with the result, after `said: `.

import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const require = createRequire(process.env.REJOINDER_COUNTERPARTS + "/");
const load = (path) => import(pathToFileURL(require.resolve(path)));
const { Client } = await load("@modelcontextprotocol/sdk/client/index.js");
const { StreamableHTTPClientTransport } = await load("@modelcontextprotocol/sdk/client/streamableHttp.js");

const turn = JSON.parse(readFileSync(0, "utf8"));
const { url, token } = turn.mcp;
const client = new Client({ name: "an-agent-of-the-tests", version: "1.0.0" });
const headers = { Authorization: `Bearer ${token}` };
await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));

const [name] = turn.text.split(" ", 1);
let said;
if (name === "tools") {
  const { tools } = await client.listTools();
  said = tools.map((tool) => tool.name).join(" ");
} else {
  const result = await client.callTool({ name, arguments: JSON.parse(turn.text.slice(name.length)) });
  said = (result.isError ? "refused: " : "") + result.content[0].text;
}
await client.close();
console.log(`said: ${said}`);
