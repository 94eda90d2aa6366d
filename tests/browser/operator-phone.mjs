// The operator's page on a phone: what matters is on the first screen, and once. There are five turns that an agent answered.

import { assert, counts, eventually, reads, screenshot, url, visit } from "./browser.mjs";
import { isLoaded, operator } from "./operator.mjs";

const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true };

/** Notes where each text is drawn on a canvas: its ends, and how wide the canvas is. */
const NOTES = `
  window.drawn = [];
  const { fillText } = CanvasRenderingContext2D.prototype;
  CanvasRenderingContext2D.prototype.fillText = function (text, x, ...rest) {
    const { width } = this.measureText(text);
    const left = x - { right: width, end: width, center: width / 2 }[this.textAlign] || x;
    window.drawn.push({ text, left: Math.round(left), right: Math.round(left + width), canvas: this.canvas.width });
    fillText.call(this, text, x, ...rest);
  };`;

await visit(async (browser) => {
  const ada = await operator(browser, { ...PHONE, path: "/admin/turns", scripts: [NOTES] });
  await showsThreeTurns(ada);
  await foldsTheFilters(ada);
  await saysWhatWaits(ada);
  await drawsWholeLabels(ada);
  await ada.leaves();
});

async function showsThreeTurns({ page }) {
  await isLoaded(page);
  const bar = (await page.locator("#nav").boundingBox()).y;
  const ends = await page.locator("tbody tr").evaluateAll((rows) => rows.map((row) => row.getBoundingClientRect().bottom));
  assert.ok(ends.filter((end) => end <= bar).length >= 3, `the rows end at ${ends}, the bar begins at ${bar}`);
}

async function foldsTheFilters({ page }) {
  const person = page.getByLabel("Person", { exact: true });
  assert.equal(await person.isVisible(), false, "the filters stand open");
  await page.getByRole("button", { name: "Filter", exact: true }).click();
  await person.fill("nobody of that name");
  await page.getByText("No turn matches.").waitFor();
  await page.getByRole("button", { name: "Filter (1)" }).waitFor();
  await person.fill("");
  await eventually("all are listed again", () => page.locator("tbody tr").count(), (count) => count >= 5);
}

/** One turn waits to be sent again, after eight attempts. */
async function saysWhatWaits({ page }) {
  const claimed = { state: "claimed", status: "accepted", owed: true, ended_at: null, why: "it cannot be sent: 502 Bad Gateway" };
  await page.route("**/admin/api/turns?*", async (route) => {
    const answer = await (await route.fetch()).json();
    Object.assign(answer.items[0], claimed);
    await route.fulfill({ json: answer });
  });
  await page.route(/\/admin\/api\/turns\/[^/]+$/, async (route) => {
    const answer = await (await route.fetch()).json();
    const at = answer.accepted_at;
    const attempts = Array.from({ length: 8 }, (_, index) => ({ number: index + 1, started_at: at, ended_at: at, result: "unknown", detail: "502 Bad Gateway" }));
    Object.assign(answer, claimed, { why: undefined });
    Object.assign(answer.deliveries[0], { state: "parked", attempts });
    await route.fulfill({ json: answer });
  });
  await page.goto(`${url}/admin/turns`);
  await isLoaded(page);
  const first = page.locator("tbody tr").first();
  await reads(first.locator(".badge"), "Waits to be sent");
  await first.getByText("It cannot be sent: 502 Bad Gateway").waitFor();
  await first.locator("a").click();
  await reads(page.locator(".heading .badge"), "Waits to be sent");
  await page.locator("summary", { hasText: "Attempts (8)" }).waitFor();
  await counts(page.getByText("502 Bad Gateway").and(page.locator(":visible")), 0);
  await page.locator("summary", { hasText: "Attempts (8)" }).click();
  await counts(page.getByText("502 Bad Gateway").and(page.locator(":visible")), 8);
  const times = await page.locator(".timeline time").evaluateAll((all) => all.map((time) => ({ text: time.textContent, lines: time.getClientRects().length })));
  assert.ok(times.every(({ text, lines }) => /^\d\d:\d\d:\d\d[.,]\d\d\d$/.test(text) && lines === 1), JSON.stringify(times));
  await screenshot(page, "operator-phone-turn");
  await page.unrouteAll();
}

/** Somebody waited for almost six minutes. */
async function drawsWholeLabels({ page }) {
  await page.route("**/admin/api/overview", async (route) => {
    const answer = await (await route.fetch()).json();
    for (const interval of answer.intervals) Object.assign(interval, { p50_ms: 100_000, p95_ms: 354_000, turns: 123_456 });
    Object.assign(answer.day, { signals: 5, p50_ms: 100_000, p95_ms: 354_000 });
    await route.fulfill({ json: answer });
  });
  for (const width of [390, 1280]) {
    await page.setViewportSize({ width, height: 844 });
    await page.goto(`${url}/admin`);
    await isLoaded(page);
    const drawn = await eventually("the charts are drawn", () => page.evaluate(() => window.drawn), (texts) => texts.some(({ text }) => / min$/.test(text)));
    await screenshot(page, `operator-charts-${width}`, { fullPage: true });
    const cut = drawn.filter(({ left, right, canvas }) => left < 0 || right > canvas);
    assert.deepEqual(cut, [], "a label is cut");
    assert.ok(drawn.every(({ text }) => text.length < 9), JSON.stringify(drawn));
  }
}
