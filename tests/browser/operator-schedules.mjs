// A schedule has paused itself. The operator looks at it and resumes it; makes another one, runs, pauses and removes it.

import { assert, counts, meet, reads, screenshot, url, visit } from "./browser.mjs";
import { headline, isAccessible, isLoaded, operator } from "./operator.mjs";

const DESKTOP = { width: 1280, height: 900 };
const PHONE = { width: 390, height: 844 };
const PROMPT = "Say in three sentences what is on <today>.";

await visit(async (browser) => {
  const ada = await operator(browser, { viewport: DESKTOP, tolerates: /status of 4\d\d/ });
  const { page } = ada;
  const looks = async (what) => {
    await isLoaded(page);
    for (const viewport of [PHONE, DESKTOP]) {
      await page.setViewportSize(viewport);
      const name = `operator-schedules-${what}-${viewport.width}`;
      await isAccessible(page, name);
      await screenshot(page, name, { fullPage: true });
    }
  };
  const list = page.getByRole("region", { name: "Schedules" });
  const row = (name) => list.getByRole("row").filter({ has: page.getByRole("link", { name }) });
  const dialog = (name) => page.getByRole("dialog", { name });
  const says = (words) => page.getByRole("status").getByText(words).waitFor();

  await headline(page, /^The schedule broken is paused: it failed 5 times in a row: .*grace/);
  await meet("signed in");

  await page.getByRole("link", { name: "Look at the schedule" }).click();
  await page.getByRole("heading", { name: "broken", level: 1 }).waitFor();
  await page.getByText(/^Paused: it failed 5 times in a row: /).waitFor();
  await page.getByText("It is in the configuration: change it or remove it there.").waitFor();
  await counts(ada.button("Remove"), 0);
  const history = page.getByRole("table", { name: "What became of its times" });
  await counts(history.getByRole("cell", { name: /^Nothing/ }), 5);
  await looks("broken");
  await ada.button("Resume").click();
  await dialog("Resume broken?").getByLabel("Why?").fill("She has written");
  await dialog("Resume broken?").getByRole("button", { name: "Resume" }).click();
  await says("broken goes on.");
  await ada.button("Pause").waitFor();

  await page.getByRole("link", { name: "Schedules", exact: true }).click();
  await row("broken").getByText("Active").waitFor();
  await row("broken").getByText("Every minute").waitFor();
  await ada.button("Add a schedule").click();
  const form = dialog("Add a schedule");
  const seen = (label) => form.getByLabel(label, { exact: true }).and(page.locator(":visible"));
  await form.getByLabel("Name").fill("Morning / news");
  for (const [label, count] of [["Agent", 0], ["Time", 1], ["Every", 0], ["Pattern", 0], ["Time zone", 0]]) await counts(seen(label), count);
  await form.getByLabel("For", { exact: true }).fill("nobody");
  await form.getByLabel("What").selectOption("prompt");
  await reads(form.getByLabel("Agent").locator("option"), "That of the conversation\nmain");
  await form.getByLabel("Text").fill(PROMPT);
  await form.getByLabel("When").selectOption("every");
  await form.getByLabel("Every", { exact: true }).fill("1s");
  await counts(seen("Time"), 0);
  await form.getByRole("button", { name: "Add it" }).click();
  await form.getByRole("alert").getByText("`every` must be from a minute to 366 days.").waitFor();
  await form.getByLabel("When").selectOption("cron");
  await form.getByLabel("Pattern").fill("0 8 * * MON-FRI");
  await form.getByLabel("Time zone").fill("Europe/Vienna");
  await form.getByRole("button", { name: "Add it" }).click();
  await form.getByRole("alert").getByText("Nobody who is known is nobody").waitFor();
  await isAccessible(page, "the form");
  await screenshot(page, "operator-schedules-form-1280");
  const chats = await page.evaluate(async () => (await (await fetch("/admin/api/conversations?channel=telegram.test")).json()).items);
  await form.getByLabel("For", { exact: true }).fill(`telegram.test/${chats[0].chat}`);
  await form.getByRole("button", { name: "Add it" }).click();
  await says("Morning / news is made.");

  await page.getByRole("heading", { name: "Morning / news", level: 1 }).waitFor();
  await page.getByText("At 08:00 on Monday to Friday").waitFor();
  await page.getByText(PROMPT, { exact: true }).waitFor();
  await page.getByText("None of its times has come yet.").waitFor();
  await looks("made");
  await ada.button("Run now").click();
  await dialog("Run Morning / news now?").getByRole("button", { name: "Run now" }).click();
  await says("Morning / news has begun.");
  await history.getByRole("link", { name: "Its turn" }).waitFor();
  await meet("run");
  await looks("run");
  await history.getByRole("link", { name: "Its turn" }).click();
  await page.getByRole("heading", { name: /^Turn of/ }).waitFor();

  // It is found by its name as well.
  await page.goto(`${url}/admin/schedules/${encodeURIComponent("Morning / news")}`);
  await ada.button("Pause").click();
  await dialog("Pause Morning / news?").getByLabel("Why?").fill("Holidays");
  await dialog("Pause Morning / news?").getByRole("button", { name: "Pause" }).click();
  await page.getByText("Paused: Holidays").waitFor();
  await page.getByRole("link", { name: "All schedules" }).click();
  await row("Morning / news").getByText("Holidays").waitFor();
  await looks("list");
  await page.goto(`${url}/admin`);
  await headline(page, /^Everything is answered\./);

  await page.goto(`${url}/admin/schedules`);
  await row("Morning / news").getByRole("link").first().click();
  await ada.button("Remove").click();
  await isAccessible(page, "the dialog");
  await dialog("Remove Morning / news?").getByRole("button", { name: "Remove" }).click();
  await says("Morning / news is removed.");
  await row("broken").waitFor();
  await counts(row("Morning / news"), 0);

  await page.goto(`${url}/admin/schedules/nothing`);
  await page.getByRole("alert").getByText("There is no schedule with this name.").waitFor();
  await looks("unknown");
  await page.goto(`${url}/admin/access`);
  for (const words of ["made a schedule.", "ran a schedule.", "paused a schedule: Holidays.", "removed a schedule.", "resumed a schedule: She has written."]) {
    await page.getByText(`admin ${words}`).waitFor();
  }
  await wordsOfTimes(page);
  await ada.leaves();
});

/** What patterns are in words. What the page does not know is shown as it is. */
async function wordsOfTimes(page) {
  const words = {
    "*/15 * * * *": "every 15 minutes",
    "*/7 * * * *": null,
    "0 * * * *": "every hour, at minute 0",
    "@daily": "at 00:00 every day",
    "30 7,19 * * *": "at 07:30 and 19:30 every day",
    "0 9 L * *": "at 09:00 on the last day of the month",
    "0 9 1 * *": "at 09:00 on day 1 of the month",
    "0 9 1 1 *": null,
    "5 8 * * 0,WED": "at 08:05 on Sunday and Wednesday",
    "0 8 * * MON#1": null,
  };
  const found = await page.evaluate(async (patterns) => {
    const { scheduleTimes } = await import("/admin/assets/format.js");
    return [...patterns.map((cron) => scheduleTimes({ cron })), ...["1m", "6h", "1h 30m", "168h", "24h"].map((every) => scheduleTimes({ every }))];
  }, Object.keys(words));
  assert.deepEqual(found, [...Object.values(words), "every minute", "every 6 hours", "every 1 hour and 30 minutes", "every 7 days", "every day"]);
}
