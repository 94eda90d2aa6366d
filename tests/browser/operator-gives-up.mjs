// The agent works on a turn without end. The operator gives it up, and says what the person is told.

import { meet, screenshot, url, visit } from "./browser.mjs";
import { isAccessible, isLoaded, operator } from "./operator.mjs";

await visit(async (browser) => {
  const ada = await operator(browser, { viewport: { width: 390, height: 844 } });
  const { page } = ada;
  await page.goto(`${url}/admin/turns`);
  await isLoaded(page);
  await page.locator(".main-cell a").first().click();
  await page.getByRole("heading", { name: /^Turn of/ }).waitFor();

  await page.getByRole("button", { name: "Cancel", exact: true }).click();
  const dialog = page.getByRole("dialog", { name: "Cancel?" });
  await dialog.getByLabel("What the person is told").fill("Ask Grace, please.");
  await isAccessible(page, "the dialog that gives a turn up");
  await screenshot(page, "operator-gives-up");
  await dialog.getByRole("button", { name: "Give it up" }).click();

  await page.getByRole("status").getByText("The turn is given up.").waitFor();
  await page.getByText("The person was told.").waitFor();
  await page.getByText("The turn is given up, and the person is told").waitFor();
  await meet("given up");
  await ada.leaves();
});
