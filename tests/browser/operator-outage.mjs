// A platform goes down under many turns, and refuses an answer afterwards. The operator sees both, looks at the turn, and has
// it sent again when the platform is well.

import { assert, meet, screenshot, url, visit } from "./browser.mjs";
import { headline, isLoaded, operator } from "./operator.mjs";

const LOST = /The gateway cannot be reached/;

await visit(async (browser) => {
  const ada = await operator(browser, { viewport: { width: 1280, height: 900 }, tolerates: /ERR_INTERNET_DISCONNECTED/ });
  const { page } = ada;
  await headline(page, /^Everything is answered\./);
  await meet("all is answered");

  // The page says so by itself.
  await headline(page, /telegram\.test (is down|cannot send) since .* ago\): /);
  await page.getByRole("link", { name: "200 turns owed an answer" }).waitFor();
  await screenshot(page, "operator-outage");
  await meet("down");

  await headline(page, /^One turn could not be answered at .*\.$/);
  await page.getByRole("link", { name: "Look at them" }).click();
  await page.getByRole("heading", { name: "Dead letters", level: 1 }).waitFor();
  await page.locator(".letters h3 a").click();
  await page.getByText("Undeliverable", { exact: true }).waitFor();
  await page.getByRole("list", { name: /^What happened/ }).getByText(/^Given up as a dead letter/).waitFor();
  await page.getByRole("link", { name: "Overview", exact: true }).click();
  await meet("could not be answered");

  await ada.button("Retry all").click();
  await page.getByRole("dialog").getByText("1 dead letter will be sent again.").waitFor();
  await ada.button("Retry 1").click();
  await page.getByRole("status").getByText("1 dead letter is sent again.").waitFor();
  await headline(page, /^Everything is answered\./);
  await page.goto(`${url}/admin/dead-letters`);
  await page.getByText("There are no dead letters.").waitFor();
  await page.goto(`${url}/admin/access`);
  await page.getByText("admin sent a dead letter again.").first().waitFor();
  await meet("answered");

  // Without a network the page says that what it shows is old, and recovers by itself.
  await page.goto(`${url}/admin`);
  await isLoaded(page);
  await page.context().setOffline(true);
  await page.getByRole("alert").getByText(LOST).waitFor();
  assert.ok(await page.locator(".headline").isVisible(), "what was known is gone");
  await page.context().setOffline(false);
  await page.getByText(LOST).waitFor({ state: "hidden" });
  await headline(page, /^Everything is answered\./);
  await ada.leaves();
});
