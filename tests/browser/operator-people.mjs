// Somebody who is not known writes. The operator sees the request and lets them in; later they revoke it.

import { assert, meet, reads, screenshot, url, visit } from "./browser.mjs";
import { headline, isAccessible, operator } from "./operator.mjs";

const DESKTOP = { width: 1280, height: 900 };
const PHONE = { width: 390, height: 844 };

await visit(async (browser) => {
  const ada = await operator(browser, { viewport: DESKTOP });
  const { page } = ada;
  const looks = async (what) => {
    for (const viewport of [PHONE, DESKTOP]) {
      await page.setViewportSize(viewport);
      const name = `operator-people-${what}-${viewport.width}`;
      await isAccessible(page, name);
      await screenshot(page, name);
    }
  };
  const requests = page.getByRole("region", { name: "Requests" });
  const known = page.getByRole("region", { name: "Who is known" });

  await headline(page, /^Everything is answered\./);
  assert.equal(await page.getByText("to be let in").count(), 0, "the overview says that somebody asks");
  await page.getByRole("link", { name: "People", exact: true }).click();
  await requests.getByText("Nobody asks to be let in.").waitFor();
  await known.getByText("Nobody is known yet.").waitFor();
  await meet("nobody asks");

  // The page says so by itself.
  const request = requests.getByRole("article").filter({ has: page.getByRole("heading", { name: "Eve", level: 3 }) });
  await request.getByText(/^[A-HJKMNP-Z2-9]{4}-[A-HJKMNP-Z2-9]{4}$/).waitFor();
  await request.getByText("telegram.test", { exact: true }).waitFor();
  await looks("asks");
  await page.getByRole("link", { name: "Overview", exact: true }).click();
  await page.getByText("1 person asks to be let in.").waitFor();
  await looks("overview");
  await page.getByRole("link", { name: "Look at the requests" }).click();

  await request.getByRole("button", { name: "Approve" }).click();
  const dialog = page.getByRole("dialog", { name: "Let Eve in?" });
  await reads(dialog.getByLabel("Role").locator("option:checked"), "Member: talks to the agent");
  await isAccessible(page, "the dialog");
  await dialog.getByLabel("Name").fill("Eve of the bakery");
  await dialog.getByLabel("Why?").fill("She called");
  await dialog.getByRole("button", { name: "Approve" }).click();
  await page.getByRole("status").getByText("Eve is let in.").waitFor();
  await requests.getByText("Nobody asks to be let in.").waitFor();
  const person = known.getByRole("row").filter({ hasText: "Eve of the bakery" });
  await person.getByText(/^telegram\.test\/\d+$/).waitFor();
  await looks("known");
  await meet("let in");

  await person.getByRole("button", { name: "Revoke" }).click();
  await page.getByRole("dialog").getByText("Eve of the bakery is not known there any more").waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "Revoke" }).click();
  await known.getByText("Nobody is known yet.").waitFor();
  await page.goto(`${url}/admin/access`);
  await page.getByText("admin let somebody in: She called.").waitFor();
  await ada.leaves();
});
