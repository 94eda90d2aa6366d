// "Set up Siri": the values on the page are those with which the five steps work, also for a slow answer, the QR code is the token, and
// what arrives is shown. Only an admin sees the token. The agent waits to be released.

import { createRequire } from "node:module";

import { assert, counts, eventually, meet, reads, screenshot, url, visit } from "./browser.mjs";
import { isAccessible, isLoaded, operator } from "./operator.mjs";

const jsQr = createRequire(`${process.env.REJOINDER_COUNTERPARTS}/`)("jsqr");

/** The token of the hook. */
const TOKEN = "token-of-these-tests";

const DESKTOP = { viewport: { width: 1280, height: 900 } };
const PHONE = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, hasTouch: true, isMobile: true };

await visit(async (browser) => {
  const ada = await operator(browser, { ...DESKTOP, path: "/admin/channels", permissions: ["clipboard-read", "clipboard-write"] });
  const { page } = ada;
  await ada.page.locator(".card").filter({ hasText: "webhook.test" }).getByRole("link", { name: "Set up Siri" }).click();
  await page.getByRole("heading", { name: "Set up Siri", level: 1 }).waitFor();
  await counts(page.locator(".steps > li"), 5);
  await looks(page, "hidden", DESKTOP);
  await showsTheToken(ada);
  await hasAllWords(page);
  await speaksLanguages(page);
  await isUnderstoodWhenRefused(page);
  await asksAsThePageSays(page);
  await looks(page, "arrived", DESKTOP);
  await isForAdminsOnly(browser, page);
  await ada.leaves();
});

async function looks(page, what, { viewport: { width } }) {
  await isLoaded(page);
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    await isAccessible(page, `${what}, ${width}, ${colorScheme}`);
    await screenshot(page, `operator-siri-${what}-${width}-${colorScheme}`, { fullPage: true });
  }
}

/** The values of a place of the page, by their names. */
async function values(place) {
  const pairs = await place.locator(".facts > div").evaluateAll((all) => all.map((one) => [one.querySelector("dt"), one.querySelector("dd code") ?? one.querySelector("dd")].map(({ textContent }) => textContent)));
  return Object.fromEntries(pairs);
}

async function showsTheToken(ada) {
  const { page } = ada;
  assert.ok(!(await page.content()).includes(TOKEN), "the token is on the page before it was asked for");
  await ada.button("Show the token").click();
  const code = page.getByRole("img", { name: "QR code of the value of Authorization" });
  await code.waitFor();
  const { data, width, height } = await code.evaluate(async (image) => {
    await image.decode();
    const canvas = Object.assign(document.createElement("canvas"), { width: image.naturalWidth, height: image.naturalHeight });
    const drawn = canvas.getContext("2d");
    drawn.drawImage(image, 0, 0);
    return { data: [...drawn.getImageData(0, 0, canvas.width, canvas.height).data], width: canvas.width, height: canvas.height };
  });
  const { data: scanned } = jsQr(Uint8ClampedArray.from(data), width, height);
  const shown = await values(page.locator(".card").first());
  assert.deepEqual([scanned, shown["Header Authorization"]], [`Bearer ${TOKEN}`, `Bearer ${TOKEN}`]);
  await page.locator(".card").first().getByRole("button", { name: "Copy Header Authorization" }).click();
  await eventually("it is in the clipboard", () => page.evaluate(() => navigator.clipboard.readText()), (text) => text === scanned);
}

