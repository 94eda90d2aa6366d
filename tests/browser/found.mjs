// All that was said is searched, and a message is jumped to. The menu of a conversation saves and prints it, and chooses the agent;
// keys do the same, and a card lists them.

import { axe, violations } from "./axe.mjs";
import { assert, counts, eventually, meet, reads, screenshot, visit, visitor } from "./browser.mjs";

const PHONE = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, hasTouch: true, isMobile: true };
/** A browser does not print by itself. */
const PRINTS = "globalThis.print = () => (globalThis.printed = document.querySelectorAll('#turns > li').length);";

await visit(async (browser) => {
  const ada = await visitor(browser, { scripts: [axe, PRINTS] });
  await ada.isConnected();
  await asks(ada, "Where do figs grow?");
  for (let number = 1; number <= 45; number += 1) await ada.says(`Count ${number}`);
  await reads(ada.words(45), "answer to: Count 45");
  await ada.button("New conversation").click();
  await asks(ada, "Are figs a fruit?");
  await ada.page.reload();
  await ada.isConnected();

  await meet("said");
  await findsAMessage(ada);
  await meet("found");
  await choosesAndSaves(ada);
  await printsAll(ada);
  await meet("printed");
  await usesKeys(ada);

  const storageState = await ada.page.context().storageState();
  const phone = await visitor(browser, { ...PHONE, colorScheme: "dark", storageState, scripts: [axe] });
  await phone.isConnected();
  await findsOnAPhone(phone);
  await phone.leaves();
  await ada.leaves();
});

async function asks(ada, words) {
  await ada.says(words);
  await reads(ada.words((await ada.turns.count()) - 1), `answer to: ${words}`);
}

function found({ page }) {
  return page.getByRole("list", { name: "Messages" }).getByRole("button");
}

/** Lines are indexed a moment after their turn has ended. */
async function finds(visitor, words, count) {
  const search = visitor.page.getByRole("searchbox", { name: "Search conversations" });
  await eventually(`${count} lines with ${words}`, async () => {
    await search.fill("");
    await search.fill(words);
    await visitor.page.getByRole("status").getByText(/messages? found|No message has/).first().waitFor();
    return found(visitor).count();
  }, (lines) => lines === count);
  return search;
}

async function findsAMessage(ada) {
  const { keyboard } = ada.page;
  const search = await finds(ada, "figs", 4);
  assert.deepEqual(await violations(ada.page), [], "what is found");
  await screenshot(ada.page, "found-1280");
  await reads(found(ada).last().locator("mark"), "figs");
  // Conversations that have the words come first, and the arrows go on to the messages.
  assert.deepEqual(await ada.titles(), ["Are figs a fruit?", "Where do figs grow?"]);
  await search.press("ArrowDown");
  await keyboard.press("End");
  await keyboard.press("ArrowDown");
  await keyboard.press("ArrowUp");
  assert.equal(await ada.page.evaluate(() => document.activeElement.querySelector(".listed-title")?.textContent), "Where do figs grow?");
  await keyboard.press("ArrowDown");
  await keyboard.press("End");
  await keyboard.press("Enter");

  // It is not among the turns that the page has at first.
  const sought = ada.page.locator(".turn.sought");
  await sought.getByText("Where do figs grow?", { exact: true }).waitFor();
  await eventually("it is seen", () => sought.evaluate((item) => item === document.activeElement && item.getBoundingClientRect().top >= 0 && item.getBoundingClientRect().top < innerHeight / 2));
  await counts(ada.turns, 46);
  await finds(ada, "nowhere", 0);
  await ada.page.getByText("No message has these words.").waitFor();
  await search.press("Escape");
  await counts(found(ada), 0);
}

