// What every script is written with: a browser, eyes that wait, and the places where the test is met.

import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const require = createRequire(`${process.env.REJOINDER_COUNTERPARTS}/`);
const { chromium } = require("playwright-core");

export { assert };

/** Where the gateway is. */
export const url = process.env.REJOINDER_URL;

/** How long a script waits for what must happen: far above what it takes. */
const PATIENCE = 60_000;

const told = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

/** Says where the script is, and waits until the test tells it to go on. */
export async function meet(place) {
  console.log(place);
  await told.next();
}

/** Runs `visit(browser)` with a fresh browser; the script fails when it does. */
export async function visit(visit) {
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
    // People's browsers have it.
    ignoreDefaultArgs: ["--disable-back-forward-cache"],
    args: [
      "--headless",
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      // A microphone that beeps.
      "--use-fake-device-for-media-stream",
    ],
  });
  let problem = null;
  try {
    await visit(browser);
  } catch (error) {
    problem = error;
  }
  await browser.close();
  if (problem) console.error(problem.stack ?? problem);
  process.exit(problem ? 1 : 0);
}

/**
 * A person with a device of their own at the chat page. `options` are those of a browser context, and
 * `tolerates`: what the browser may complain about; `scripts`: what is run in each page before its own scripts.
 */
export async function visitor(browser, { tolerates, path = "/chat", scripts = [], ...options } = {}) {
  // An animation that never ends keeps a core busy, as nothing but the processor draws. A page with a worker opens without a gateway.
  const context = await browser.newContext({ locale: "en-GB", reducedMotion: "reduce", serviceWorkers: "block", ...options });
  context.setDefaultTimeout(PATIENCE);
  for (const content of scripts) await context.addInitScript(content);
  const complaints = [];
  const page = await context.newPage();
  watch(page, complaints, tolerates);
  await page.goto(url + path);
  return new Visitor(page, complaints);
}

/** What the console says where workers are blocked. */
const BLOCKED = "Service Worker registration blocked by Playwright";

/** Notes in `complaints` what is wrong on a page. */
function watch(page, complaints, tolerates) {
  const complain = (words) => tolerates?.test(words) || words === BLOCKED || complaints.push(words);
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && complain(message.text()));
  page.on("pageerror", (error) => complain(`${error.stack}`));
  page.on("request", (request) => new URL(request.url()).origin === url || complain(`asks elsewhere: ${request.url()}`));
  page.on("websocket", (socket) => new URL(socket.url()).host === new URL(url).host || complain(`a socket elsewhere: ${socket.url()}`));
}

/** A person at the page, who knows what is on it by its role and its words. */
class Visitor {
  constructor(page, complaints) {
    this.page = page;
    this.complaints = complaints;
  }

  /** Everything said, each with what came of it: one item per turn. */
  get turns() {
    return this.page.locator("#turns > li");
  }

  turn(index) {
    return this.turns.nth(index);
  }

  answer(index) {
    return this.turn(index).getByRole("group", { name: "Answer" });
  }

  /** Who speaks in an answer: the heading over it. */
  voice(index) {
    return this.answer(index).getByRole("heading", { level: 2 });
  }

  /** The input. */
  get input() {
    return this.page.getByLabel("Message", { exact: true });
  }

  /** The words of an answer, without what stands around them. */
  words(index) {
    return this.answer(index).locator(".words");
  }

  button(name) {
    return this.page.getByRole("button", { name, exact: true });
  }

  /** The list of conversations. */
  get list() {
    return this.page.getByRole("navigation", { name: "Conversations" });
  }

  /** A conversation of the list, by its name. */
  listed(title) {
    const name = this.page.locator(".listed-title").getByText(title, { exact: true });
    return this.list.locator(".listed-open").filter({ has: name });
  }

  /** The names of the listed conversations, in their order. */
  titles() {
    return this.page.locator(".listed-title").allInnerTexts();
  }

  /** Another tab of the same browser. */
  async tab() {
    const page = await this.page.context().newPage();
    watch(page, this.complaints);
    await page.goto(this.page.url());
    return new Visitor(page, this.complaints);
  }

  get state() {
    return this.page.locator("#connection");
  }

  async says(words) {
    await this.input.fill(words);
    await this.page.keyboard.press("Enter");
  }

  async isConnected() {
    await reads(this.state, "Connected");
  }

  /** Ends the visit: nothing went wrong in the browser, and nothing was asked of anyone else. */
  async leaves() {
    await this.page.context().close();
    assert.deepEqual(this.complaints, [], "the browser complains");
  }
}

/** Asks `ask` again and again until `isRight` says so of what it gives. */
export async function eventually(about, ask, isRight = Boolean) {
  const end = Date.now() + PATIENCE;
  for (;;) {
    const found = await ask();
    if (isRight(found)) return found;
    if (Date.now() > end) assert.fail(`waited in vain: ${about}; found ${JSON.stringify(found)}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Waits until `locator`'s words are `words`. */
export async function reads(locator, words) {
  await eventually(`${locator} reads ${JSON.stringify(words)}`, async () => (await locator.allInnerTexts()).join("\n").trim(), (found) => found === words);
}

/** Waits until there are `count` of `locator`. */
export async function counts(locator, count) {
  await eventually(`${count} of ${locator}`, () => locator.count(), (found) => found === count);
}

/**
 * Keeps what the page looks like in `target/screenshots`.
 *
 * A headless Chromium now and then draws no frame for a screenshot although its page responds. The picture is for people to
 * look at and checks nothing, so it is taken again; <https://github.com/microsoft/playwright/issues/28995>.
 */
export async function screenshot(page, name, options = {}) {
  const folder = process.env.REJOINDER_SCREENSHOTS;
  await mkdir(folder, { recursive: true });
  const take = { path: `${folder}/${name}.png`, animations: "disabled", timeout: PATIENCE / 4, ...options };
  for (let tries = 1; ; tries += 1) {
    try {
      return await page.screenshot(take);
    } catch (error) {
      if (error.name !== "TimeoutError" || tries === 3) throw error;
      await page.bringToFront();
    }
  }
}
