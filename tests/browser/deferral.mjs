// A promise that becomes the answer, in the same place.

import { assert, counts, eventually, meet, reads, visit, visitor } from "./browser.mjs";

await visit(async (browser) => {
  const ada = await visitor(browser);
  await ada.isConnected();
  await ada.says("Please count the pages.");

  await reads(ada.words(0), "Still working on this.");
  await ada.turn(0).getByText("Still working", { exact: false }).last().waitFor();
  const turn = await ada.turn(0).getAttribute("data-turn-id");
  await ada.turn(0).evaluate((item) => (item.wasHere = true));
  await meet("deferred");

  await reads(ada.words(0), "There are 42 pages.");
  await eventually("the turn has ended", () => ada.turn(0).getAttribute("data-status"), (status) => status === "answered");
  assert.equal(await ada.turn(0).getAttribute("data-turn-id"), turn, "the answer is another turn's");
  assert.ok(await ada.turn(0).evaluate((item) => item.wasHere), "the bubble was replaced");
  await counts(ada.turns, 1);
  await counts(ada.answer(0), 1);
  await counts(ada.page.getByText("Still working on this."), 0);

  await ada.page.reload();
  await ada.isConnected();
  await reads(ada.words(0), "There are 42 pages.");
  await counts(ada.turns, 1);
  await ada.leaves();
});
