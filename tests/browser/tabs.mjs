// Two tabs of one browser have one list.

import { assert, counts, eventually, reads, visit, visitor } from "./browser.mjs";

await visit(async (browser) => {
  const ada = await visitor(browser);
  await ada.isConnected();
  await ada.says("From the first tab");
  await reads(ada.words(0), "answer to: From the first tab");
  const other = await ada.tab();
  await other.isConnected();
  await reads(other.words(0), "answer to: From the first tab");
  const bothList = (...titles) =>
    Promise.all([ada, other].map((tab) => eventually(`the list is ${titles}`, () => tab.titles(), (found) => JSON.stringify(found) === JSON.stringify(titles))));

  // Both write at once, and nothing is lost.
  await other.button("New conversation").click();
  await other.input.fill("From the second tab");
  await ada.input.fill("Again from the first");
  await Promise.all([other.page.keyboard.press("Enter"), ada.page.keyboard.press("Enter")]);
  await reads(other.words(0), "answer to: From the second tab");
  await reads(ada.words(1), "answer to: Again from the first");
  await Promise.all([ada, other].map((tab) => eventually("both are listed", () => tab.titles(), (found) => found.length === 2)));
  await counts(ada.turns, 2);
  await counts(other.turns, 1);
  assert.deepEqual(await ada.titles(), await other.titles());

  // A name, while the other tab goes on in that conversation.
  await ada.listed("From the second tab").focus();
  await ada.page.keyboard.press("F2");
  await other.says("More");
  await reads(other.words(1), "answer to: More");
  await ada.page.keyboard.press("ControlOrMeta+A");
  await ada.page.keyboard.type("Second");
  await ada.page.keyboard.press("Enter");
  await bothList("Second", "From the first tab");
  await other.says("And more");
  await reads(other.words(2), "answer to: And more");
  await ada.listed("Second").getByText("answer to: And more").waitFor();
  await bothList("Second", "From the first tab");

  // Each tab stays where it is, also when it is loaded again.
  await ada.page.reload();
  await reads(ada.words(1), "answer to: Again from the first");
  await counts(ada.turns, 2);

  const key = "rejoinder:/chat:conversation";
  const second = await other.page.evaluate((key) => sessionStorage.getItem(key), key);
  // What is deleted in one tab leaves the other, and does not come back.
  await deletes(ada, "Second");
  await counts(other.turns, 0);
  await other.page.getByRole("alert").getByText("That conversation was removed in another tab.").waitFor();
  await eventually("one is listed", () => ada.titles(), (found) => JSON.stringify(found) === '["From the first tab"]');
  await other.page.reload();
  await other.isConnected();
  assert.ok(!(await other.titles()).includes("Second"));

  // Nor with a tab that was closed meanwhile, and is restored with what it had stored.
  await other.page.evaluate(([key, second]) => sessionStorage.setItem(key, second), [key, second]);
  await other.page.reload();
  await other.isConnected();
  assert.doesNotMatch(await other.page.locator("#turns").innerText(), /From the second tab/);
  await eventually("the deleted one is not back", () => other.page.evaluate(() => JSON.stringify({ ...localStorage })), (stored) => !stored.includes(second));

  // What one tab has begun to write, the other does not remove by opening something else.
  await ada.button("New conversation").click();
  await other.page.evaluate((key) => sessionStorage.setItem(key, localStorage.getItem(key)), key);
  await other.page.reload();
  await other.isConnected();
  await ada.input.fill("Half a question");
  await other.listed("From the first tab").click();
  await reads(other.words(0), "answer to: From the first tab");
  await ada.page.reload();
  await ada.isConnected();
  assert.equal(await ada.input.inputValue(), "Half a question");

  // What somebody is writing in a conversation that another tab deletes goes to a new one.
  await ada.says("Whole");
  await reads(ada.words(0), "answer to: Whole");
  await ada.input.fill("And another half");
  await deletes(other, "Whole");
  await counts(ada.turns, 0);
  await ada.page.getByRole("alert").getByText("What you were writing is kept here.").waitFor();
  assert.equal(await ada.input.inputValue(), "And another half");
  await ada.input.fill("");

  // The one that was opened last is deleted in another tab, when its own tab is closed.
  const third = await ada.tab();
  await third.isConnected();
  await third.button("New conversation").click();
  await third.says("Opened last");
  await reads(third.words(0), "answer to: Opened last");
  const last = await third.page.evaluate((key) => localStorage.getItem(key), key);
  await third.page.close();
  await deletes(ada, "Opened last");
  await eventually("the deleted one is not what the next tab opens", () => ada.page.evaluate(() => JSON.stringify({ ...localStorage })), (stored) => !stored.includes(last));
  const fourth = await ada.tab();
  await fourth.isConnected();
  assert.ok(!(await fourth.titles()).includes("Opened last"), "the deleted one is back");
  await ada.leaves();
});

async function deletes(tab, title) {
  await tab.listed(title).focus();
  await tab.page.keyboard.press("Delete");
  await tab.page.getByRole("dialog", { name: "Delete this conversation?" }).getByRole("button", { name: "Delete" }).click();
}
