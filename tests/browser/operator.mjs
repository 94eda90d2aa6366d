// What the scripts at the operator's page share: signing in, and eyes for what it says.

import { axe, violations } from "./axe.mjs";
import { assert, eventually, visitor } from "./browser.mjs";

const TOKEN = "admin-token-of-the-tests";

/** An operator who signs in with `token` at `path`. Before that, the page asks for a session that is not there. */
export async function operator(browser, { tolerates, path = "/admin", token = TOKEN, ...options } = {}) {
  const may = new RegExp(["status of 401", tolerates?.source].filter(Boolean).join("|"));
  const ada = await visitor(browser, { path, tolerates: may, scripts: [axe], ...options });
  await ada.page.getByLabel("Or paste a token").fill(token);
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
  const found = await page.evaluate(() => {
    const pressed = [...document.querySelectorAll("button, select, summary, nav a, .button, input:not([type=checkbox])")];
    return {
      sideways: Math.max(0, document.documentElement.scrollWidth - innerWidth),
      small: pressed.filter((one) => one.checkVisibility() && one.getBoundingClientRect().height < 44).map((one) => one.outerHTML),
    };
  });
  assert.deepEqual({ violations: await violations(page), ...found }, { violations: [], sideways: 0, small: [] }, about);
}
