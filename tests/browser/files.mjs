// Files: chosen, dropped, pasted and removed before they are sent; pictures are shown and sounds played; a voice note is recorded.

import { assert, counts, eventually, reads, screenshot, visit, visitor } from "./browser.mjs";
import { axe, violations } from "./axe.mjs";

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC";
const picture = (name) => ({ name, mimeType: "image/png", buffer: Buffer.from(PNG, "base64") });

await visit(async (browser) => {
  for (const [width, height] of [[390, 844], [1280, 800]]) {
    const ada = await visitor(browser, {
      viewport: { width, height },
      hasTouch: width < 500,
      scripts: [axe],
      permissions: ["microphone"],
    });
    await ada.isConnected();
    const { page } = ada;
    const attached = page.getByRole("list", { name: "Files to send" }).getByRole("listitem");

    await page.locator("#attach-input").setInputFiles([picture("dot.png"), { name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("nine apples") }]);
    await counts(attached, 2);
    await gives(page, "drop", "dropped.txt");
    await gives(page, "paste", "pasted.txt");
    await counts(attached, 4);
    assert.deepEqual(await violations(page), []);
    await screenshot(page, `files-attached-${width}`);

    // With keys alone.
    for (const name of ["dropped.txt", "pasted.txt"]) {
      await ada.button(`Remove ${name}`).focus();
      await page.keyboard.press("Enter");
    }
    await counts(attached, 2);

    // What is attached stays in its conversation, and over the limit there is a sentence.
    await page.locator("#attach-input").setInputFiles([{ name: "large.bin", mimeType: "application/octet-stream", buffer: Buffer.alloc(200_000) }]);
    await page.getByRole("alert").getByText("“large.bin” is too large").waitFor();
    await counts(attached, 2);
    await ada.button("New conversation").click();
    await counts(attached, 0);
    if (width < 500) await ada.button("Conversations").click();
    await ada.listed("Unnamed conversation").last().click();
    await counts(attached, 2);

    await ada.says("Look at this");
    await counts(attached, 0);
    const asked = ada.turn(0).getByRole("group", { name: "You" });
    await isSeen(asked.getByRole("img", { name: "dot.png" }));
    await asked.getByRole("link", { name: "notes.txt" }).waitFor();
    await reads(ada.words(0), "Here it is.");
    await isSeen(ada.answer(0).getByRole("img", { name: "dot.png" }));
    await ada.answer(0).locator("audio[aria-label='note.wav']").waitFor();

    await ada.button("Record a voice note").click();
    await page.getByText("Recording…").waitFor();
    await new Promise((resolve) => setTimeout(resolve, 500));
    await ada.button("Stop recording").click();
    await page.locator("#recording audio").waitFor();
    assert.deepEqual(await violations(page), []);
    await ada.button("Send voice note").click();
    await ada.turn(1).getByText("What is on today?").waitFor();
    await reads(ada.words(1), "Here it is.");
    await ada.turn(1).getByRole("group", { name: "You" }).locator("audio").waitFor();
    assert.deepEqual(await violations(page), []);
    await screenshot(page, `files-${width}`);
    await ada.leaves();
  }
});

/** Drops or pastes a file on the page. */
async function gives(page, type, name) {
  await page.evaluate(([type, name]) => {
    const data = new DataTransfer();
    data.items.add(new File(["words"], name, { type: "text/plain" }));
    const options = { bubbles: true, cancelable: true };
    document.body.dispatchEvent(type === "drop" ? new DragEvent(type, { ...options, dataTransfer: data }) : new ClipboardEvent(type, { ...options, clipboardData: data }));
  }, [type, name]);
}

async function isSeen(image) {
  await image.waitFor();
  await eventually("the picture is there", () => image.evaluate((image) => image.naturalWidth), (width) => width === 1);
}