/** Whatever the page says is in the table, in each language. */
async function hasAllWords(page) {
  const missing = await page.evaluate(async () => {
    const { WORDS } = await import("/admin/assets/siri-words.js");
    const source = await (await fetch("/admin/assets/siri.js")).text();
    const said = [...source.matchAll(/(?:say|step|: |\? )\(?"([A-Z][^"]+)"/g)].map(([, text]) => text).filter((text) => !["URL", "POST", "GET", "JSON", "Prefer", "Accept", "Authorization"].includes(text));
    const gaps = (text) => String(text.match(/\{\w+\}/g)?.sort());
    return {
      unknown: said.filter((text) => !WORDS[text]),
      short: Object.entries(WORDS).filter(([text, others]) => others.length !== 2 || !others.every((other) => other && gaps(other) === gaps(text))).map(([text]) => text),
      count: said.length,
    };
  });
  assert.ok(missing.count > 40, `only ${missing.count} texts are found`);
  assert.deepEqual({ ...missing, count: 0 }, { unknown: [], short: [], count: 0 });
}

/** The language is that of the phone: it can be chosen, and stays in the address. */
async function speaksLanguages(page) {
  for (const [language, title, first] of [["de", "Siri einrichten", "Text diktieren (Dictate Text)"], ["es", "Configurar Siri", "Dictar texto (Dictate Text)"]]) {
    await page.locator("select[name=language]").selectOption(language);
    await page.getByRole("heading", { name: title, level: 1 }).waitFor();
    await reads(page.locator(".steps > li").first(), first);
    await page.setViewportSize(PHONE.viewport);
    await looks(page, language, PHONE);
    await page.setViewportSize(DESKTOP.viewport);
    await reads(page.locator("select[name=language] option:checked"), { de: "Deutsch", es: "Español" }[language]);
  }
  assert.equal(page.url(), `${url}/admin/siri/test?language=es`);
  await page.locator("select[name=language]").selectOption("en");
  await page.getByRole("heading", { name: "Set up Siri", level: 1 }).waitFor();
  await reads(page.locator(".steps > li").first(), "Dictate Text");
}

/** What a caller hears as an error, the operator sees with what to do about it. */
async function isUnderstoodWhenRefused(page) {
  await page.getByText("Nothing has arrived since the gateway started.").waitFor();
  const refused = await fetch(`${url}/hooks/test`, { method: "POST", headers: { Authorization: "Bearer a-guess", "User-Agent": "Shortcuts" }, body: "{}" });
  assert.equal(refused.status, 401);
  const call = page.locator(".calls > li").first();
  await reads(call.locator(".badge"), "Refused (401)");
  await call.getByText("compare the header Authorization").waitFor();
  assert.equal((await values(call)).From, "Shortcuts");
}

/** Does what the page says, as the app Shortcuts would: it knows no status and no header of an answer. */
async function asksAsThePageSays(page) {
  const steps = page.locator(".steps > li");
  const [ask, repeat] = [await values(steps.nth(1)), await values(steps.nth(2))];
  const header = (all, name) => [name, all[`Header ${name}`]];
  assert.deepEqual([ask.Method, ask["Request Body"], repeat.Method], ["POST", "JSON", "GET"]);

  const headers = Object.fromEntries([header(ask, "Authorization"), header(ask, "Prefer"), ["Content-Type", "application/json"]]);
  const asked = await (await fetch(ask.URL, { method: ask.Method, headers, body: JSON.stringify({ message: "What can you do?" }) })).json();
  const call = page.locator(".calls > li").first();
  await call.getByText("What can you do?").waitFor();
  await reads(call.locator(".badge"), "Arrived");
  assert.equal((await values(call)).Answer, "Not yet");
  await meet("asked");

  const results = [];
  for (let count = 0; count < Number(repeat["How often"]); count += 1) {
    const again = Object.fromEntries(["Authorization", "Accept", "Prefer"].map((name) => header(repeat, name)));
    results.push(await (await fetch(asked[repeat.Key], { headers: again })).text());
  }
  assert.equal(results.at(-1), "I can answer.");
  await call.getByText("I can answer.").waitFor();
  await call.getByRole("link", { name: "The whole turn" }).waitFor();
}

async function isForAdminsOnly(browser, page) {
  const token = await page.evaluate(async () => {
    const made = await fetch("/admin/api/tokens", { method: "POST", headers: { "Content-Type": "application/json" }, body: '{"role":"operator"}' });
    return (await made.json()).token;
  });
  const grace = await operator(browser, { ...PHONE, path: "/admin/siri/test", token });
  await isLoaded(grace.page);
  await grace.page.getByText("Somebody with the role admin can show the token.").waitFor();
  await counts(grace.button("Show the token"), 0);
  await counts(grace.page.locator(".calls > li"), 2);
  await looks(grace.page, "operator", PHONE);
  await grace.leaves();
}
