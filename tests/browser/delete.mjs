// What is deleted on the page is deleted at the gateway, at the latest when the connection is back.

import { axe, violations } from "./axe.mjs";
import { assert, counts, eventually, meet, reads, screenshot, visit, visitor } from "./browser.mjs";

const PHONE = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, hasTouch: true, isMobile: true };

await visit(async (browser) => {
  const ada = await visitor(browser, { scripts: [axe], tolerates: /ERR_CONNECTION_REFUSED|ERR_CONNECTION_RESET|closed before/ });
  await ada.isConnected();
  await ada.says("A secret about apples");
  await reads(ada.words(0), "answer to: A secret about apples");
  await ada.says("Wait with pears");
  await ada.answer(1).waitFor();
  const other = await ada.tab();
  await other.isConnected();
  await counts(other.turns, 2);
  await meet("running");

  // What runs is stopped.
  await deletes(ada, "A secret about apples", /What is being worked on is stopped\./);
  await counts(ada.turns, 0);
  await other.page.getByRole("alert").getByText("That conversation was removed in another tab.").waitFor();
  await nothingWaits(ada);
  await other.page.close();
  await meet("deleted");

  for (const words of ["A secret about quinces", "Something about plums"]) {
    await ada.button("New conversation").click();
    await ada.says(words);
    await reads(ada.words(0), `answer to: ${words}`);
  }
  await meet("two");

  // The gateway is gone: the wish is kept, also when the page is loaded again.
  await reads(ada.state, "Reconnecting…");
  await deletes(ada, "A secret about quinces", /no search finds it/);
  await deletes(ada, "Something about plums", /no search finds it/);
  await ada.page.getByText("The gateway is told when the connection is back.").waitFor();
  assert.deepEqual(await violations(ada.page), [], "a deletion that waits");
  await screenshot(ada.page, "delete-waits-1280");
  assert.equal((await waiting(ada)).length, 2);
  await meet("without the gateway");
  await ada.isConnected();
  await nothingWaits(ada);
  await ada.page.getByText("The gateway is told when the connection is back.").waitFor({ state: "hidden" });
  assert.deepEqual(await ada.titles(), ["Unnamed conversation"]);
  await ada.page.reload();
  await ada.isConnected();
  assert.deepEqual(await ada.titles(), ["Unnamed conversation"]);
  await meet("all deleted");

  const bob = await visitor(browser, PHONE);
  await bob.isConnected();
  await bob.says("On a phone");
  await reads(bob.words(0), "answer to: On a phone");
  await bob.button("Conversations").click();
  await bob.button("Delete “On a phone”").click();
  await bob.page.getByRole("dialog", { name: "Delete this conversation?" }).waitFor();
  await screenshot(bob.page, "delete-asks-390");
  await bob.leaves();
  await ada.leaves();
});

/** The deletions that the gateway has not accepted. */
function waiting({ page }) {
  return page.evaluate(() => Object.keys(localStorage).filter((key) => key.includes(":deleted:")));
}

function nothingWaits(tab) {
  return eventually("the gateway has accepted it", () => waiting(tab), (found) => found.length === 0);
}

async function deletes(tab, title, words) {
  await tab.listed(title).focus();
  await tab.page.keyboard.press("Delete");
  const asked = tab.page.getByRole("dialog", { name: "Delete this conversation?" });
  await asked.getByText(words).waitFor();
  if (title.includes("apples")) await screenshot(tab.page, "delete-asks-1280");
  await asked.getByRole("button", { name: "Delete" }).click();
}
