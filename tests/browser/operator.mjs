// What the scripts at the operator's page share: signing in, and eyes for what it says.

import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";

import { assert, eventually, visitor } from "./browser.mjs";

const TOKEN = "admin-token-of-the-tests";

const require = createRequire(`${process.env.REJOINDER_COUNTERPARTS}/`);
const axe = await readFile(require.resolve("axe-core/axe.min.js"), "utf8");

/** The rules of WCAG 2.2 for A and AA, and what is good practice. */
const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

/** An operator who signs in with a token at `path`. Before that, the page asks for a session that is not there. */
export async function operator(browser, { tolerates, path = "/admin", ...options } = {}) {
  const may = new RegExp(["status of 401", tolerates?.source].filter(Boolean).join("|"));
  const ada = await visitor(browser, { path, tolerates: may, scripts: [axe], ...options });
  await ada.page.getByLabel("Or paste a token").fill(TOKEN);
  await ada.button("Sign in").click();
  await ada.page.getByRole("navigation", { name: "Sections" }).waitFor();
  return ada;
}

/** Waits until nothing is loading. */
export async function isLoaded(page) {
  await page.getByRole("heading", { level: 1 }).waitFor();
  await eventually("everything is loaded", () => page.locator("main [aria-busy=true]").count(), (count) => count === 0);
}

/** Waits until the overview's first sentence matches. */
export async function headline(page, words) {
  await page.locator(".headline").getByText(words).waitFor();
}

/** Everybody can use the page: axe finds nothing, it does not scroll sideways, and what is pressed is large enough. */
export async function isAccessible(page, about) {
  const found = await page.evaluate(async (rules) => {
    const { violations } = await globalThis.axe.run(document, { runOnly: rules });
    const pressed = [...document.querySelectorAll("button, select, summary, nav a, .button, input:not([type=checkbox])")];
    return {
      violations: violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ target }) => target.join(" ")).join(", ")}`),
      sideways: Math.max(0, document.documentElement.scrollWidth - innerWidth),
      small: pressed.filter((one) => one.checkVisibility() && one.getBoundingClientRect().height < 44).map((one) => one.outerHTML),
    };
  }, RULES);
  assert.deepEqual(found, { violations: [], sideways: 0, small: [] }, about);
}
