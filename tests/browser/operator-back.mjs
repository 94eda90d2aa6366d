// On a phone: a channel cannot send, and people wait. The page says so, and says when it is over, by itself.

import { meet, screenshot, visit } from "./browser.mjs";
import { headline, operator } from "./operator.mjs";

// With a clock that runs twenty times as fast, a request may time out on a slow machine. The page asks again.
const tolerates = /status of 503/;

await visit(async (browser) => {
  const ada = await operator(browser, { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true, tolerates });
  const { page } = ada;
  await headline(page, /^Everything is answered\./);
  await meet("all is answered");

  await headline(page, /^5 (people|messages) wait because telegram\.test cannot send since .*\): not sent: 502/);
  await ada.button("Try now").waitFor();
  await screenshot(page, "operator-cannot-send");
  await meet("cannot send");

  await headline(page, /^Everything is answered\./);
  await screenshot(page, "operator-back");
  await meet("answered");
  await ada.leaves();
});
