// Runs scenarios of the official conformance suite against the gateway's tools. Arguments: the URL, the token, and for each scenario
// VERSION:NAME. Prints the checks that failed, as JSON: {"VERSION:NAME": ["CHECK: why"]}.
//
// The suite sends no token, so a proxy in front of the gateway adds it. What it says of `Host` and `Origin` is passed on unchanged.

import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createServer, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [url, token, ...scenarios] = process.argv.slice(2);
const packages = join(process.env.REJOINDER_COUNTERPARTS, "node_modules");
const suite = join(packages, "@modelcontextprotocol/conformance/dist/index.js");

const proxy = createServer((from, to) => {
  const headers = { ...from.headers, authorization: `Bearer ${token}` };
  const passed = request(url, { method: from.method, headers }, (answer) => {
    to.writeHead(answer.statusCode, answer.headers);
    answer.pipe(to);
  });
  passed.on("error", () => to.destroy());
  from.pipe(passed);
});
await new Promise((listening) => proxy.listen(0, "127.0.0.1", listening));

/** The checks of a scenario that failed. */
async function failures(version, name) {
  const folder = mkdtempSync(join(tmpdir(), "conformance-"));
  try {
    const target = `http://localhost:${proxy.address().port}/mcp`;
    const options = ["server", "--url", target, "--scenario", name, "--spec-version", version, "--output-dir", folder];
    const shim = pathToFileURL(join(import.meta.dirname, "glob.mjs")).href;
    const run = spawn(process.execPath, ["--import", shim, suite, ...options], { stdio: ["ignore", "pipe", "pipe"] });
    let written = "";
    for (const stream of [run.stdout, run.stderr]) stream.on("data", (piece) => (written += piece));
    const status = await new Promise((ended) => run.on("close", ended));
    const files = readdirSync(folder, { recursive: true }).filter((file) => file.endsWith("checks.json"));
    if (files.length === 0) return [`no checks, status ${status}: ${written}`];
    const checks = files.flatMap((file) => JSON.parse(readFileSync(join(folder, file), "utf8")));
    // The suite looks for tools of its own, which the gateway does not have.
    const isOfOtherTools = (check) => check.errorMessage?.startsWith("Not testable: server does not list");
    const failed = checks.filter((check) => check.status === "FAILURE" && !isOfOtherTools(check));
    return failed.map((check) => `${check.id}: ${check.errorMessage}`);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const failed = {};
for (const scenario of scenarios) {
  const found = await failures(...scenario.split(":"));
  if (found.length > 0) failed[scenario] = found;
}
proxy.close();
console.log(JSON.stringify(failed, null, 1));
