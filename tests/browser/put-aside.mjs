// The chat page is left and comes back as it was: in the back/forward cache it holds no socket.

import { assert, counts, url, visit, visitor } from "./browser.mjs";

const ASIDE = 'addEventListener("pageshow", ({ persisted }) => (window.wasAside = persisted))';

await visit(async (browser) => {
  const ada = await visitor(browser, { tolerates: /status of 401/, scripts: [ASIDE] });
  await ada.isConnected();
  await ada.says("hello");
  await counts(ada.answer(0), 1);

  await ada.page.goto(`${url}/admin`);
  await ada.page.goBack({ waitUntil: "commit" });
  assert.equal(await ada.page.evaluate(() => window.wasAside), true, "a socket kept the page out of the cache");
  await ada.isConnected();
  await ada.says("again");
  await counts(ada.answer(1), 1);
  await ada.leaves();
});
