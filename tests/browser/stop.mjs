// What runs is called off by hand.

import { counts, meet, reads, visit, visitor } from "./browser.mjs";

await visit(async (browser) => {
  const ada = await visitor(browser);
  await ada.isConnected();
  await counts(ada.button("Stop"), 0);
  await ada.says("Write a long novel.");
  await ada.turn(0).getByText("An answer is being written").waitFor();
  await meet("running");

  await ada.button("Stop").click();
  await ada.turn(0).getByText("Stopped").waitFor();
  await ada.turn(1).getByText("Cancelled.", { exact: true }).waitFor();
  await counts(ada.answer(0), 0);
  await counts(ada.button("Stop"), 0);

  await ada.says("A short one, then.");
  await reads(ada.page.getByRole("group", { name: "Answer" }).locator(".words"), "The end.");
  await ada.leaves();
});
