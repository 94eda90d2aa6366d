// The list of conversations: an old one is returned to, found, named and deleted; with a mouse, with keys, and in a drawer.

import { axe, violations } from "./axe.mjs";
import { assert, counts, eventually, meet, reads, visit, visitor } from "./browser.mjs";

const PHONE = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, hasTouch: true, isMobile: true };
/** A browser that stores nothing. */
const NO_STORAGE = `for (const name of ["localStorage", "sessionStorage"]) {
  Object.defineProperty(window, name, { get: () => { throw new DOMException("nothing is stored here", "SecurityError"); } });
}`;
const GREETING = "Hello. What can I do for you?";

await visit(async (browser) => {
  const ada = await visitor(browser, { scripts: [axe] });
  await ada.isConnected();
  await returnsToTheOldOne(ada);
  await findsOne(ada);
  await namesOne(ada);
  await meet("named");
  await writesInOneAndAnother(ada);
  await deletesOne(ada);
  await meet("deleted");
  await usesKeysOnly(ada);
  await pinsOne(ada);
  await opensWhatIsNoLongerKept(ada);
  await holdsTwoHundred(ada);
  await ada.leaves();
  await meet("two hundred");

  const bob = await visitor(browser, { ...PHONE, scripts: [axe] });
  await bob.isConnected();
  await usesTheDrawer(bob);
  await bob.leaves();

  const carol = await visitor(browser, { scripts: [NO_STORAGE] });
  await carol.isConnected();
  await hasNoStorage(carol);
  await carol.leaves();
});

function open(visitor, title) {
  return visitor.listed(title).click();
}

/** The conversation that is marked as the one that is open. */
function current(visitor) {
  return visitor.list.locator("[aria-current=true] .listed-title");
}

async function asks(visitor, words) {
  await visitor.says(words);
  await reads(visitor.words((await visitor.turns.count()) - 1), `answer to: ${words}`);
}

async function returnsToTheOldOne(ada) {
  assert.deepEqual(await ada.titles(), ["Unnamed conversation"]);
  await asks(ada, "What goes well with risotto?");
  await reads(current(ada), "What goes well with risotto?");
  await ada.button("New conversation").click();
  await counts(ada.turns, 0);
  await ada.page.getByText(GREETING).waitFor();
  // A new one that nothing was written in is begun once.
  await ada.button("New conversation").click();
  assert.deepEqual(await ada.titles(), ["Unnamed conversation", "What goes well with risotto?"]);

  await asks(ada, "How far is the moon?");
  assert.deepEqual(await ada.titles(), ["How far is the moon?", "What goes well with risotto?"]);
  await open(ada, "What goes well with risotto?");
  await reads(ada.words(0), "answer to: What goes well with risotto?");
  await counts(ada.turns, 1);
  // It was looked at, not used.
  assert.deepEqual(await ada.titles(), ["How far is the moon?", "What goes well with risotto?"]);
  await asks(ada, "And cheese?");
  await asks(ada, "And which wine?");
  assert.deepEqual(await ada.titles(), ["What goes well with risotto?", "How far is the moon?"]);
  assert.deepEqual(await violations(ada.page), [], "the list");

  const id = await ada.page.evaluate(() => localStorage.getItem("rejoinder:/chat:conversation"));
  assert.ok(id && !(await ada.page.content()).includes(id) && !ada.page.url().includes(id), "the page shows the key to a conversation");
}

async function findsOne(ada) {
  const search = ada.page.getByRole("searchbox", { name: "Search conversations" });
  const finds = async (words, titles) => {
    await search.fill(words);
    await eventually(`${words} is found`, () => ada.titles(), (found) => JSON.stringify(found) === JSON.stringify(titles));
  };
  await finds("MÓON", ["How far is the moon?"]);
  await finds("wine goes", ["What goes well with risotto?"]);
  // Neither said first nor last, but it was on the page.
  await finds("cheese", ["What goes well with risotto?"]);
  await finds("answer moon", ["How far is the moon?"]);
  await finds("nowhere", []);
  await ada.page.getByText("No conversation has these words.").waitFor();
  await reads(ada.page.locator("[aria-live=polite]"), "No conversations found");
  await search.press("Escape");
  assert.equal(await search.inputValue(), "");
  await eventually("all are listed", () => ada.titles(), (found) => found.length === 2);
}

