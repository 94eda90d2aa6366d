// Formulas, footnotes, code, tables and diagrams of an answer: on a phone and a desktop, by day and by night, in two languages.

import { axe, violations } from "./axe.mjs";
import { assert, counts, eventually, reads, screenshot, visit, visitor } from "./browser.mjs";

const PHONE = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, hasTouch: true, isMobile: true };
const DESKTOP = { viewport: { width: 1280, height: 800 } };

await visit(async (browser) => {
  const ada = await visitor(browser, { ...DESKTOP, scripts: [axe], permissions: ["clipboard-read", "clipboard-write"] });
  await ada.isConnected();
  await ada.says("Hello.");
  await reads(ada.words(0), "Hello.");
  assert.deepEqual(await loadedLater(ada.page), [], "a plain answer costs nothing");
  await ada.says("Explain it.");
  const words = ada.words(1);
  await words.locator(".code .k").first().waitFor();
  await showsFormulas(words);
  await showsNotes(ada, words);
  await coloursCode(ada, words);
  const storageState = await ada.page.context().storageState();
  await ada.leaves();

  for (const device of [PHONE, DESKTOP]) {
    const look = await visitor(browser, { ...device, storageState, scripts: [axe] });
    await look.isConnected();
    await look.words(1).locator(".code .k").first().waitFor();
    await scrollsByItself(look, device === PHONE);
    for (const colorScheme of ["light", "dark"]) {
      await look.page.emulateMedia({ colorScheme });
      await look.words(1).evaluate((words) => words.scrollIntoView());
      await screenshot(look.page, `rich-${device.viewport.width}-${colorScheme}`);
      assert.deepEqual(await violations(look.page), [], `${device.viewport.width}, ${colorScheme}`);
    }
    await look.leaves();
  }

  const eva = await visitor(browser, { locale: "de-AT", storageState });
  await reads(eva.state, "Verbunden");
  const named = (name) => eva.turn(1).locator(`[aria-label="${name}"]`);
  for (const name of ["Tabelle", "Fußnoten", "Fußnote 1"]) await counts(named(name), 1);
  await counts(named("Formel"), 2);
  await eva.leaves();
});

/** The scripts and style sheets that are loaded when an answer needs them. */
function loadedLater(page) {
  return page.evaluate(() => performance.getEntriesByType("resource").map(({ name }) => name).filter((name) => /\/(rich|code|work)\.(js|css)/.test(name)));
}

async function showsFormulas(words) {
  const formulas = await words.locator("math").evaluateAll((all) =>
    all.map((math) => ({ text: math.textContent, isMath: math.namespaceURI.endsWith("MathML"), isBlock: getComputedStyle(math).display === "block math", isSeen: math.getBoundingClientRect().width > 0 })),
  );
  assert.deepEqual(formulas.map(({ text }) => text).slice(0, 2), ["E=mc2", "x1"]);
  assert.deepEqual(formulas.map(({ isBlock }) => isBlock), [false, false, true, true]);
  assert.ok(formulas.every(({ isMath, isSeen }) => isMath && isSeen), JSON.stringify(formulas));
  const cells = await words.locator("mtd").evaluateAll((all) => all.map((cell) => cell.getBoundingClientRect()).map(({ left, top }) => [Math.round(left), Math.round(top)]));
  assert.equal(cells.length, 4);
  assert.ok(cells[0][1] === cells[1][1] && cells[0][0] === cells[2][0] && cells[0][0] < cells[1][0] && cells[0][1] < cells[2][1], `a matrix has rows and columns: ${cells}`);
  const text = await words.innerText();
  for (const plain of ["costs $5, or $6 with tea", "This stays: $\\nosuch{x}$."]) assert.ok(text.includes(plain), `${plain}: ${text}`);
}

/** To the note and back, with the keyboard. */
async function showsNotes(ada, words) {
  const reference = words.locator("[role=doc-noteref]");
  const note = words.locator("[role=doc-backlink]");
  assert.deepEqual([await reference.getAttribute("aria-label"), await note.getAttribute("aria-label")], ["Footnote 1", "Back to footnote 1 in the text"]);
  assert.equal((await words.locator(".notes > li").innerText()).replace(/\s+/g, " "), "1 See Einstein, 1905.");
  const target = () => ada.page.evaluate(() => Object.keys(document.querySelector(":target")?.dataset ?? {}));
  await reference.focus();
  await ada.page.keyboard.press("Enter");
  await eventually("the note is found", target, (names) => names[0] === "note");
  await note.focus();
  await ada.page.keyboard.press("Enter");
  await eventually("the text is found again", target, (names) => names[0] === "ref");
}

async function coloursCode(ada, words) {
  const code = words.locator(".code").first();
  assert.deepEqual(await code.locator(".k").allInnerTexts(), ["def", "return"]);
  assert.deepEqual(await code.locator(".c").count(), 1);
  const colours = await code.evaluate((figure) => [...new Set(["code", ".k", ".c", ".n"].map((name) => getComputedStyle(figure.querySelector(name)).color))]);
  assert.equal(colours.length, 4, `each kind has its colour: ${colours}`);
  await code.getByRole("button").click();
  await reads(code.getByRole("button"), "Copied");
  assert.ok((await ada.page.evaluate(() => navigator.clipboard.readText())).startsWith("def area(r):"));
  // Not of a language that is known.
  await counts(words.locator(".code").nth(1).locator("span[class]"), 0);
}

/** What is too wide scrolls by itself, with the keyboard, too; the page does not. */
async function scrollsByItself({ page }, isNarrow) {
  const found = await page.locator("#turns > li").nth(1).evaluate((turn) =>
    [...turn.querySelectorAll(".formula, .code pre, .table")].map((one) => ({
      name: one.className || one.tagName,
      scrolls: one.scrollWidth > one.clientWidth,
      isCut: one.getBoundingClientRect().right > innerWidth,
      isReached: one.tabIndex === 0,
    })),
  );
  assert.equal(found.length, 5);
  assert.ok(found.every(({ isCut, isReached }) => !isCut && isReached), JSON.stringify(found));
  const wide = found.filter(({ scrolls }) => scrolls).map(({ name }) => name);
  if (isNarrow) assert.deepEqual(wide, ["formula", "PRE", "PRE", "table"], JSON.stringify(found));
  const excess = await page.evaluate(() => [document.documentElement, document.querySelector("#conversation")].map((one) => one.scrollWidth - one.clientWidth));
  assert.ok(excess.every((pixels) => pixels <= 0), `the page scrolls sideways by ${excess}`);
}
