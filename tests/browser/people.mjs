// People sign in with passkeys: first with an invitation, then on a second device, and find the same conversations there.

import { assert, counts, eventually, reads, url, visit, visitor } from "./browser.mjs";

await visit(async (browser) => {
  const phone = await visitor(browser, { path: `/chat#invitation=${process.env.REJOINDER_INVITATION}` });
  await authenticator(phone.page);
  assert.ok(!phone.page.url().includes("invitation"), "the code is still in the address");
  await signIn(phone).getByRole("button", { name: "Make a passkey" }).click();
  await phone.isConnected();
  await phone.list.getByText("Signed in as Ada").waitFor();
  await phone.says("Hello from the phone.");
  await reads(phone.words(0), "answer to: Hello from the phone.");
  assert.ok(!(await phone.page.evaluate(() => document.cookie)).includes("rejoinder"), "a script reads the cookie");

  // Without a passkey, nothing is seen.
  const stranger = await visitor(browser);
  await signIn(stranger).getByRole("button", { name: "Sign in with a passkey" }).waitFor();
  await counts(stranger.turns, 0);
  await stranger.leaves();

  // A second device, with a link of the first one.
  await phone.list.getByRole("button", { name: "Add a device" }).click();
  const added = phone.page.getByRole("dialog", { name: "Add a device" });
  const link = await added.getByLabel("Link").inputValue();
  await added.getByRole("button", { name: "Close" }).click();
  const desktop = await visitor(browser, { path: link.slice(url.length) });
  await authenticator(desktop.page);
  await signIn(desktop).getByRole("button", { name: "Make a passkey" }).click();
  await desktop.isConnected();
  await desktop.listed("Hello from the phone.").click();
  await reads(desktop.words(0), "answer to: Hello from the phone.");
  await desktop.says("And from the desktop.");
  await reads(phone.words(1), "answer to: And from the desktop.");

  // Signed out and in again, with the passkey that this device has.
  await phone.list.getByRole("button", { name: "Sign out" }).click();
  await signIn(phone).getByRole("button", { name: "Sign in with a passkey" }).waitFor();
  await eventually("nothing of the person is left", () => phone.page.evaluate(() => Object.keys(localStorage).filter((key) => key.includes(":conversation:")).length), (count) => count === 0);
  await signIn(phone).getByRole("button", { name: "Sign in with a passkey" }).click();
  await phone.isConnected();
  await phone.listed("Hello from the phone.").click();
  await reads(phone.words(1), "answer to: And from the desktop.");

  await desktop.leaves();
  await phone.leaves();
});

function signIn({ page }) {
  return page.getByRole("dialog", { name: "Sign in" });
}

/** Gives a page an authenticator of its own, whose person is always there. */
async function authenticator(page) {
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("WebAuthn.enable");
  const options = { protocol: "ctap2", transport: "internal", hasResidentKey: true, hasUserVerification: true, isUserVerified: true, automaticPresenceSimulation: true };
  await devtools.send("WebAuthn.addVirtualAuthenticator", { options });
}
