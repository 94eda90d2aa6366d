// An agent asks twice while it works, with the same choices; each question is picked from, here and in another tab.

import { assert, counts, reads, visit, visitor } from "./browser.mjs";

await visit(async (browser) => {
  const ada = await visitor(browser);
  await ada.isConnected();
  await ada.says("Please paint the door.");
  const tab = await ada.tab();
  await tab.isConnected();
  const pressed = (visitor) => visitor.turn(0).getByRole("button", { pressed: true });
  const open = (visitor) => visitor.answer(0).getByRole("group", { name: "Choices" }).locator("button:enabled");

  await reads(ada.words(0), "Shall I paint the door?\n\ngo");
  await reads(ada.voice(0), "main");
  assert.deepEqual(await open(ada).allInnerTexts(), ["Yes", "No", "Decline"]);
  await counts(ada.turn(0).locator(".wait"), 0);
  // What else is said leaves the question open.
  await ada.says("/status");
  await counts(ada.turns, 2);
  await open(ada).getByText("Yes", { exact: true }).click();

  for (const visitor of [ada, tab]) {
    await reads(visitor.words(0), "Shall I paint it red?\n\ngo");
    await counts(open(visitor), 3);
    await counts(pressed(visitor), 0);
  }
  await ada.page.reload();
  await ada.isConnected();
  await counts(open(ada), 3);
  await open(tab).getByText("Yes", { exact: true }).click();

  await reads(ada.words(0), "You said yes and yes.");
  await counts(ada.turn(0).getByRole("group", { name: "Choices" }), 0);
  await ada.leaves();
});
