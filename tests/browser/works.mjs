// What an agent does and thinks: folded, live while it works, and found again.

import { axe, violations } from "./axe.mjs";
import { assert, counts, eventually, meet, reads, screenshot, visit, visitor } from "./browser.mjs";

await visit(async (browser) => {
  const ada = await visitor(browser, { viewport: { width: 390, height: 844 }, scripts: [axe] });
  await ada.isConnected();
  const work = ada.answer(0).locator("details.work");
  const summary = work.locator("summary");
  const steps = work.getByRole("listitem");

  await ada.says("Where is the key?");
  await reads(summary, "Look into 3 drawers");
  assert.equal(await work.evaluate((details) => details.open), false, "it is folded");
  await summary.focus();
  await ada.page.keyboard.press("Enter");
  await counts(steps, 2);
  // What an agent thinks is plain text.
  await reads(steps.nth(0), "Thought:\nWhere is <b>the key</b>?");
  await reads(steps.nth(1), "Look into 3 drawers");
  assert.equal(await steps.nth(1).getAttribute("data-state"), "working");
  await counts(ada.words(0), 0);
  await isWell(ada, "work");

  await meet("works");
  await reads(ada.words(0), "In the second drawer.");
  await reads(summary, "2 steps");
  assert.equal(await work.evaluate((details) => details.open), true, "it stays open");
  assert.equal(await ada.page.evaluate(() => document.activeElement.tagName), "SUMMARY", "the focus stays");
  await eventually("the tool has ended", () => steps.nth(1).getAttribute("data-state"), (state) => state === "done");
  await isWell(ada, "worked");

  await ada.page.reload();
  await ada.isConnected();
  await reads(ada.words(0), "In the second drawer.");
  // The gateway keeps tools and no thoughts.
  await reads(summary, "1 step");
  await summary.click();
  await reads(steps, "Look into 3 drawers");
  await ada.leaves();
});

async function isWell({ page }, what) {
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    await screenshot(page, `${what}-390-${colorScheme}`);
    assert.deepEqual(await violations(page), [], `${what}, ${colorScheme}`);
  }
}
