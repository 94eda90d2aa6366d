// An MCP server with the official SDK, for an agent of tests/tests/e2e/mcp_servers.rs. `server.mjs PORT` serves over HTTP, `server.mjs` on
// its standard input and output.

import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(process.env.REJOINDER_COUNTERPARTS + "/");
const load = (path) => import(pathToFileURL(require.resolve(path)));
const { McpServer } = await load("@modelcontextprotocol/sdk/server/mcp.js");
const { z } = await load("zod");

function serve() {
  const server = new McpServer({ name: "a-server-of-the-tests", version: "1.0.0" });
  const text = { text: z.string() };
  const say = (said) => ({ content: [{ type: "text", text: said }] });
  const reads = { readOnlyHint: true };
  server.registerTool("echo", { description: "Says it again.", inputSchema: text, annotations: reads }, ({ text }) => say(`heard ${text}`));
  server.registerTool("write", { description: "Writes it down.", inputSchema: text }, ({ text }) => say(`wrote ${text}`));
  const dot = { type: "image", mimeType: "image/gif", data: "R0lGODlhAQABAAAAACwAAAAAAQABAAAC" };
  server.registerTool("draw", { description: "Draws a dot.", annotations: reads }, () => ({ content: [dot] }));
  server.registerTool("die", { description: "Ends the server.", annotations: reads }, () => process.exit(9));
  return server;
}

const port = process.argv[2];
if (port) {
  const { StreamableHTTPServerTransport } = await load("@modelcontextprotocol/sdk/server/streamableHttp.js");
  const { createServer } = await import("node:http");
  createServer(async (request, response) => {
    if (request.headers["x-key"] !== "key-of-these-tests") {
      response.writeHead(401).end();
      return;
    }
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
    response.on("close", () => transport.close());
    await serve().connect(transport);
    await transport.handleRequest(request, response);
  }).listen(Number(port), "127.0.0.1");
} else {
  const { StdioServerTransport } = await load("@modelcontextprotocol/sdk/server/stdio.js");
  await serve().connect(new StdioServerTransport());
}
