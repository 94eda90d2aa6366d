// An agent asks before it acts. The operator sees it, approves it with a note, and declines the next one.

import { assert, counts, meet, screenshot, url, visit } from "./browser.mjs";
import { headline, isAccessible, operator } from "./operator.mjs";

const DESKTOP = { width: 1280, height: 900 };
const PHONE = { width: 390, height: 844 };
const ACTION = "Pay 800 € to the landlord";

await visit(async (browser) => {
  const ada = await operator(browser, { viewport: DESKTOP });
  const { page } = ada;
  const looks = async (what) => {
    for (const viewport of [PHONE, DESKTOP]) {
      await page.setViewportSize(viewport);
      const name = `operator-approvals-${what}-${viewport.width}`;
      await isAccessible(page, name);
      await screenshot(page, name);
    }
  };
  const waiting = page.getByRole("region", { name: "Waiting" });
  const decided = page.getByRole("region", { name: "Decided" });
  const asked = waiting.getByRole("article").filter({ has: page.getByRole("heading", { name: ACTION, level: 3 }) });
  const row = (decision) => decided.getByRole("row").filter({ hasText: ACTION }).filter({ hasText: decision });

  await headline(page, /^Everything is answered\./);
  assert.equal(await page.getByText("for approval").count(), 0, "the overview says that something waits");
  await page.getByRole("link", { name: "Approvals", exact: true }).click();
  await waiting.getByText("No agent waits for a decision.").waitFor();
  await decided.getByText("Nothing was decided yet.").waitFor();
  await meet("nothing waits");

  // The page says so by itself.
  await asked.getByText("bank.pay", { exact: true }).waitFor();
  await asked.getByText(/on webhook\.test$/).waitFor();
  await looks("waits");
  await page.getByRole("link", { name: "Overview", exact: true }).click();
  await page.getByText("1 action waits for approval.").waitFor();
  await looks("overview");
  await page.getByRole("link", { name: "Look at the approvals" }).click();

  await asked.getByRole("button", { name: "Approve" }).click();
  const dialog = page.getByRole("dialog", { name: "Approve this?" });
  await dialog.getByText(ACTION).waitFor();
  await dialog.getByLabel("Note").fill("From the joint account");
  await isAccessible(page, "the dialog");
  await screenshot(page, "operator-approvals-dialog");
  await dialog.getByRole("button", { name: "Approve" }).click();
  await page.getByRole("status").getByText("Approved. main goes on.").waitFor();
  await waiting.getByText("No agent waits for a decision.").waitFor();
  await row("Approved").getByText("From the joint account").waitFor();
  await row("Approved").getByText("admin", { exact: true }).waitFor();
  await meet("approved");

  await asked.getByRole("button", { name: "Decline" }).click();
  await page.getByRole("dialog", { name: "Decline this?" }).getByRole("button", { name: "Decline" }).click();
  await row("Declined").waitFor();
  await counts(decided.getByRole("row").filter({ hasText: ACTION }), 2);
  await looks("decided");
  await meet("declined");

  // What happened is told in words.
  await page.getByRole("link", { name: "Live", exact: true }).click();
  const told = page.getByRole("list", { name: "The log, newest first" });
  for (const words of ["An agent asks for an approval.", "What an agent wants to do was approved.", "What an agent wants to do was declined."]) {
    await told.getByText(words).first().waitFor();
  }
  const raw = await told.locator("li > p:not(.links)").allInnerTexts();
  assert.deepEqual(raw.filter((words) => /^\w+\.\w+$/.test(words)), [], "a topic without a sentence");
  await page.goto(`${url}/admin/access`);
  await page.getByText("admin approved what an agent wants to do: From the joint account.").waitFor();
  await ada.leaves();
});
