// Everything that was said is saved as a file. Nothing is opened for it.

import { readFile } from "node:fs/promises";

import { axe, violations } from "./axe.mjs";
import { assert, reads, screenshot, visit, visitor } from "./browser.mjs";

const PHONE = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, hasTouch: true, isMobile: true };

await visit(async (browser) => {
  const ada = await visitor(browser, { scripts: [axe] });
  await ada.isConnected();
  await ada.says("How far is the moon?");
  await reads(ada.words(0), "answer to: How far is the moon?");
  await ada.says("/export");
  await saves(ada);
  assert.deepEqual(await violations(ada.page), [], "the file");
  await screenshot(ada.page, "export-1280");

  const storageState = await ada.page.context().storageState();
  const phone = await visitor(browser, { ...PHONE, storageState });
  await phone.isConnected();
  await saves(phone);
  const { height } = await phone.page.getByRole("link", { name: "Save conversation.md" }).boundingBox();
  assert.ok(height >= 44, `the link is ${height} pixels high`);
  await screenshot(phone.page, "export-390");
  await phone.leaves();
  await ada.leaves();
});

async function saves({ page, complaints }) {
  const saved = page.waitForEvent("download");
  await page.getByRole("link", { name: "Save conversation.md" }).click();
  const file = await saved;
  assert.equal(file.suggestedFilename(), "conversation.md");
  const text = await readFile(await file.path(), "utf8");
  assert.match(text, /How far is the moon\?\n\n\*\*main\*\*: answer to: How far is the moon\?\n$/);
  assert.ok(page.url().endsWith("/chat"), "the page is left");
  assert.equal(page.context().pages().length, 1, "the file is opened");
  assert.deepEqual(complaints, []);
}
