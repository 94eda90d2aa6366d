// The page speaks the language of the browser, and a failure can be tried again later. The agent fails at the first question for the
// status.

import { assert, counts, eventually, reads, screenshot, url, visit, visitor } from "./browser.mjs";

/** The scripts with words that are loaded when they are used. */
const LATER = ["actions", "app", "attached", "copy", "dialogs", "found", "help", "menu", "recorder", "rich", "sign-in", "upload", "work"];

await visit(async (browser) => {
  const said = await allWords(browser);
  const ada = await visitor(browser, { locale: "de-AT" });
  await reads(ada.state, "Verbunden");
  await isGerman(ada);
  const inGerman = await translated(ada, said);
  await triesAgainLater(ada);
  await ada.leaves();
  const eva = await visitor(browser, { locale: "es-MX" });
  await reads(eva.state, "Conectado");
  assert.deepEqual(await translated(eva, said), inGerman);
  await eva.leaves();
  const lea = await visitor(browser, { locale: "fr-FR" });
  await reads(lea.state, "Connected");
  await lea.leaves();
});

/** Whatever the page says, in English. */
async function allWords(browser) {
  const bob = await visitor(browser);
  const { said, shown } = await bob.page.evaluate(async (later) => {
    for (const name of later) await import(`/chat/assets/${name}.js`);
    const files = [...new Set(performance.getEntriesByType("resource").map(({ name }) => name).filter((name) => name.endsWith(".js")))];
    const sources = await Promise.all(files.map(async (name) => (await fetch(name)).text()));
    const said = sources.flatMap((source) => [...source.matchAll(/inWords\("([^"]+)"/g)].map(([, text]) => text));
    const attributes = [...document.querySelectorAll("*")].flatMap((one) => ["aria-label", "title", "placeholder"].map((name) => one.getAttribute(name)));
    const texts = [...document.querySelectorAll("body *:not(script, style, kbd, #title, #greeting-text, #list-full, .listed *, noscript)")].flatMap((one) => [...one.childNodes].filter(({ nodeType }) => nodeType === Node.TEXT_NODE).map(({ data }) => data.trim()));
    const isLetters = (text) => text && /\p{L}/u.test(text);
    return { said, shown: [...attributes, ...texts].filter(isLetters) };
  }, LATER);
  assert.ok(said.length > 150, `only ${said.length} texts are found`);
  await bob.leaves();
  return [...new Set([...said, ...shown])];
}

/** All that is said is in the visitor's language. Returns the English texts of which this is known. */
async function translated({ page }, said) {
  const found = await page.evaluate(async ({ said, later }) => {
    const { WORDS } = await import("/chat/assets/words.js");
    for (const name of later) await import(`/chat/assets/${name}.js`);
    const gaps = (text) => String(text.match(/\{\w+\}/g)?.sort());
    return {
      unknown: said.filter((text) => !WORDS[text]),
      gaps: Object.entries(WORDS).filter(([text, other]) => gaps(text) !== gaps(other)).map(([text]) => text),
      texts: Object.keys(WORDS).sort(),
    };
  }, { said, later: LATER });
  assert.deepEqual({ ...found, texts: [] }, { unknown: [], gaps: [], texts: [] });
  return found.texts;
}

async function isGerman({ page }) {
  assert.equal(await page.evaluate(() => document.documentElement.lang), "de");
  const english = await page.evaluate(async () => {
    const { WORDS } = await import("/chat/assets/words.js");
    const texts = [...document.querySelectorAll("body *")].flatMap((one) => [one.getAttribute("aria-label"), one.title, one.placeholder, ...[...one.childNodes].map(({ data }) => data?.trim())]);
    return texts.filter((text) => WORDS[text] && WORDS[text] !== text);
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
