// Too much at once: what was not taken in is sent again by hand, a minute later.

import { counts, meet, reads, visit, visitor } from "./browser.mjs";

await visit(async (browser) => {
  const ada = await visitor(browser);
  await ada.isConnected();
  await ada.says("one");
  await reads(ada.words(0), "answer to: one");
  await ada.says("two");
  await ada.turn(1).getByText("That was a lot at once.").waitFor();
  await meet("limited");

  await ada.turn(1).getByRole("button", { name: "Try again" }).click();
  await reads(ada.words(1), "answer to: two");
  await counts(ada.turns, 2);
  await ada.leaves();
});
