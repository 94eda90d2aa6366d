// What the page looks like, on a phone and a desktop, by day and by night, and for who does not look.

import { axe, violations } from "./axe.mjs";
import { assert, counts, eventually, meet, reads, screenshot, visit, visitor } from "./browser.mjs";

const DESKTOP = { viewport: { width: 1280, height: 800 } };
const PHONE = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, hasTouch: true, isMobile: true };
/** A desktop at 200 %. */
const ZOOMED = { viewport: { width: 640, height: 400 }, deviceScaleFactor: 2 };
const NARROW = { viewport: { width: 320, height: 568 }, deviceScaleFactor: 2, hasTouch: true, isMobile: true };

/** What was said first and last in other conversations. */
const EARLIER = [
  ["Bread that keeps for a week", "Rye, then: a sourdough with 70 % rye flour."],
  ["A cake without eggs", "Two ripe bananas do the work of three eggs."],
  ["How much coffee for eight?", "80 g for 1.3 l, coarsely ground."],
];
const TALKS = [
  ["הכנה לארוחת ערב", "ככה, עם אורז ופטריות, ומעט יין לבן"],
  ["What is the longest word that fits into a name without being broken anywhere?", "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft"],
  ["Bread", "500 g flour, 10 g salt, and time."],
];

await visit(async (browser) => {
  const ada = await visitor(browser, { ...DESKTOP, scripts: [axe] });
  await ada.isConnected();
  await screenshot(ada.page, "greeting-1280-light");
  await isAccessible(ada.page, "the greeting");
  assert.deepEqual(await violations(ada.page), [], "the greeting");

  await haveDinner(ada);
  await screenshot(ada.page, "chat");
  await ada.says("And how do I set it up?");
  await reads(ada.words(3).getByRole("heading"), "Set it up");
  await ada.says("And in Hebrew?");
  await ada.words(4).getByRole("table").waitFor();
  await ada.says("Hm.");
  await ada.answer(5).getByRole("group", { name: "Choices" }).waitFor();
  await ada.says("Find me a table for Sunday, please.");
  await reads(ada.words(6), "Still working on this.");
  for (const device of [DESKTOP, PHONE, NARROW, ZOOMED]) {
    await looksWellOn(device, browser, ada);
    await meet(`looked at ${device.viewport.width}`);
  }

  await reads(ada.words(6), "Sunday at one, by the window.");
  await eventually("the answer is read out", () => ada.page.locator("[aria-live=polite]").allInnerTexts(), (texts) =>
    texts.some((text) => text.includes("Sunday at one, by the window.")),
  );
  await counts(ada.turns, 7);
  await ada.leaves();
});

/** Puts conversations into the list, one for each day before `from`. */
async function putIntoTheList(page, talks, from) {
  await page.evaluate(([talks, from]) => {
    talks.forEach(([first, last], number) => {
      const at = from - (number + 1) * 86_400_000;
      localStorage.setItem(`rejoinder:/chat:conversation:a-conversation-of-${at}`, JSON.stringify({ at, first, last }));
    });
  }, [talks, from]);
  await page.reload();
}

async function haveDinner(ada) {
  await putIntoTheList(ada.page, EARLIER, Date.now());
  await ada.isConnected();
  await ada.says("Four of us for dinner on Saturday, one vegetarian. Any ideas?");
  await ada.words(0).getByText("mushroom risotto").waitFor();
  await ada.says("Sounds good! When do I start if we eat at half past seven?");
  await ada.words(1).getByRole("table").waitFor();
  await ada.says("Perfect, thank you!");
  await ada.turn(2).getByRole("img", { name: /^Reaction/ }).waitFor();
}

/** Ada's conversation on a device, from its end and further up, in both themes: `{what}-{width}-{theme}.png`. */
async function looksWellOn(device, browser, ada) {
  const storageState = await ada.page.context().storageState();
  const look = await visitor(browser, { ...device, storageState, scripts: [axe] });
  await look.isConnected();
  await counts(look.turns, await ada.turns.count());
  for (const what of ["end", "markdown"]) {
    if (what === "markdown") await look.words(3).getByRole("heading").evaluate((heading) => heading.scrollIntoView());
    for (const theme of ["light", "dark"]) {
      const about = `${what}-${device.viewport.width}-${theme}`;
      await look.page.emulateMedia({ colorScheme: theme });
      await screenshot(look.page, about);
      await doesNotScrollSideways(look.page, about);
      await isAccessible(look.page, about);
      await isLegible(look.page, about);
    }
    if ([DESKTOP, PHONE].includes(device)) assert.deepEqual(await violations(look.page), [], `${what}-${device.viewport.width}`);
  }
  await showsTables(look);
  await readsFromTheRight(look);
  await showsTheMenu(look, device);
  await showsTheList(look, device);
  await look.leaves();
}

