// The gateway writes first: a message of the operator's, and what the agent answers to prompts that nobody sees.

import { readFile } from "node:fs/promises";

import { axe, violations } from "./axe.mjs";
import { assert, counts, meet, reads, screenshot, visit, visitor } from "./browser.mjs";

const PHONE = { width: 390, height: 844 };
const DESKTOP = { width: 1280, height: 800 };

await visit(async (browser) => {
  const ada = await visitor(browser, { viewport: DESKTOP, scripts: [axe] });
  const { page } = ada;
  const message = (index) => ada.turn(index).getByRole("group", { name: /^Message of the / });
  const saysNothing = (index) => counts(ada.turn(index).getByRole("group", { name: "You" }), 0);

  await ada.isConnected();
  await ada.says("hello");
  await reads(ada.words(0), "Hello.");
  await meet("answered");

  await message(1).getByText("The report is ready:").waitFor();
  await reads(message(1).getByRole("heading", { level: 2 }), "The gateway");
  await counts(message(1).getByRole("listitem"), 2);
  await saysNothing(1);
  // What was said last can still be said again.
  await counts(ada.turn(0).getByRole("button", { name: "Edit" }), 1);
  assert.deepEqual(await ada.titles(), ["hello"]);
  await meet("a message");

  await reads(message(2).locator(".words"), "Two letters have come.");
  await reads(message(2).getByRole("heading", { level: 2 }), "main");
  await saysNothing(2);
  await looks("unasked");
  await meet("a prompt");

  await page.reload();
  await ada.isConnected();
  await reads(message(2).locator(".words"), "Two letters have come.");
  // Of the agent that had nothing to say there is nothing.
  await counts(ada.turns, 3);
  assert.equal(await ada.button("Stop").isVisible(), false);
  for (const index of [1, 2]) await saysNothing(index);
  const text = await page.locator("body").innerText();
  assert.ok(!/what is new|nothing is new/.test(text), text);

  await ada.says("/export");
  const saved = page.waitForEvent("download");
  await page.getByRole("link", { name: "Save conversation.md" }).click();
  const file = await readFile(await (await saved).path(), "utf8");
  assert.match(file, /hello\n\n\*\*main\*\*: Hello\.\n\n.*The \*\*report\*\* is ready:[^]*Two letters have come\.\n$/);
  assert.ok(!/what is new|nothing is new/.test(file), file);
  ada.complaints.length = 0;
  await ada.leaves();

  async function looks(name) {
    for (const viewport of [PHONE, DESKTOP]) {
      await page.setViewportSize(viewport);
      assert.deepEqual(await violations(page), [], name);
      await screenshot(page, `${name}-${viewport.width}`);
    }
  }
});
