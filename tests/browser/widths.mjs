// No page is wider than the window: with long ids and long words, on phones, on a tablet and on a desktop. There are turns of such people.

import { assert, counts, eventually, meet, screenshot, url, visit, visitor } from "./browser.mjs";
import { isLoaded, operator } from "./operator.mjs";

const WIDTHS = [320, 390, 768, 1280];
const PAGES = ["", "/turns", "/deliveries", "/dead-letters", "/conversations", "/conversations?text=o", "/people", "/approvals", "/schedules", "/channels", "/live", "/logs", "/access", "/docs"];
const LONG = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft".repeat(3);

/** Where something is too wide. */
const found = [];

await visit(async (browser) => {
  const ada = await visitor(browser, { viewport: { width: 390, height: 844 } });
  await ada.isConnected();
  await ada.says(LONG);
  await counts(ada.answer(0), 1);
  await isNarrow(ada.page, "the chat page", ["#conversation"]);
  await ada.leaves();

  const bob = await operator(browser, { viewport: { width: 390, height: 844 }, path: "/admin/live" });
  const { page } = bob;
  await meet("looks");
  await page.locator(".feed > li").first().waitFor();
  await isNarrow(page, "live", []);
  const listed = async (path) => {
    await page.goto(`${url}/admin${path}`);
    await isLoaded(page);
    const links = page.locator(".main-cell a");
    await eventually("something is listed", () => links.count());
    return links.evaluateAll((all) => all.slice(0, 3).map((one) => one.getAttribute("href").replace(/^\/admin/, "")));
  };
  for (const path of [...PAGES, ...(await listed("/turns")), ...(await listed("/conversations"))]) {
    await page.goto(`${url}/admin${path}`);
    await isLoaded(page);
    await isNarrow(page, path, []);
  }
  assert.deepEqual(found, []);
  await bob.leaves();
});

/** At each width, neither the page nor one of `parts` scrolls sideways, and nothing is cut. */
async function isNarrow(page, about, parts) {
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: 844 });
    const wide = await page.evaluate((parts) => {
      const excess = ["html", ...parts].map((part) => document.querySelector(part)).map((one) => one.scrollWidth - one.clientWidth);
      const right = (one) => Math.round(one.getBoundingClientRect().right);
      const beyond = [...document.querySelectorAll("main *")].filter((one) => one.checkVisibility() && right(one) > innerWidth && !one.closest("pre, .plot, .bare > h2"));
      return { excess: excess.filter((pixels) => pixels > 0), beyond: beyond.slice(-3).map((one) => `${one.tagName}.${one.className} ${right(one)} ${one.textContent.slice(0, 40)}`) };
    }, parts);
    if (!wide.excess.length && !wide.beyond.length) continue;
    await screenshot(page, `too-wide${about.replaceAll("/", "-")}-${width}`);
    found.push({ about, width, ...wide });
  }
}
