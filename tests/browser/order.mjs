// The server's clock is set back between two starts: what was said later stands below.

import { counts, meet, reads, visit, visitor } from "./browser.mjs";

await visit(async (browser) => {
  const ada = await visitor(browser, { tolerates: /ERR_CONNECTION_REFUSED|ERR_CONNECTION_RESET|closed before/ });
  await ada.isConnected();
  await ada.says("one");
  await reads(ada.words(0), "answer to: one");
  await meet("before");

  await ada.isConnected();
  await ada.says("two");
  await reads(ada.words(1), "answer to: two");
  await reads(ada.words(0), "answer to: one");
  await ada.page.reload();
  await ada.isConnected();
  await counts(ada.turns, 2);
  await reads(ada.words(0), "answer to: one");
  await reads(ada.words(1), "answer to: two");
  await ada.leaves();
});