async function namesOne(ada) {
  await ada.listed("How far is the moon?").hover();
  await ada.button("Rename “How far is the moon?”").click();
  const name = ada.page.getByRole("textbox", { name: "Name of “How far is the moon?”" });
  await name.fill("  Astronomy  ");
  await name.press("Enter");
  await ada.listed("Astronomy").waitFor();
  await ada.page.reload();
  await ada.isConnected();
  assert.deepEqual(await ada.titles(), ["What goes well with risotto?", "Astronomy"]);
  await reads(ada.words(2), "answer to: And which wine?");

  // What is called nothing is called by what was said first.
  for (const [words, key, title] of [["Stars", "Escape", "Astronomy"], ["", "Enter", "How far is the moon?"], ["Astronomy", "Enter", "Astronomy"]]) {
    const before = (await ada.titles())[1];
    await ada.listed(before).focus();
    await ada.page.keyboard.press("F2");
    await ada.page.keyboard.press("ControlOrMeta+A");
    await ada.page.keyboard.press("Delete");
    await ada.page.keyboard.type(words);
    await ada.page.keyboard.press(key);
    await ada.listed(title).waitFor();
    assert.equal((await ada.titles())[1], title);
  }
}

/** Words that are not sent stay in the conversation that they were written in. */
async function writesInOneAndAnother(ada) {
  await ada.input.fill("And for dess");
  await open(ada, "Astronomy");
  assert.equal(await ada.input.inputValue(), "");
  await ada.input.fill("Mars is");
  await ada.button("New conversation").click();
  assert.equal(await ada.input.inputValue(), "");
  await open(ada, "What goes well with risotto?");
  assert.equal(await ada.input.inputValue(), "And for dess");
  await ada.page.reload();
  await ada.isConnected();
  await open(ada, "Astronomy");
  assert.equal(await ada.input.inputValue(), "Mars is");
  await ada.input.fill("");

  // A copy that was not changed is given up, and what stood in the input before is there again.
  await ada.button("Edit").click();
  await open(ada, "What goes well with risotto?");
  await ada.page.getByText("You edit your message.").waitFor({ state: "hidden" });
  assert.equal(await ada.input.inputValue(), "And for dess");
  // One that was changed waits before it.
  await ada.button("Edit").click();
  await ada.input.fill("And which white wine?");
  await open(ada, "Astronomy");
  assert.equal(await ada.input.inputValue(), "");
  await open(ada, "What goes well with risotto?");
  assert.equal(await ada.input.inputValue(), "And which white wine?\nAnd for dess");
  await ada.input.fill("");
}

async function deletesOne(ada) {
  const asked = ada.page.getByRole("dialog", { name: "Delete this conversation?" });
  const asksToDelete = async (title) => {
    await ada.listed(title).hover();
    await ada.button(`Delete “${title}”`).click();
    await asked.getByText("cannot be opened here again").waitFor();
  };
  await asksToDelete("Astronomy");
  await asked.getByRole("button", { name: "Cancel" }).click();
  assert.equal((await ada.titles()).length, 2);

  // The one that is open: a new one takes its place.
  await ada.input.fill("Or no wine");
  await asksToDelete("What goes well with risotto?");
  await asked.getByRole("button", { name: "Delete" }).click();
  await counts(ada.turns, 0);
  assert.deepEqual(await ada.titles(), ["Unnamed conversation", "Astronomy"]);
  assert.equal(await ada.input.inputValue(), "");
  const stored = () => ada.page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }]));
  assert.doesNotMatch(await stored(), /risotto|wine/, "something is left");

  // Another one: the one that is open stays.
  await asks(ada, "Is anybody here?");
  await asksToDelete("Astronomy");
  await asked.getByRole("button", { name: "Delete" }).click();
  assert.deepEqual(await ada.titles(), ["Is anybody here?"]);
  assert.doesNotMatch(await stored(), /Astronomy|moon/, "something is left");
  await counts(ada.turns, 1);
  await ada.page.reload();
  await ada.isConnected();
  assert.deepEqual(await ada.titles(), ["Is anybody here?"]);
}