/** Many conversations, some with a message that waits: beside the conversation on a wide screen, else in a drawer. */
async function showsTheList(look, device) {
  const from = Date.parse("2025-03-01T12:00:00Z");
  const dinners = Array.from({ length: 60 }, (_, number) => TALKS[number] ?? [`Dinner number ${number}`, "Enjoy your meal."]);
  await look.page.evaluate((at) => {
    const entry = { id: "a-message-that-waits", conversation: `a-conversation-of-${at}`, at, text: "Bread, too" };
    localStorage.setItem(`rejoinder:/chat:unsent:${entry.id}`, JSON.stringify(entry));
  }, from - 3 * 86_400_000);
  await putIntoTheList(look.page, dinners, from);
  await look.isConnected();
  const isDrawer = device !== DESKTOP;
  if (isDrawer) await look.button("Conversations").click();
  await counts(look.list.getByRole("listitem"), 1 + EARLIER.length + dinners.length);
  await look.list.getByText("1 message not sent").waitFor();
  for (const theme of ["light", "dark"]) {
    const about = `list-${device.viewport.width}-${theme}`;
    await look.page.emulateMedia({ colorScheme: theme });
    await screenshot(look.page, about);
    await doesNotScrollSideways(look.page, about);
    await isAccessible(look.page, about);
    await isLegible(look.page, about);
  }
  assert.deepEqual(await violations(look.page), [], `the list at ${device.viewport.width}`);
  const list = await look.page.locator("#conversations").evaluate((list) => ({ scrolls: list.scrollHeight > list.clientHeight, excess: list.scrollWidth - list.clientWidth, height: list.clientHeight }));
  assert.ok(list.scrolls && list.excess === 0 && list.height >= 90, `the list does not scroll by itself: ${JSON.stringify(list)}`);

  await look.listed("Bread").hover();
  await look.button("Delete “Bread”").click();
  await screenshot(look.page, `delete-${device.viewport.width}-dark`);
  await look.page.getByRole("dialog", { name: "Delete this conversation?" }).getByRole("button", { name: "Cancel" }).click();
  await look.listed("Bread").focus();
  await look.page.keyboard.press("F2");
  await screenshot(look.page, `rename-${device.viewport.width}-dark`);
  await isAccessible(look.page, `a name at ${device.viewport.width}`);
  await look.page.keyboard.press("Escape");
  await look.page.getByRole("searchbox").fill("nothing of that kind");
  await look.page.getByText("No conversation has these words.").waitFor();
  await screenshot(look.page, `search-${device.viewport.width}-dark`);
}

/** A wide table scrolls by itself: no cell is squeezed until a word of it stands on each line. */
async function showsTables(look) {
  const table = look.words(3).locator(".table");
  const found = await table.evaluate((table) => ({
    isCut: table.getBoundingClientRect().right > innerWidth,
    scrolls: table.scrollWidth > table.clientWidth,
    lines: Math.max(...[...table.querySelectorAll("td")].map((cell) => cell.getBoundingClientRect().height / parseFloat(getComputedStyle(cell).lineHeight))),
  }));
  assert.equal(found.isCut, false, "a table is wider than the page");
  assert.ok(found.scrolls || look.page.viewportSize().width > 800, "a wide table does not scroll");
  assert.ok(found.lines < 3, `a cell has ${found.lines} lines`);
}

/** Lists, quotes and tables begin where their language does, and code at the left. */
async function readsFromTheRight(look) {
  const directions = await look.words(4).evaluate((words) =>
    ["p", "ul", "blockquote", "table", ".code"].map((name) => getComputedStyle(words.querySelector(name)).direction),
  );
  assert.deepEqual(directions, ["rtl", "rtl", "rtl", "rtl", "ltr"]);
  assert.equal(await look.words(3).locator("ol").evaluate((list) => getComputedStyle(list).direction), "ltr");
}

