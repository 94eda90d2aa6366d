// The menu of commands: with keys, with a mouse, and with a finger. `/weather` is a command of the operator's.

import { axe, violations } from "./axe.mjs";
import { assert, counts, eventually, reads, visit, visitor } from "./browser.mjs";

const PHONE = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, hasTouch: true, isMobile: true };

await visit(async (browser) => {
  const ada = await visitor(browser, { scripts: [axe] });
  await ada.isConnected();
  await finds(ada);
  await picksWithKeys(ada);
  await changesHerMind(ada);
  await picksWithAMouse(ada);
  await ada.leaves();

  const bob = await visitor(browser, PHONE);
  await bob.isConnected();
  await picksWithAFinger(bob);
  await bob.leaves();
});

function menuOf(visitor) {
  return visitor.page.getByRole("listbox", { name: "Commands" });
}

function optionsOf(visitor) {
  return menuOf(visitor).getByRole("option");
}

function names(visitor) {
  return optionsOf(visitor).locator(".command-name").allInnerTexts();
}

/** The option that a screen reader is told of, which is the one that is marked. */
async function active(visitor) {
  const id = await visitor.input.getAttribute("aria-activedescendant");
  const marked = menuOf(visitor).getByRole("option", { selected: true });
  assert.equal(await marked.getAttribute("id"), id, "another option is marked");
  return marked.locator(".command-name").innerText();
}

async function finds(ada) {
  await counts(menuOf(ada), 0);
  await ada.input.press("/");
  await menuOf(ada).waitFor();
  const all = await names(ada);
  for (const name of ["/help", "/new", "/stop", "/status", "/weather"]) assert.ok(all.includes(name), `${name} is missing: ${all}`);
  assert.match(await optionsOf(ada).filter({ hasText: "/weather" }).innerText(), /The weather of today/);
  assert.equal(await active(ada), all[0]);
  await reads(ada.page.locator("[aria-live=polite]"), `${all.length} commands`);
  assert.deepEqual(await violations(ada.page), [], "the open menu");

  await ada.page.keyboard.type("st");
  const found = await names(ada);
  assert.deepEqual(found, all.filter((name) => name.startsWith("/st")).concat(all.filter((name) => name.includes("st") && !name.startsWith("/st"))));
  await ada.input.fill("/no-such-command");
  await counts(menuOf(ada), 0);
  await ada.input.fill("this/that");
  await counts(menuOf(ada), 0);
  assert.equal(await ada.input.getAttribute("aria-activedescendant"), null);
}

async function picksWithKeys(ada) {
  await ada.input.fill("/st");
  const found = await names(ada);
  await ada.page.keyboard.press("ArrowDown");
  assert.equal(await active(ada), found[1]);
  await ada.page.keyboard.press("ArrowUp");
  await ada.page.keyboard.press("ArrowUp");
  assert.equal(await active(ada), found.at(-1));

  // Enter takes the name, and sends it only once it is there.
  await ada.input.fill("/hel");
  await ada.page.keyboard.press("Enter");
  assert.equal(await ada.input.inputValue(), "/help");
  await counts(menuOf(ada), 0);
  await counts(ada.turns, 0);
  await ada.page.keyboard.press("Enter");
  await reads(ada.voice(0), "The gateway");
  assert.equal(await ada.input.inputValue(), "");

  // Tab takes a name too, with a space where words may follow.
  await ada.page.keyboard.type("/wea");
  await ada.page.keyboard.press("Tab");
  assert.equal(await ada.input.inputValue(), "/weather ");
  assert.ok(await ada.input.evaluate((input) => input === document.activeElement), "the input has lost the focus");
  await ada.page.keyboard.type("Vienna");
  await ada.page.keyboard.press("Enter");
  await reads(ada.words(1), "In Vienna? Look out of the window.");

  // A whole name needs one Enter.
  await ada.input.fill("/help");
  await menuOf(ada).waitFor();
  await ada.page.keyboard.press("Enter");
  await counts(ada.turns, 3);
  await reads(ada.voice(2), "The gateway");
}

async function changesHerMind(ada) {
  await ada.input.fill("/st");
  await menuOf(ada).waitFor();
  await ada.page.keyboard.press("Escape");
  await counts(menuOf(ada), 0);
  assert.equal(await ada.input.inputValue(), "/st");
  await ada.page.keyboard.type("a");
  await counts(menuOf(ada), 0);
  await ada.input.fill("");
  await ada.page.keyboard.type("/");
  await menuOf(ada).waitFor();
  await ada.input.fill("");
}

async function picksWithAMouse(ada) {
  await ada.page.keyboard.type("/");
  await optionsOf(ada).filter({ hasText: "/status" }).hover();
  assert.equal(await active(ada), "/status");
  await optionsOf(ada).filter({ hasText: "/status" }).click();
  assert.equal(await ada.input.inputValue(), "/status");
  await counts(menuOf(ada), 0);
  assert.ok(await ada.input.evaluate((input) => input === document.activeElement), "the input has lost the focus");
  await counts(ada.turns, 3);
  await ada.input.fill("");
}

async function picksWithAFinger(bob) {
  await bob.button("Commands").tap();
  await menuOf(bob).waitFor();
  assert.equal(await bob.input.inputValue(), "/");
  await counts(bob.button("Commands"), 0);
  const heights = await optionsOf(bob).evaluateAll((options) => options.map((option) => option.getBoundingClientRect().height));
  assert.ok(heights.length > 0 && heights.every((height) => height >= 44), `too small for a finger: ${heights}`);
  await optionsOf(bob).filter({ hasText: "/help" }).tap();
  await eventually("the name is in the input", () => bob.input.inputValue(), (value) => value === "/help");
  await bob.button("Send message").tap();
  await reads(bob.voice(0), "The gateway");
}
