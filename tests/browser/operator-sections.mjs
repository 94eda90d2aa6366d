// Every section of the operator's page, on a phone and a desktop, by day and by night, and for who does not look. There is at
// least one turn that a member of an agent answered.

import { assert, eventually, meet, screenshot, url, visit } from "./browser.mjs";
import { isAccessible, isLoaded, operator } from "./operator.mjs";

const DESKTOP = { viewport: { width: 1280, height: 900 } };
const PHONE = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, hasTouch: true, isMobile: true };

/** What the menu calls each section, and its address. */
const SECTIONS = {
  Overview: "",
  Turns: "/turns",
  Deliveries: "/deliveries",
  Conversations: "/conversations",
  People: "/people",
  Approvals: "/approvals",
  Schedules: "/schedules",
  Channels: "/channels",
  Live: "/live",
  Logs: "/logs",
  Access: "/access",
};

await visit(async (browser) => {
  await signsInAndOut(browser);
  await worksWithKeysAlone(browser);
  await meet("signed in and out");
  await walks(browser, DESKTOP);
  await meet("looked at on a desktop");
  await walks(browser, PHONE);
});

/** The address stays, the token goes: it is in no storage, and a wrong one opens nothing. */
async function signsInAndOut(browser) {
  const ada = await operator(browser, { ...DESKTOP, path: "/admin/turns?state=open" });
  await isLoaded(ada.page);
  assert.equal(ada.page.url(), `${url}/admin/turns?state=open`);
  const kept = await ada.page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie]));
  assert.ok(!kept.includes("admin-token-of-the-tests"), `the token is kept: ${kept}`);

  await ada.page.reload();
  await ada.page.getByRole("heading", { name: "Turns", level: 1 }).waitFor();
  await ada.button("Sign out").click();
  await ada.page.getByText("You are signed out.").waitFor();
  await isAccessible(ada.page, "signed out");
  await ada.page.getByLabel("Or paste a token").fill("a-guess");
  await ada.button("Sign in").click();
  await ada.page.getByText("This token is not right.").waitFor();
  await ada.leaves();
}

async function walks(browser, device) {
  const ada = await operator(browser, device);
  const { page } = ada;
  const about = (what, theme) => `operator-${what}-${device.viewport.width}-${theme}`;
  const look = async (what) => {
    await isLoaded(page);
    for (const theme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme: theme });
      await isAccessible(page, about(what, theme));
      await screenshot(page, about(what, theme));
    }
  };
  for (const [name, path] of Object.entries(SECTIONS)) {
    const anchor = page.getByRole("navigation", { name: "Sections" }).getByRole("link", { name, exact: true });
    if (!(await anchor.isVisible())) await ada.button("More").click();
    await anchor.click();
    await eventually(`the address of ${name}`, () => page.url(), (address) => address === `${url}/admin${path}`);
    assert.equal(await page.locator("#nav [aria-current=page]").textContent(), name, "the menu marks another section");
    await look(name.toLowerCase());
    const failures = await page.locator("main [role=alert]:visible").allInnerTexts();
    assert.deepEqual(failures, [], `${name} does not load`);
  }

  await page.goto(`${url}/admin/channels`);
  await page.locator(".members").getByText("An answer takes", { exact: true }).waitFor();
  await page.goto(`${url}/admin/dead-letters`);
  await look("dead-letters");
  await page.goto(`${url}/admin/turns`);
  await isLoaded(page);
  await page.locator(".main-cell a").first().click();
  await page.getByRole("heading", { name: /^Turn of/ }).waitFor();
  await page.getByRole("list", { name: /^What happened/ }).waitFor();
  await look("turn");
  await page.goto(`${url}/admin/conversations`);
  await isLoaded(page);
  await page.locator(".main-cell a").first().click();
  await page.locator(".transcript > li").first().waitFor();
  await look("conversation");
  await readsTheApi(page, look);
  await page.goto(`${url}/admin/nothing`);
  await page.getByRole("heading", { name: "There is no such page" }).waitFor();
  await look("unknown");
  await ada.leaves();
}

/** The API describes itself: a search finds an operation, its shapes open in place, and it can be tried. */
async function readsTheApi(page, look) {
  await page.goto(`${url}/admin/access`);
  await page.getByRole("link", { name: "Read how" }).click();
  await page.getByRole("heading", { name: "The HTTP API", level: 1 }).waitFor();
  await look("api");
  await page.getByLabel("Search", { exact: true }).fill("/admin/api/turns newest");
  const operations = page.locator(".operation:visible");
  await eventually("one operation is found", () => operations.count(), (count) => count === 1);
  await operations.locator("summary").click();
  await page.getByRole("heading", { name: "Answers", exact: true }).waitFor();
  await eventually("the address names it", () => page.url(), (address) => address.endsWith("#operation-list_turns"));
  await page.locator(".shape > summary", { hasText: "TurnList" }).click();
  await page.locator(".shape > summary", { hasText: "TurnItem" }).click();
  await page.locator("summary", { hasText: "Try it" }).click();
  await page.getByLabel("limit", { exact: true }).fill("1");
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByRole("region", { name: "Answer of list_turns" }).getByText('"turn_id"').waitFor();
  await look("api-operation");
  await page.reload();
  await page.getByRole("heading", { name: "Answers", exact: true }).waitFor();
}

/** The skip link leads to the content, a dialog takes the focus and gives it back. */
async function worksWithKeysAlone(browser) {
  const ada = await operator(browser, { ...DESKTOP, path: "/admin/access" });
  const { page } = ada;
  await isLoaded(page);
  const focused = () => page.evaluate(() => document.activeElement.textContent || document.activeElement.name || document.activeElement.id);
  await page.reload();
  await isLoaded(page);
  await page.keyboard.press("Tab");
  assert.equal(await focused(), "Skip to the content");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.id), "main", "the skip link leads elsewhere");

  await ada.button("Make a token").focus();
  await page.keyboard.press("Enter");
  await page.getByRole("dialog", { name: "Make a token" }).waitFor();
  assert.equal(await focused(), "name");
  await isAccessible(page, "a dialog");
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  assert.equal(await focused(), "Make a token");
  await ada.leaves();
}