async function usesKeysOnly(ada) {
  const { keyboard } = ada.page;
  const focused = () => ada.page.evaluate(() => document.activeElement.querySelector(".listed-title")?.textContent ?? document.activeElement.id);
  for (const words of ["Two", "Three"]) {
    await ada.button("New conversation").focus();
    await keyboard.press("Enter");
    await keyboard.type(words);
    await keyboard.press("Enter");
    await reads(ada.words(0), `answer to: ${words}`);
  }
  await ada.page.getByRole("searchbox").focus();
  await keyboard.press("ArrowDown");
  assert.equal(await focused(), "Three");
  await keyboard.press("End");
  assert.equal(await focused(), "Is anybody here?");
  await keyboard.press("ArrowUp");
  assert.equal(await focused(), "Two");
  await keyboard.press("Enter");
  await reads(ada.words(0), "answer to: Two");
  assert.equal(await focused(), "text");

  // The list is one stop of the Tab key, with what can be done with that conversation.
  await ada.page.getByRole("searchbox").focus();
  await keyboard.press("Tab");
  assert.equal(await focused(), "Two");
  for (let stop = 0; stop < 4; stop += 1) await keyboard.press("Tab");
  assert.equal(await focused(), "forget");
  for (let stop = 0; stop < 3; stop += 1) await keyboard.press("Shift+Tab");
  await keyboard.press("Enter");
  await keyboard.press("ControlOrMeta+A");
  await keyboard.type("The second");
  await keyboard.press("Enter");
  assert.equal(await focused(), "The second");
  await keyboard.press("Delete");
  await ada.page.getByRole("dialog", { name: "Delete this conversation?" }).waitFor();
  await keyboard.press("Escape");
  assert.equal(await focused(), "The second");
  await keyboard.press("Delete");
  await ada.page.getByRole("dialog", { name: "Delete this conversation?" }).waitFor();
  await keyboard.press("Tab");
  await keyboard.press("Enter");
  await eventually("it is deleted", () => ada.titles(), (found) => !found.includes("The second"));
  assert.notEqual(await focused(), "", "the focus is lost");
}

/** What is pinned stays above what is used later, over a reload, until that is taken back. */
async function pinsOne(ada) {
  const { keyboard } = ada.page;
  const first = async (title) => eventually(`${title} is first`, () => ada.titles(), (found) => found[0] === title);
  assert.notEqual((await ada.titles())[0], "Is anybody here?");
  await ada.listed("Is anybody here?").focus();
  await keyboard.press("p");
  await first("Is anybody here?");
  await reads(ada.page.locator("[aria-live=polite]"), "“Is anybody here?” is pinned");
  await ada.button("New conversation").click();
  await asks(ada, "Four");
  await ada.page.reload();
  await ada.isConnected();
  await first("Is anybody here?");
  assert.deepEqual(await violations(ada.page), [], "a pin");
  const pin = ada.button("Pin “Is anybody here?”");
  assert.equal(await pin.getAttribute("aria-pressed"), "true");
  await pin.click();
  await first("Four");
}

/** The gateway has removed what was said: there is nothing to see, and that is no error. */
async function opensWhatIsNoLongerKept(ada) {
  await ada.page.evaluate(() => localStorage.setItem("rejoinder:/chat:conversation:abcdefghijklmnopqrstuv", JSON.stringify({ at: 1, first: "Long ago", last: "an answer" })));
  await ada.page.reload();
  await ada.isConnected();
  await open(ada, "Long ago");
  await ada.page.getByText("What was said here is no longer kept.").waitFor();
  await counts(ada.turns, 0);
  await asks(ada, "Once more");
  await ada.page.getByText("What was said here is no longer kept.").waitFor({ state: "hidden" });
}

