// A chat that wants a token.

import { assert, counts, reads, url, visit, visitor } from "./browser.mjs";

const TOKEN = "the-token-of-the-family";

await visit(async (browser) => {
  const ada = await visitor(browser);
  const addresses = [];
  ada.page.on("request", (request) => addresses.push(request.url()));
  ada.page.on("websocket", (socket) => addresses.push(socket.url()));
  const dialog = ada.page.getByRole("dialog", { name: "Access token" });
  const enters = async (token) => {
    await dialog.getByLabel("Token", { exact: true }).fill(token);
    await dialog.getByRole("button", { name: "Open the chat" }).click();
  };

  await enters("a-guess");
  await dialog.getByRole("alert").waitFor();
  assert.match(await dialog.getByRole("alert").innerText(), /token/i);
  assert.equal(await dialog.getByLabel("Token", { exact: true }).inputValue(), "", "the wrong token is still there");

  await enters(TOKEN);
  await ada.isConnected();
  await dialog.waitFor({ state: "hidden" });
  await ada.says("Hello!");
  await reads(ada.words(0), "Welcome home.");

  // The tab remembers it, another device does not know it.
  await ada.page.reload();
  await ada.isConnected();
  await reads(ada.words(0), "Welcome home.");
  const bob = await visitor(browser);
  await bob.page.getByRole("dialog", { name: "Access token" }).waitFor();
  await counts(bob.turns, 0);

  assert.ok(addresses.length > 0 && addresses.every((address) => !address.includes(TOKEN)), "the token is in an address");
  assert.ok(addresses.every((address) => new URL(address).host === new URL(url).host));
  await bob.leaves();
  await ada.leaves();
});
