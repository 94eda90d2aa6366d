// A turn has a picture, a sound and a page: the operator sees the first and hears the second.

import { assert, screenshot, url, visit } from "./browser.mjs";
import { isAccessible, isLoaded, operator } from "./operator.mjs";

await visit(async (browser) => {
  const ada = await operator(browser, { viewport: { width: 390, height: 844 } });
  const { page } = ada;
  await page.goto(`${url}/admin/turns`);
  await isLoaded(page);
  await page.locator(".main-cell a").first().click();
  await page.getByRole("heading", { name: /^Turn of/ }).waitFor();

  const size = await page.getByRole("img", { name: "dot.png" }).evaluate(async (image) => {
    image.scrollIntoView();
    await image.decode();
    return [image.naturalWidth, image.naturalHeight];
  });
  assert.deepEqual(size, [1, 1]);
  const seconds = await page.locator("audio[aria-label='note.wav']").evaluate(
    (audio) =>
      new Promise((resolve, reject) => {
        audio.onloadedmetadata = () => resolve(audio.duration);
        audio.onerror = () => reject(new Error(audio.error.message));
        audio.preload = "metadata";
        audio.load();
      }),
  );
  assert.equal(seconds, 0.5);
  await page.getByRole("link", { name: /^page\.html/ }).waitFor();
  assert.equal(await page.locator(".file :is(img, audio)").count(), 2);
  await isAccessible(page, "a turn with files");
  await screenshot(page, "operator-files");
  await ada.leaves();
});
