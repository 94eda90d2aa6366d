// What the axe engine finds on a page.

import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";

const require = createRequire(`${process.env.REJOINDER_COUNTERPARTS}/`);

/** The engine, to be run in each page before its own scripts. */
export const axe = await readFile(require.resolve("axe-core/axe.min.js"), "utf8");

/** The rules of WCAG 2.2 for A and AA, and what is good practice. */
const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

/** The rules that the page breaks, each with where. */
export async function violations(page) {
  return page.evaluate(async (rules) => {
    const { violations } = await globalThis.axe.run(document, { runOnly: rules });
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ target }) => target.join(" ")).join(", ")}`);
  }, RULES);
}
