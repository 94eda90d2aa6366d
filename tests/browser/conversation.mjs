// A conversation: an answer that is seen while it is written, Markdown, a history, and somebody else.

import { assert, counts, eventually, reads, visit, visitor } from "./browser.mjs";

await visit(async (browser) => {
  const ada = await visitor(browser, { permissions: ["clipboard-read", "clipboard-write"] });
  await ada.isConnected();
  await ada.page.getByText("Hello. What can I do for you?").waitFor();

  await seesTheAnswerGrow(ada);
  await seesMarkdown(ada);
  await findsItAgain(ada);

  const bob = await visitor(browser);
  await bob.isConnected();
  await bob.page.getByText("Hello. What can I do for you?").waitFor();
  await counts(bob.turns, 0);
  await bob.says("Is anybody here?");
  await reads(bob.words(0), "The model's answer.");
  await counts(bob.turns, 1);
  await ada.says("And now?");
  await reads(ada.words(2), "The model's answer.");
  await counts(ada.turns, 3);
  assert.ok(!(await ada.page.content()).includes("Is anybody here?"), "one conversation shows another");

  await bob.leaves();
  await ada.leaves();
});

async function seesTheAnswerGrow(ada) {
  const all = "one two three four five six seven eight nine ten";
  await ada.page.evaluate(() => {
    window.seen = [];
    const look = () => {
      const answer = document.querySelector("#turns [aria-label='Answer']");
      const now = `${answer?.dataset.signal ?? ""}: ${answer?.querySelector(".words")?.innerText ?? ""}`;
      if (window.seen.at(-1) !== now) window.seen.push(now);
    };
    new MutationObserver(look).observe(document.querySelector("#turns"), { childList: true, subtree: true, characterData: true, attributes: true });
  });

  await ada.says("zebra-stream");
  await reads(ada.words(0), all);
  await eventually("the answer is there for good", () => ada.page.evaluate(() => window.seen.at(-1)), (last) => last === `reply: ${all}`);

  const seen = await ada.page.evaluate(() => window.seen);
  const drafts = seen.filter((entry) => entry.startsWith("draft: ")).map((entry) => entry.slice("draft: ".length)).filter(Boolean);
  assert.ok(seen.includes("typing: "), `nobody was typing: ${JSON.stringify(seen)}`);
  assert.ok(drafts.length >= 3, `the answer did not grow: ${JSON.stringify(seen)}`);
  for (const [index, draft] of drafts.entries()) {
    assert.ok(all.startsWith(draft) && draft.length >= (drafts[index - 1] ?? "").length, `a draft that does not grow: ${JSON.stringify(seen)}`);
  }
  const firstDraft = seen.findIndex((entry) => entry.startsWith("draft: "));
  assert.ok(!seen.slice(firstDraft).includes("typing: "), `the typing notice came back: ${JSON.stringify(seen)}`);
  await counts(ada.page.locator("[data-signal=typing], [data-signal=draft]"), 0);
}

async function seesMarkdown(ada) {
  await ada.says("zebra-markdown");
  const words = ada.words(1);
  await words.locator("pre").waitFor();

  assert.equal(await words.locator("strong").innerText(), "Bold");
  assert.deepEqual(await words.getByRole("listitem").allInnerTexts(), ["one", "two"]);
  assert.equal(await words.locator("script").count(), 0, "an agent's script is on the page");
  await words.getByText("<script>alert(1)</script>").waitFor();
  const copy = words.getByRole("button");
  await copy.click();
  await reads(copy, "Copied");
  await reads(copy, "Copy");
  assert.equal(await ada.page.evaluate(() => navigator.clipboard.readText()), "fn main() {}\n");
}

async function findsItAgain(ada) {
  const before = await texts(ada);
  await ada.page.reload();
  await ada.isConnected();
  await counts(ada.turns, 2);
  assert.deepEqual(await texts(ada), before);
}

async function texts(visitor) {
  const turns = await visitor.turns.all();
  return Promise.all(turns.map(async (turn) => [await turn.getAttribute("data-turn-id"), await turn.locator(".words").allInnerTexts()]));
}
