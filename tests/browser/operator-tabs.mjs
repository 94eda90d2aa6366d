// Many tabs of the operator's page, and many looks at it one after the other: no page waits for a connection that another one
// holds. There is no turn yet.

import { eventually, meet, url, visit } from "./browser.mjs";
import { isLoaded, operator } from "./operator.mjs";

/** More than the connections that a browser has for a gateway. */
const TABS = 10;
const LOOKS = 12;

/** A page that is not looked at: the browser of the test shows all its pages. */
const putAside = () => {
  Object.defineProperty(document, "hidden", { configurable: true, get: () => true });
  document.dispatchEvent(new Event("visibilitychange"));
};
const lookAt = () => {
  delete document.hidden;
  document.dispatchEvent(new Event("visibilitychange"));
};

await visit(async (browser) => {
  const ada = await operator(browser, { path: "/admin/turns" });
  await opensManyTabs(ada);
  await ada.leaves();

  const bob = await operator(browser, { path: "/admin/turns" });
  await looksManyTimes(bob);
  await bob.leaves();

  // Over plain HTTP in the local network, a page cannot ask for a lock.
  const eve = await operator(browser, { path: "/admin", scripts: ["delete Navigator.prototype.locks"] });
  await putsManyTabsAside(eve);
  await eve.leaves();
});

/** Another tab, which is loaded. */
async function another(person, path) {
  const page = await person.page.context().newPage();
  await page.goto(url + path);
  await isLoaded(page);
  await isConnected(page);
  return page;
}

function isConnected(page) {
  return page.locator("#connection").getByText("Connected", { exact: true }).waitFor();
}

async function opensManyTabs(ada) {
  const pages = [ada.page];
  while (pages.length < TABS) pages.push(await another(ada, "/admin/turns"));
  await meet("ten tabs");
  await Promise.all(pages.map((page) => page.getByRole("row").getByText("hello", { exact: true }).waitFor()));

  // The one that has the connection is closed: another one takes it over.
  for (const page of pages.splice(0, 3)) await page.close();
  await meet("seven tabs");
  await Promise.all(pages.map((page) => page.getByRole("row").getByText("still there?", { exact: true }).waitFor()));
  for (const page of pages) {
    await page.getByRole("link", { name: "Live", exact: true }).click();
    await eventually("both turns are told", () => page.locator(".feed > li", { hasText: "turn.settled" }).count(), (count) => count === 2);
  }
}

/** Each page that is left goes into the back/forward cache. */
async function looksManyTimes(bob) {
  for (let look = 0; look < LOOKS; look += 1) {
    await bob.page.goto(`${url}/admin/turns?text=${look}`);
    await isLoaded(bob.page);
    await isConnected(bob.page);
  }
}

async function putsManyTabsAside(eve) {
  const pages = [eve.page];
  while (pages.length < TABS) {
    await pages.at(-1).evaluate(putAside);
    pages.push(await another(eve, "/admin"));
  }
  await pages.at(-1).evaluate(putAside);
  await pages[0].evaluate(lookAt);
  await eventually("the page is fresh", () => pages[0].locator(".headline").innerText(), (words) => /Everything is answered/.test(words));
}
