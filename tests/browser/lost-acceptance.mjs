// The gateway crashes after it stored what was said, and before it said so.

import { counts, meet, reads, visit, visitor } from "./browser.mjs";

await visit(async (browser) => {
  const ada = await visitor(browser, { tolerates: /ERR_CONNECTION_REFUSED|ERR_CONNECTION_RESET|closed before/ });
  await ada.isConnected();
  await ada.says("Only once, please.");
  await reads(ada.state, "Reconnecting…");
  await meet("crashed");

  await ada.isConnected();
  await reads(ada.words(0), "Once.");
  await ada.page.reload();
  await ada.isConnected();
  await reads(ada.words(0), "Once.");
  await counts(ada.turns, 1);
  await ada.leaves();
});
