// A promise that becomes the answer, in the same place.

import { assert, counts, eventually, meet, reads, visit, visitor } from "./browser.mjs";

await visit(async (browser) => {
  const ada = await visitor(browser);
  await ada.isConnected();
  await ada.says("Please count the pages.");

  await reads(ada.words(0), "Still working on this.");
  await reads(ada.voice(0), "The gateway, not the agent");
  await counts(ada.answer(0).locator(".speaker svg"), 0);
  await ticks(ada.turn(0).locator(".wait"));
  const turn = await ada.turn(0).getAttribute("data-turn-id");
  await ada.turn(0).evaluate((item) => (item.wasHere = true));
  await ada.button("Edit").focus();
  await meet("deferred");

  await reads(ada.words(0), "There are 42 pages.");
  await eventually("the turn has ended", () => ada.turn(0).getAttribute("data-status"), (status) => status === "answered");
  assert.equal(await ada.turn(0).getAttribute("data-turn-id"), turn, "the answer is another turn's");
  assert.ok(await ada.turn(0).evaluate((item) => item.wasHere), "the bubble was replaced");
  assert.ok(await ada.button("Edit").evaluate((edit) => edit === document.activeElement), "the focus is lost");
  await counts(ada.turns, 1);
  await counts(ada.answer(0), 1);
  await counts(ada.page.getByText("Still working on this."), 0);
  await counts(ada.page.locator(".wait"), 0);
  await reads(ada.voice(0), "main");

  await ada.page.reload();
  await ada.isConnected();
  await reads(ada.words(0), "There are 42 pages.");
  await counts(ada.turns, 1);

  await ada.says("When does the shop open?");
  await reads(ada.words(1), "I will tell you when it does.");
  await reads(ada.voice(1), "main");
  const wait = await ada.turn(1).locator(".wait").innerText();
  assert.match(wait, /^Waiting for \d+ s · promised for .*\d\d:\d\d$/, "the agent named a time");
  await ada.button("Stop").click();
  await ada.turn(1).getByText("Stopped").waitFor();
  await ada.leaves();
});

/** The gateway's own deferral says how long it has been, and promises no time. */
async function ticks(wait) {
  const seconds = async () => {
    const words = await wait.innerText();
    const found = /^Waiting for (\d+) s$/.exec(words);
    assert.ok(found, words);
    return Number(found[1]);
  };
  const first = await seconds();
  await eventually("time passes", seconds, (now) => now > first);
}
