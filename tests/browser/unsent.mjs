// What is not sent yet stays in its conversation, whichever is open.

import { assert, counts, eventually, meet, reads, visit, visitor } from "./browser.mjs";

await visit(async (browser) => {
  const ada = await visitor(browser, { tolerates: /ERR_CONNECTION_REFUSED|ERR_CONNECTION_RESET|closed before/ });
  await ada.isConnected();
  await ada.says("The first");
  await reads(ada.words(0), "answer to: The first");
  await meet("answered");

  // The gateway is gone.
  await reads(ada.state, "Reconnecting…");
  await ada.says("Only for the first");
  await ada.turn(1).getByText("Will be sent when the connection is back").waitFor();
  await ada.button("New conversation").click();
  await counts(ada.turns, 0);
  await ada.listed("The first").getByText("1 message not sent").waitFor();
  await ada.says("The second");
  await ada.turn(0).getByText("Will be sent when the connection is back").waitFor();
  await ada.listed("The second").hover();
  await ada.button("Delete “The first”").focus();
  await ada.page.keyboard.press("Enter");
  const asked = ada.page.getByRole("dialog", { name: "Delete this conversation?" });
  await asked.getByText("One message in it was not sent, and is lost.").waitFor();
  await asked.getByRole("button", { name: "Cancel" }).click();
  await meet("written");

  // The gateway is back: what belongs to the conversation that is open is sent, and nothing else.
  await reads(ada.words(0), "answer to: The second");
  await counts(ada.turns, 1);
  await ada.listed("The first").getByText("1 message not sent").waitFor();
  await meet("sent one");

  await ada.listed("The first").click();
  await reads(ada.words(1), "answer to: Only for the first");
  await counts(ada.turns, 2);
  await counts(ada.list.getByText("not sent"), 0);

  // An acceptance that comes when another conversation is open is not missed.
  await ada.says("Slowly, please");
  await ada.listed("The second").click();
  await reads(ada.words(0), "answer to: The second");
  await ada.listed("The first").click();
  await reads(ada.words(2), "answer to: Slowly, please");
  await counts(ada.turns, 3);
  const left = await ada.page.evaluate(() => Object.keys(localStorage).filter((key) => key.includes(":unsent:")));
  assert.deepEqual(left, []);
  await eventually("nothing is marked", () => ada.list.getByText("not sent").count(), (count) => count === 0);
  await ada.leaves();
});