async function choosesAndSaves(ada) {
  const { keyboard } = ada.page;
  const more = ada.button("More");
  await more.focus();
  await keyboard.press("Enter");
  const menu = ada.page.getByRole("menu", { name: "More" });
  await menu.waitFor();
  assert.deepEqual(await violations(ada.page), [], "the menu");
  await screenshot(ada.page, "actions-1280");
  await keyboard.press("Escape");
  await counts(menu, 0);
  assert.equal(await ada.page.evaluate(() => document.activeElement.id), "more");

  await more.click();
  await menu.getByRole("menuitem", { name: "Save as JSON" }).click();
  await ada.page.getByRole("link", { name: "Save conversation.json" }).waitFor();
  await more.click();
  await menu.getByRole("group", { name: "Agent" }).getByRole("menuitem", { name: "coder" }).click();
  await ada.page.getByText("/agent coder", { exact: true }).waitFor();
}

/** What is not on the page yet is loaded first, and nothing that is pressed is on paper. */
async function printsAll(ada) {
  await ada.page.reload();
  await ada.isConnected();
  await counts(ada.turns, 40);
  await ada.button("More").click();
  await ada.page.getByRole("menuitem", { name: "Print" }).click();
  assert.equal(await eventually("it is printed", () => ada.page.evaluate(() => globalThis.printed)), 48);
  await ada.page.emulateMedia({ media: "print", colorScheme: "dark" });
  await eventually("no button is printed", () => ada.page.getByRole("button").count(), (seen) => seen === 0);
  const looks = await ada.page.evaluate(() => ({ isWhole: document.documentElement.scrollHeight > 2_000, ground: getComputedStyle(document.body).backgroundColor }));
  assert.deepEqual(looks, { isWhole: true, ground: "rgb(255, 255, 255)" });
  await ada.page.emulateMedia({ media: "screen", colorScheme: "light" });
}

async function usesKeys(ada) {
  const { keyboard } = ada.page;
  const card = ada.page.getByRole("dialog", { name: "Keyboard shortcuts" });
  await ada.input.focus();
  await keyboard.press("?");
  assert.equal(await ada.input.inputValue(), "?", "a text has a question mark");
  await ada.input.fill("");
  await keyboard.press("Control+/");
  await card.waitFor();
  assert.deepEqual(await violations(ada.page), [], "the card");
  await screenshot(ada.page, "keys-1280");
  await card.getByRole("checkbox").uncheck();
  await keyboard.press("Escape");
  await counts(card, 0);

  // Who dictates, or whose hand shakes, can switch the keys off that have no other key with them.
  await ada.page.getByRole("main").focus();
  await keyboard.press("?");
  await keyboard.press("Control+K");
  assert.equal(await ada.page.evaluate(() => document.activeElement.id), "search");
  await counts(card, 0);
  await keyboard.press("Control+/");
  await card.getByRole("checkbox").check();
  await card.getByRole("button", { name: "Close" }).click();
  await ada.page.getByRole("main").focus();
  await keyboard.press("/");
  await ada.page.getByRole("option").first().waitFor();
  assert.equal(await ada.input.inputValue(), "/");
  await ada.input.fill("");

  const current = ada.list.locator("[aria-current=true] .listed-title");
  await reads(current, "Where do figs grow?");
  await keyboard.press("Alt+ArrowDown");
  await reads(current, "Are figs a fruit?");
  await reads(ada.words(0), "answer to: Are figs a fruit?");
  await ada.input.focus();
  await keyboard.press("ArrowUp");
  assert.equal(await ada.input.inputValue(), "Are figs a fruit?");
  await ada.button("Cancel").click();
  await keyboard.press("Control+Shift+O");
  await counts(ada.turns, 0);
}

async function findsOnAPhone(phone) {
  await phone.button("Conversations").tap();
  await finds(phone, "figs", 4);
  assert.deepEqual(await violations(phone.page), [], "what is found on a phone");
  await screenshot(phone.page, "found-390");
  await found(phone).first().tap();
  await counts(phone.page.getByRole("dialog", { name: "Conversations" }), 0);
  await phone.page.locator(".turn.sought").waitFor();
  await phone.button("More").tap();
  await phone.page.getByRole("menu").waitFor();
  assert.deepEqual(await violations(phone.page), [], "the menu on a phone");
  await screenshot(phone.page, "actions-390");
  const wide = await phone.page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(wide <= 390, `the page is ${wide} pixels wide`);
}
