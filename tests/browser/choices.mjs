// An empty answer becomes a question with buttons; a pick is the next thing said.

import { assert, counts, reads, visit, visitor } from "./browser.mjs";

await visit(async (browser) => {
  const ada = await visitor(browser);
  await ada.isConnected();
  await ada.says("Hm.");
  await reads(ada.words(0), "I am not sure what you would like. Which of these?");

  const choices = ada.answer(0).getByRole("group", { name: "Choices" }).getByRole("button");
  assert.deepEqual(await choices.allInnerTexts(), ["Tell me more", "Try again", "Never mind"]);
  const window = await ada.page.context().newPage();
  await window.goto(ada.page.url());
  const elsewhere = window.getByRole("group", { name: "Choices" }).getByRole("button");
  await counts(elsewhere, 3);
  await choices.getByText("Tell me more").click();

  await reads(ada.words(1), "There is more to tell.");
  await counts(ada.turns, 2);
  await ada.turn(1).getByRole("group", { name: "You" }).getByText("Tell me more").waitFor();
  for (const choice of await choices.all()) {
    assert.ok(await choice.isDisabled(), "what was asked before can still be picked");
  }
  // What was picked stays, here and in every other window.
  for (const shown of [choices, elsewhere]) {
    await counts(shown, 1);
    assert.ok(await shown.isDisabled());
    await reads(shown, "Tell me more");
  }
  await counts(ada.page.getByRole("button", { pressed: true }), 1);
  await counts(ada.page.getByRole("button", { name: "Tell me more", pressed: true }), 1);

  await ada.page.reload();
  await ada.isConnected();
  await counts(ada.page.getByRole("button", { name: "Tell me more", pressed: true, disabled: true }), 1);
  await counts(ada.turns, 2);
  await ada.leaves();
});
