// The gateway is killed under an open page, and the device loses its network.

import { counts, meet, reads, visit, visitor } from "./browser.mjs";

const LOST = "The connection was lost. What you write is kept and will be sent.";

await visit(async (browser) => {
  const ada = await visitor(browser, { tolerates: /ERR_CONNECTION_REFUSED|ERR_INTERNET_DISCONNECTED|ERR_CONNECTION_RESET|closed before/ });
  await ada.isConnected();
  await ada.says("Are you there?");
  await counts(ada.page.locator("#turns > li[data-turn-id]"), 1);
  await meet("owed");

  await reads(ada.state, "Reconnecting…");
  await ada.page.getByRole("alert").getByText(LOST).waitFor();
  await ada.says("And now?");
  await ada.turn(1).getByText("Will be sent when the connection is back").waitFor();
  await meet("offline");

  await ada.isConnected();
  await reads(ada.words(0), "answer to: Are you there?");
  await reads(ada.words(1), "answer to: And now?");
  await counts(ada.turns, 2);
  await ada.page.getByText(LOST).waitFor({ state: "hidden" });

  await ada.says("Take your time.");
  await counts(ada.page.locator("#turns > li[data-turn-id]"), 3);
  await meet("owed again");
  await ada.page.context().setOffline(true);
  await reads(ada.state, "Offline");
  await meet("without a network");
  await ada.page.context().setOffline(false);
  await ada.isConnected();
  await reads(ada.words(2), "answer to: Take your time.");
  await counts(ada.turns, 3);

  await ada.page.reload();
  await ada.isConnected();
  for (const [index, said] of ["Are you there?", "And now?", "Take your time."].entries()) {
    await reads(ada.words(index), `answer to: ${said}`);
  }
  await counts(ada.turns, 3);
  await ada.leaves();
});
