// The operator's page as an app: it opens without a gateway, says so, and goes on when the gateway is back.

import { eventually, meet, visit, visitor } from "./browser.mjs";

await visit(async (browser) => {
  const tolerates = /ERR_CONNECTION_REFUSED|ERR_CONNECTION_RESET|Failed to fetch|401/;
  const olga = await visitor(browser, { path: "/admin/turns", serviceWorkers: "allow", tolerates });
  const gone = olga.page.getByRole("alert").getByText("The gateway cannot be reached.");
  await olga.page.getByRole("heading", { name: "Sign in" }).waitFor();
  await eventually("a worker has the page", () => olga.page.evaluate(() => navigator.serviceWorker.controller !== null));
  await meet("installed");

  await olga.page.reload();
  await gone.waitFor();
  await meet("without a gateway");

  await gone.waitFor({ state: "hidden" });
  await olga.leaves();
});
