// Who speaks, and when; and another try when the agent has failed. The agent fails at the first question for the status.

import { axe, violations } from "./axe.mjs";
import { assert, counts, reads, visit, visitor } from "./browser.mjs";

const GATEWAY = "The gateway, not the agent";
const SORRY = "Sorry, I could not finish that. Please try again.";

await visit(async (browser) => {
  const ada = await visitor(browser, { scripts: [axe] });
  await ada.isConnected();
  await ada.page.evaluate(() => {
    window.announced = [];
    const announcer = document.querySelector("[aria-live=polite]");
    new MutationObserver(() => window.announced.push(announcer.textContent)).observe(announcer, { childList: true, characterData: true, subtree: true });
  });
  await isAnswered(ada);
  await isNotAnswered(ada);
  await triesAgain(ada);
  await edits(ada);
  await dropsAFile(ada);
  await ada.leaves();
});

function said(ada, index) {
  return ada.turn(index).getByRole("group", { name: "You" });
}

async function isAnswered(ada) {
  await ada.says("Hello.");
  await reads(ada.words(0), "Hello, Ada.");
  await reads(ada.voice(0), "main");
  for (const time of [said(ada, 0).locator("time"), ada.answer(0).locator("time")]) {
    const at = Date.parse(await time.getAttribute("datetime"));
    assert.ok(Math.abs(Date.now() - at) < 60_000, `not now: ${at}`);
    assert.match(await time.innerText(), /\d\d:\d\d$/);
  }
  await ada.page.getByRole("separator").getByText("Today").waitFor();
  await counts(ada.button("Try again"), 0);
}

async function isNotAnswered(ada) {
  await ada.says("What is the status?");
  await reads(ada.words(1), SORRY);
  await reads(ada.voice(1), GATEWAY);
  await counts(ada.answer(1).getByRole("button", { name: "Copy" }), 0);
  const look = (index) => ada.answer(index).evaluate((answer) => {
    const { backgroundColor, borderStyle } = getComputedStyle(answer);
    return { backgroundColor, borderStyle, icons: answer.querySelectorAll(".speaker svg").length };
  });
  const [answer, fallback] = [await look(0), await look(1)];
  assert.notEqual(fallback.backgroundColor, answer.backgroundColor, "a fallback looks like an answer");
  assert.deepEqual([answer.icons, fallback.icons], [0, 1]);
  await counts(ada.button("Edit"), 1);

  const announced = await ada.page.evaluate(() => window.announced);
  assert.deepEqual(announced, ["main: Hello, Ada.", `${GATEWAY}: ${SORRY}`], "each answer is announced once, with who speaks");
}

async function triesAgain(ada) {
  await ada.answer(1).getByRole("button", { name: "Try again" }).click();
  await reads(ada.words(1), "All is well.");
  await reads(said(ada, 1).locator(".words"), "What is the status?");
  await reads(ada.voice(1), "main");
  await counts(ada.button("Try again"), 0);
  await counts(ada.button("Answer again"), 1);
  await counts(ada.turns, 2);
  await looksAtVersions(ada, "1 of 2", SORRY, "All is well.");
  assert.deepEqual(await violations(ada.page), [], "versions");
}

/** The version before the last one, and the last one again, with keys. */
async function looksAtVersions(ada, place, before, last) {
  const versions = ada.turn(1).getByRole("group", { name: "Versions" });
  await versions.getByRole("button", { name: "Previous version" }).focus();
  await ada.page.keyboard.press("Enter");
  await versions.getByText(place, { exact: true }).waitFor();
  await reads(ada.words(1), before);
  await ada.turn(1).getByText("An earlier version. The agent goes on from the last one.").waitFor();
  const act = await ada.page.evaluate(() => document.activeElement.dataset.act);
  assert.ok(["before", "after"].includes(act), "the focus is lost");
  await versions.getByRole("button", { name: "Next version" }).focus();
  await ada.page.keyboard.press("Enter");
  await reads(ada.words(1), last);
  await counts(ada.turns, 2);
}

async function edits(ada) {
  const note = ada.page.getByText("The new version takes its place, and the old one can still be read.");
  await ada.input.fill("By the way");
  await said(ada, 1).getByRole("button", { name: "Edit" }).click();
  assert.equal(await ada.input.inputValue(), "What is the status?");
  await note.waitFor();
  await ada.page.keyboard.press("Escape");
  await note.waitFor({ state: "hidden" });
  assert.equal(await ada.input.inputValue(), "By the way");

  await ada.button("Edit").click();
  await ada.page.keyboard.type(" Of the pump?");
  await ada.page.keyboard.press("Enter");
  await reads(ada.words(1), "It runs.");
  await reads(said(ada, 1).locator(".words"), "What is the status? Of the pump?");
  await looksAtVersions(ada, "2 of 3", "All is well.", "It runs.");
  await note.waitFor({ state: "hidden" });
  assert.equal(await ada.input.inputValue(), "By the way", "what was begun is lost");
  await counts(ada.turns, 2);
  await ada.page.reload();
  await ada.isConnected();
  await ada.turn(1).getByText("3 of 3", { exact: true }).waitFor();
  await ada.input.fill("By the way");
}

/** The browser would open it in place of the page. */
async function dropsAFile(ada) {
  const before = ada.page.url();
  const drag = { x: 300, y: 200, data: { items: [], files: [process.argv[1]], dragOperationsMask: 1 } };
  const browser = await ada.page.context().newCDPSession(ada.page);
  for (const type of ["dragEnter", "dragOver", "drop"]) await browser.send("Input.dispatchDragEvent", { type, ...drag });
  await ada.button("Remove voices.mjs").click();
  await counts(ada.page.getByRole("list", { name: "Files to send" }), 0);
  assert.equal(ada.page.url(), before);
  assert.equal(await ada.input.inputValue(), "By the way");
}