/** The menu of commands is on the page, also on a low one. */
async function showsTheMenu(look, device) {
  await look.input.focus();
  await look.page.keyboard.type("/");
  const menu = look.page.getByRole("listbox", { name: "Commands" });
  await menu.waitFor();
  const { x, y, width, height } = await menu.boundingBox();
  const isInside = x >= 0 && y >= 0 && x + width <= device.viewport.width && y + height <= device.viewport.height;
  assert.ok(isInside, `the menu is off the page: ${JSON.stringify({ x, y, width, height })}`);
  for (const theme of ["light", "dark"]) {
    await look.page.emulateMedia({ colorScheme: theme });
    await screenshot(look.page, `menu-${device.viewport.width}-${theme}`);
    await isLegible(look.page, `the menu, ${theme}`);
  }
  await look.input.fill("");
}

async function doesNotScrollSideways(page, about) {
  const wide = await page.evaluate(() =>
    [document.documentElement, document.querySelector("#conversation")].map((element) => element.scrollWidth - element.clientWidth),
  );
  assert.ok(wide.every((excess) => excess <= 0), `${about} scrolls sideways by ${wide}`);
  const high = await page.evaluate(() => document.body.scrollHeight - innerHeight);
  assert.ok(high <= 0, `${about} scrolls as a whole, by ${high}`);
}

/** Every control has a name, the page has its landmarks, and there is something that reads out what is new. */
async function isAccessible(page, about) {
  const found = await page.evaluate(() => {
    const nameOf = (control) =>
      control.getAttribute("aria-label") ||
      [...(control.labels ?? [])].map((label) => label.textContent).join(" ") ||
      control.textContent;
    const controls = [...document.querySelectorAll("button, input, textarea, select, a[href]")].filter((control) => control.checkVisibility());
    return {
      lang: document.documentElement.lang,
      nameless: controls.filter((control) => !nameOf(control).trim()).map((control) => control.outerHTML),
      // A finger needs 44 pixels. Links in a sentence are as high as it is.
      small: controls
        .filter((control) => !control.disabled && !control.matches("a"))
        .filter((control) => !(control.matches(".quiet-button, .copy, .small-button") && matchMedia("(pointer: fine)").matches))
        .filter((control) => {
          const { width, height } = control.getBoundingClientRect();
          return Math.min(width, height) < (matchMedia("(pointer: coarse)").matches ? 44 : 40);
        })
        .map((control) => control.outerHTML),
      landmarks: ["header", "main", "footer", "h1"].filter((landmark) => !document.querySelector(landmark)),
      alive: document.querySelectorAll("[aria-live=polite]").length,
      described: [...document.querySelectorAll("[aria-describedby], [aria-labelledby]")]
        .flatMap((element) => `${element.getAttribute("aria-describedby") ?? ""} ${element.getAttribute("aria-labelledby") ?? ""}`.split(/\s+/))
        .filter((id) => id && !document.getElementById(id)),
    };
  });
  assert.deepEqual(found, { lang: "en", nameless: [], small: [], landmarks: [], alive: 1, described: [] }, about);
}

/** Every piece of text stands out from what is behind it, as WCAG 2.2 has it for AA (1.4.3). */
async function isLegible(page, about) {
  const pale = await page.evaluate(() => {
    const channels = (color) => color.match(/[\d.]+/g).map(Number);
    const luminance = (color) => {
      const [red, green, blue] = channels(color).map((value) => {
        const share = value / 255;
        return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
      });
      return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    };
    const behind = (element) => {
      const { backgroundColor } = getComputedStyle(element);
      const isOpaque = (channels(backgroundColor)[3] ?? 1) === 1;
      return isOpaque || !element.parentElement ? backgroundColor : behind(element.parentElement);
    };
    const pale = [];
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let text = texts.nextNode(); text; text = texts.nextNode()) {
      const element = text.parentElement;
      if (!text.data.trim() || !element.checkVisibility() || element.closest(":disabled, script, style, noscript")) continue;
      const pair = [luminance(getComputedStyle(element).color), luminance(behind(element))].sort((a, b) => b - a);
      const contrast = (pair[0] + 0.05) / (pair[1] + 0.05);
      if (contrast < 4.5) pale.push(`${contrast.toFixed(2)}: ${text.data.trim().slice(0, 40)}`);
    }
    return pale;
  });
  assert.deepEqual(pale, [], `${about} is hard to read`);
}
