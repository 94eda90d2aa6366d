// What the page looks like, on a phone and a desktop, by day and by night, and for who does not look.

import { assert, counts, eventually, meet, reads, screenshot, visit, visitor } from "./browser.mjs";

const DESKTOP = { viewport: { width: 1280, height: 800 } };
const PHONE = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, hasTouch: true, isMobile: true };
const NARROW = { viewport: { width: 320, height: 568 }, deviceScaleFactor: 2, hasTouch: true, isMobile: true };

await visit(async (browser) => {
  const ada = await visitor(browser, DESKTOP);
  await ada.isConnected();
  await screenshot(ada.page, "greeting-1280-light");
  await isAccessible(ada.page, "the greeting");

  await haveDinner(ada);
  await screenshot(ada.page, "chat");
  await ada.says("And how do I set it up?");
  await reads(ada.answer(3).getByRole("heading"), "Set it up");
  await ada.says("Hm.");
  await ada.answer(4).getByRole("group", { name: "Choices" }).waitFor();
  await ada.says("Find me a table for Sunday, please.");
  await reads(ada.words(5), "Still working on this.");
  for (const device of [DESKTOP, PHONE, NARROW]) await looksWellOn(device, browser, ada);
  await meet("looked at");

  await reads(ada.words(5), "Sunday at one, by the window.");
  await eventually("the answer is read out", () => ada.page.locator("[aria-live=polite]").allInnerTexts(), (texts) =>
    texts.some((text) => text.includes("Sunday at one, by the window.")),
  );
  await counts(ada.turns, 6);
  await ada.leaves();
});

async function haveDinner(ada) {
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
  const look = await visitor(browser, { ...device, storageState });
  await look.isConnected();
  await counts(look.turns, await ada.turns.count());
  for (const what of ["end", "markdown"]) {
    if (what === "markdown") await look.answer(3).getByRole("heading").evaluate((heading) => heading.scrollIntoView());
    for (const theme of ["light", "dark"]) {
      const about = `${what}-${device.viewport.width}-${theme}`;
      await look.page.emulateMedia({ colorScheme: theme });
      await screenshot(look.page, about);
      await doesNotScrollSideways(look.page, about);
      await isAccessible(look.page, about);
      await isLegible(look.page, about);
    }
  }
  await look.leaves();
}

async function doesNotScrollSideways(page, about) {
  const wide = await page.evaluate(() =>
    [document.documentElement, document.querySelector("#conversation")].map((element) => element.scrollWidth - element.clientWidth),
  );
  assert.ok(wide.every((excess) => excess <= 0), `${about} scrolls sideways by ${wide}`);
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
      small: controls
        .filter((control) => control.matches("header button, footer button, .choice"))
        .filter((control) => control.getBoundingClientRect().width < 40 || control.getBoundingClientRect().height < 40)
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
