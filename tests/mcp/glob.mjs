// The conformance suite imports `globSync`, which Node.js has since version 22, for a command that the tests do not run.

import { register } from "node:module";

const module = (source) => `data:text/javascript,${encodeURIComponent(source)}`;
const fs = module(`
  import * as fs from "node:fs";
  export * from "node:fs";
  export { default } from "node:fs";
  export const globSync = fs["globSync"];
`);
register(
  module(`
    export async function resolve(specifier, context, next) {
      const isOfTheSuite = context.parentURL?.includes("@modelcontextprotocol/conformance");
      return specifier === "fs" && isOfTheSuite ? { url: ${JSON.stringify(fs)}, shortCircuit: true } : next(specifier, context);
    }
  `),
);
