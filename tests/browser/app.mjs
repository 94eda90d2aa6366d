// The page as an app: it can be installed, opens without a gateway, and takes what is shared with it.

import { assert, counts, eventually, meet, reads, url, visit, visitor } from "./browser.mjs";

/** A browser with a push service, which a test has not. The keys are those of RFC 8291. */
const PUSH_SERVICE = `{
  let kept = null;
  PushManager.prototype.getSubscription = async () => kept;
  PushManager.prototype.subscribe = async ({ applicationServerKey }) => (kept = {
    endpoint: "https://push.example.org/bob",
    options: { applicationServerKey: applicationServerKey.buffer },
    toJSON: () => ({ endpoint: "https://push.example.org/bob", keys: {
      p256dh: "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
      auth: "BTBZMqHH6r4Tts7J_aSIgg",
    } }),
    unsubscribe: async () => { kept = null; return true; },
  });
}`;

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
  await counts(ada.turns, 0);
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

  const bob = await visitor(browser, { serviceWorkers: "allow", permissions: ["notifications"], scripts: [PUSH_SERVICE] });
  await bob.isConnected();
  await isNotified(bob);
  await bob.leaves();
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
  await tab.getByRole("button", { name: "Share" }).click();
  await reads(tab.locator("#attached .attached-name"), "ä list.txt");
  assert.equal(await tab.getByLabel("Message", { exact: true }).inputValue(), "A title\nhttps://example.org/");
  assert.equal(tab.url(), `${url}/chat`);
  await tab.reload();
  await reads(tab.locator("#connection"), "Connected");
  await counts(tab.locator("#attached li"), 0);
}

/** The gateway is told of the browser once it knows the conversation, and what the push service brings is shown. */
async function isNotified(bob) {
  const told = [];
  bob.page.on("websocket", (socket) => socket.on("framesent", ({ payload }) => told.push(JSON.parse(payload))));
  await bob.page.reload();
  await bob.isConnected();
  await bob.button("Notify me of answers").click();
  await bob.button("Stop notifying me").waitFor();
  await bob.says("Tell me.");
  await reads(bob.words(0), "A secret.");
  const subscribed = () => told.filter(({ type }) => type === "subscribe").map(({ endpoint }) => endpoint);
  await eventually("the gateway is told", subscribed, (found) => found.length > 0);
  assert.deepEqual(subscribed(), ["https://push.example.org/bob"]);

  const chromium = await bob.page.context().newCDPSession(bob.page);
  const registered = new Promise((done) => chromium.on("ServiceWorker.workerRegistrationUpdated", ({ registrations: [first] }) => first && done(first.registrationId)));
  await chromium.send("ServiceWorker.enable");
  const data = JSON.stringify({ path: "/chat", conversation: "0123", title: "Rejoinder", text: "A secret." });
  await chromium.send("ServiceWorker.deliverPushMessage", { origin: url, registrationId: await registered, data });
  const notifications = () => bob.page.evaluate(async () => (await (await navigator.serviceWorker.ready).getNotifications()).map(({ title, body }) => [title, body]));
  assert.deepEqual(await eventually("it is shown", notifications, (found) => found.length > 0), [["Rejoinder", "A secret."]]);

  await bob.button("Stop notifying me").click();
  await bob.button("Notify me of answers").waitFor();
  await eventually("the gateway is told", async () => told.at(-1).type, (type) => type === "unsubscribe");
}
