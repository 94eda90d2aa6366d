// A device that several people use: nothing of the one before is left on it.

import { assert, counts, eventually, meet, reads, visit, visitor } from "./browser.mjs";

const TOKEN = "the-token-of-the-family";

await visit(async (browser) => {
  const ada = await visitor(browser, { tolerates: /WebSocket|ERR_/ });
  const stored = () => ada.page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }]));
  const conversation = () => ada.page.evaluate(() => localStorage.getItem("rejoinder:/chat:conversation"));
  const asked = ada.page.getByRole("dialog", { name: "Access token" });
  const enters = async () => {
    await asked.getByLabel("Token", { exact: true }).fill(TOKEN);
    await asked.getByLabel("Keep it on this device").check();
    await asked.getByRole("button", { name: "Open the chat" }).click();
    await ada.isConnected();
  };
  const forgets = async (button) => {
    await ada.button("Forget this device").click();
    await ada.page.getByRole("dialog", { name: "Forget this device?" }).getByRole("button", { name: button }).click();
  };

  await enters();
  await ada.says("What opens the safe?");
  await reads(ada.words(0), "In the drawer.");
  const earlier = await conversation();
  await ada.button("New conversation").click();
  await ada.says("Where did I put the will?");
  await reads(ada.words(0), "In the drawer.");
  const before = await conversation();
  const otherTab = await ada.page.context().newPage();
  await otherTab.goto(ada.page.url());
  await otherTab.getByText("In the drawer.").first().waitFor();
  await meet("answered");

  // The gateway is gone: the next message waits on the device, and a third one is not finished.
  await reads(ada.state, "Reconnecting…");
  await ada.says("Which drawer?");
  await ada.page.getByLabel("Message", { exact: true }).fill("And the key");
  await eventually("all is stored", stored, (found) => [before, TOKEN, "Which drawer?", "And the key"].every((it) => found.includes(it)));

  await forgets("Cancel");
  assert.ok((await stored()).includes(before), "a change of mind costs the conversation");
  await meet("to be forgotten");
  await forgets("Forget");

  await asked.waitFor();
  await counts(ada.turns, 0);
  await otherTab.getByRole("dialog", { name: "Access token" }).waitFor();
  await counts(otherTab.getByText("In the drawer."), 0);
  assert.equal(await ada.page.getByLabel("Message", { exact: true }).inputValue(), "");
  const left = await stored();
  for (const secret of [earlier, "safe", before, TOKEN, "Which drawer?", "And the key"]) assert.ok(!left.includes(secret), `${secret} is left: ${left}`);
  await ada.leaves();
});