/** What was used longest ago makes room, but not what has a name, or a message that waits. */
async function holdsTwoHundred(ada) {
  await ada.page.evaluate(() => {
    for (let number = 0; number < 200; number += 1) {
      const id = `a-conversation-of-long-ago-${number}`;
      localStorage.setItem(`rejoinder:/chat:conversation:${id}`, JSON.stringify({ at: number, first: `Talk ${number}` }));
    }
    localStorage.setItem("rejoinder:/chat:name:a-conversation-of-long-ago-0", "My first");
    const waits = { id: "a-message-that-waits", conversation: "a-conversation-of-long-ago-1", at: 1, text: "Hello" };
    localStorage.setItem("rejoinder:/chat:unsent:a-message-that-waits", JSON.stringify(waits));
    localStorage.setItem("rejoinder:/chat:unsent:rubbish", "{");
    localStorage.setItem("rejoinder:/chat:unsent:nothing", "{}");
    localStorage.setItem("rejoinder:/chat:unfinished:a-conversation-of-long-ago-2", "Half a");
  });
  await ada.page.reload();
  await ada.isConnected();
  const before = await ada.titles();
  await ada.button("New conversation").click();
  await asks(ada, "One more");
  const after = await ada.titles();
  assert.equal(after.length, 200);
  assert.deepEqual(after.slice(-3), ["Talk 2", "Talk 1", "My first"]);
  const gone = before.filter((title) => !after.includes(title));
  assert.deepEqual(gone, Array.from({ length: before.length - 199 }, (_, number) => `Talk ${before.length - 197 - number}`));
  await ada.page.getByText("The list holds 200 conversations.").waitFor();
}

async function usesTheDrawer(bob) {
  const drawer = bob.page.getByRole("dialog", { name: "Conversations" });
  await asks(bob, "One");
  await bob.button("New conversation").tap();
  await asks(bob, "Two");
  await counts(drawer, 0);
  await bob.button("Conversations").tap();
  await drawer.waitFor();
  assert.deepEqual(await violations(bob.page), [], "the drawer");

  // The focus stays in the drawer.
  for (let at = 0; at < 12; at += 1) {
    await bob.page.keyboard.press("Tab");
    const isInside = await bob.page.evaluate(() => document.activeElement === document.body || Boolean(document.activeElement.closest("#drawer")));
    assert.ok(isInside, "the focus has left the drawer");
  }
  await bob.page.keyboard.press("Escape");
  await counts(drawer, 0);
  assert.equal(await bob.page.evaluate(() => document.activeElement.id), "list-open");

  await bob.button("Conversations").tap();
  // Escape in a name ends the name, not the drawer.
  await bob.button("Rename “Two”").tap();
  await bob.page.keyboard.type("Not this");
  await bob.page.keyboard.press("Escape");
  assert.deepEqual(await bob.titles(), ["Two", "One"]);
  await open(bob, "One");
  await counts(drawer, 0);
  await reads(bob.words(0), "answer to: One");

  // Beside the drawer.
  await bob.button("Conversations").tap();
  await drawer.waitFor();
  await bob.page.touchscreen.tap(380, 400);
  await counts(drawer, 0);
}

/** The list and what is written last as long as the page. */
async function hasNoStorage(carol) {
  await asks(carol, "One");
  await carol.input.fill("And th");
  await carol.button("New conversation").click();
  assert.equal(await carol.input.inputValue(), "");
  await asks(carol, "Two");
  await open(carol, "One");
  await reads(carol.words(0), "answer to: One");
  assert.equal(await carol.input.inputValue(), "And th");
  await carol.page.reload();
  await carol.isConnected();
  assert.deepEqual(await carol.titles(), ["Unnamed conversation"]);
}
