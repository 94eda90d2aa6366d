// The page as an app: it can be installed, opens without a gateway, and takes what is shared with it.

import { assert, counts, meet, reads, url, visit, visitor } from "./browser.mjs";

await visit(async (browser) => {
  const tolerates = /ERR_CONNECTION_REFUSED|ERR_CONNECTION_RESET|closed before|Failed to fetch/;
  const ada = await visitor(browser, { serviceWorkers: "allow", tolerates });
  await ada.isConnected();
  await ada.page.evaluate(async () => {
    await navigator.serviceWorker.ready;
    if (!navigator.serviceWorker.controller) await new Promise((done) => (navigator.serviceWorker.oncontrollerchange = done));
  });
  await canBeInstalled(ada);
  await ada.says("What is it?");
  await reads(ada.words(0), "A secret.");
  await ada.page.reload();
  await reads(ada.words(0), "A secret.");
  await keepsNoWords(ada);
  await meet("installed");

  await ada.page.reload();
  await reads(ada.state, "Reconnecting…");
  await ada.page.getByRole("alert").getByText("The connection was lost. What you write is kept and will be sent.").waitFor();
  await counts(ada.page.getByText("A secret."), 0);
  await ada.says("Are you there?");
  await ada.page.getByText("Will be sent when the connection is back").waitFor();
  await ada.input.fill("not finished");
  await ada.page.reload();
  await ada.page.getByText("Will be sent when the connection is back").waitFor();
  assert.equal(await ada.input.inputValue(), "not finished");
  await meet("without a gateway");

  await reads(ada.words(1), "A secret.");
  await counts(ada.turns, 2);
  await ada.input.fill("");
  await takesWhatIsShared(ada);
  await ada.leaves();
});

async function canBeInstalled(ada) {
  const chromium = await ada.page.context().newCDPSession(ada.page);
  const manifest = await chromium.send("Page.getAppManifest");
  assert.deepEqual(manifest.errors, []);
  assert.equal(JSON.parse(manifest.data).start_url, "/chat");
  const { installabilityErrors } = await chromium.send("Page.getInstallabilityErrors");
  // Every window of a test is a private one.
  assert.deepEqual(installabilityErrors.map(({ errorId }) => errorId).filter((id) => id !== "in-incognito"), []);
}

/** The worker has kept the page and its files. */
async function keepsNoWords(ada) {
  const kept = await ada.page.evaluate(async () => {
    const found = [];
    for (const name of await caches.keys()) {
      const cache = await caches.open(name);
      for (const request of await cache.keys()) found.push([new URL(request.url).pathname, await (await cache.match(request)).text()]);
    }
    return found;
  });
  const paths = kept.map(([path]) => path);
  assert.ok(["/chat", "/chat/assets/chat.js", "/chat/assets/common.css"].every((path) => paths.includes(path)), `${paths}`);
  assert.ok(paths.every((path) => path === "/chat" || path.startsWith("/chat/assets/")), `${paths}`);
  assert.ok(kept.every(([, text]) => !text.includes("A secret.")));
}

/** As the system does it: a form is posted from elsewhere. */
async function takesWhatIsShared(ada) {
  const tab = await ada.page.context().newPage();
  const fields = `<input name="title" value="A title"><input name="url" value="https://example.org/"><input name="file" type="file">`;
  await tab.setContent(`<form method="post" enctype="multipart/form-data" action="${url}/chat/share">${fields}<button>Share</button></form>`);
  await tab.setInputFiles("[type=file]", [{ name: "ä list.txt", mimeType: "text/plain", buffer: Buffer.from("milk") }]);
  await tab.getByRole("button").click();
  await reads(tab.locator("#attached .attached-name"), "ä list.txt");
  assert.equal(await tab.getByLabel("Message", { exact: true }).inputValue(), "A title\nhttps://example.org/");
  assert.equal(tab.url(), `${url}/chat`);
  await tab.reload();
  await reads(tab.locator("#connection"), "Connected");
  await counts(tab.locator("#attached li"), 0);
}
