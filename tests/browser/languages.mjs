// The page speaks the language of the browser, and a failure can be tried again later. The agent fails at the first question for the
// status.

import { assert, counts, eventually, reads, screenshot, url, visit, visitor } from "./browser.mjs";

await visit(async (browser) => {
  await hasAllWords(browser);
  const ada = await visitor(browser, { locale: "de-AT" });
  await reads(ada.state, "Verbunden");
  await isGerman(ada);
  await triesAgainLater(ada);
  await ada.leaves();
  const eva = await visitor(browser, { locale: "es-MX" });
  await reads(eva.state, "Conectado");
  await eva.leaves();
  const lea = await visitor(browser, { locale: "fr-FR" });
  await reads(lea.state, "Connected");
  await lea.leaves();
});

/** Whatever the page says is in the table, in each language. */
async function hasAllWords(browser) {
  const bob = await visitor(browser);
  const missing = await bob.page.evaluate(async () => {
    const { WORDS } = await import("/chat/assets/words.js");
    // What is loaded when it is used.
    for (const name of ["actions", "found", "help"]) await import(`/chat/assets/${name}.js`);
    const files = [...new Set(performance.getEntriesByType("resource").map(({ name }) => name).filter((name) => name.endsWith(".js")))];
    const sources = await Promise.all(files.map(async (name) => (await fetch(name)).text()));
    const said = sources.flatMap((source) => [...source.matchAll(/inWords\("([^"]+)"/g)].map(([, text]) => text));
    const attributes = [...document.querySelectorAll("*")].flatMap((one) => ["aria-label", "title", "placeholder"].map((name) => one.getAttribute(name)));
    const texts = [...document.querySelectorAll("body *:not(script, style, kbd, #title, #greeting-text, #list-full, .listed *, noscript)")].flatMap((one) => [...one.childNodes].filter(({ nodeType }) => nodeType === Node.TEXT_NODE).map(({ data }) => data.trim()));
    const isLetters = (text) => text && /\p{L}/u.test(text);
    return {
      unknown: [...said, ...attributes, ...texts].filter(isLetters).filter((text) => !WORDS[text]),
      short: Object.entries(WORDS).filter(([, others]) => others.length !== 2 || !others.every(Boolean)).map(([text]) => text),
      gaps: Object.entries(WORDS).filter(([text, others]) => others.some((other) => String(other.match(/\{\w+\}/g)?.sort()) !== String(text.match(/\{\w+\}/g)?.sort()))).map(([text]) => text),
      count: said.length,
    };
  });
  assert.ok(missing.count > 50, `only ${missing.count} texts are found`);
  assert.deepEqual({ ...missing, count: 0 }, { unknown: [], short: [], gaps: [], count: 0 });
  await bob.leaves();
}

async function isGerman({ page }) {
  assert.equal(await page.evaluate(() => document.documentElement.lang), "de");
  const english = await page.evaluate(async () => {
    const { WORDS } = await import("/chat/assets/words.js");
    const texts = [...document.querySelectorAll("body *")].flatMap((one) => [one.getAttribute("aria-label"), one.title, one.placeholder, ...[...one.childNodes].map(({ data }) => data?.trim())]);
    return texts.filter((text) => WORDS[text] && !WORDS[text].includes(text));
  });
  assert.deepEqual(english, []);
}

/** The offer stays after something else was said, until the same words were said again. */
async function triesAgainLater(ada) {
  const says = async (words) => {
    await ada.page.getByLabel("Nachricht", { exact: true }).fill(words);
    await ada.page.keyboard.press("Enter");
  };
  const answer = (index) => ada.turn(index).locator(".answer .words");
  const again = ada.turn(0).getByRole("button", { name: "Nochmals versuchen" });
  await says("What is the status?");
  await again.waitFor();
  await ada.turn(0).getByText("Das Gateway, nicht der Agent").waitFor();
  await says("Hello.");
  await reads(answer(1), "Hello, Ada.");
  await screenshot(ada.page, "chat-german");
  await isGerman(ada);
  await again.click();
  await reads(answer(2), "All is well.");
  await counts(ada.button("Nochmals versuchen"), 0);
}
