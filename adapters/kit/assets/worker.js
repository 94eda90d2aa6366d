// The worker of pages that can be installed: it shows them without a connection, takes what is shared with them, and shows what is
// pushed. It keeps the pages' own files and nothing that anybody said. The gateway writes `PAGE` before this: the path of the pages,
// whether they are all the same one, the paths of their files, and a digest of these as the version.

const KEPT = `rejoinder:${PAGE.path}:`;
const CACHE = KEPT + PAGE.version;
/** What was shared, until the page takes it. */
const SHARED = "rejoinder:shared";
/** How long the gateway may take before a kept file is shown (ms). */
const PATIENCE = 5_000;
const UNAVAILABLE = [502, 503, 504];

const WORDS = { en: "There is a new answer.", de: "Es gibt eine neue Antwort.", es: "Hay una respuesta nueva." };

addEventListener("install", (event) => event.waitUntil(install()));
addEventListener("activate", (event) => event.waitUntil(activate()));

async function install() {
  const cache = await caches.open(CACHE);
  await cache.addAll(PAGE.files.map((file) => new Request(file, { cache: "no-cache" })));
  const pages = (await clients.matchAll({ type: "window", includeUncontrolled: true })).map(({ url }) => new URL(url).pathname);
  await Promise.allSettled([...new Set(pages.filter(isPage).map(keyOf))].map((page) => cache.add(page)));
  await skipWaiting();
}

async function activate() {
  const old = (await caches.keys()).filter((name) => name.startsWith(KEPT) && name !== CACHE);
  await Promise.all(old.map((name) => caches.delete(name)));
  await clients.claim();
}

function isPage(path) {
  const below = path.slice(PAGE.path.length);
  const isOne = PAGE.isOne ? !/^\/(api|assets|files)(\/|$)/.test(below) : /^(\/[^/]+)?$/.test(below);
  return path.startsWith(PAGE.path) && (below === "" || below[0] === "/") && isOne;
}

function keyOf(page) {
  return PAGE.isOne ? PAGE.path : page;
}

addEventListener("fetch", (event) => {
  const { method, mode, url } = event.request;
  const { origin, pathname } = new URL(url);
  if (origin !== location.origin) return;
  if (method === "POST" && mode === "navigate" && pathname.endsWith("/share")) event.respondWith(take(event.request, pathname.slice(0, -"/share".length)));
  else if (method !== "GET") return;
  else if (PAGE.files.includes(pathname)) event.respondWith(fetched(event.request, pathname));
  else if (mode === "navigate" && isPage(pathname)) event.respondWith(fetched(event.request, keyOf(pathname)));
});

/** What the gateway gives; without a connection, what it gave last. */
async function fetched(request, key) {
  const cache = await caches.open(CACHE);
  const kept = await cache.match(key, { ignoreVary: true });
  const fresh = fetch(request).then((response) => {
    const isOurs = PAGE.files.includes(key) || /^text\/html/.test(response.headers.get("Content-Type"));
    // The browser may be short of space.
    if (response.ok && isOurs) cache.put(key, response.clone()).catch(() => {});
    return response;
  });
  if (!kept) return fresh;
  const late = new Promise((_, reject) => setTimeout(reject, PATIENCE));
  return Promise.race([fresh, late]).then((response) => (UNAVAILABLE.includes(response.status) ? kept : response), () => kept);
}

/** Keeps what is shared for the page at `path`, and opens it. */
async function take(request, path) {
  const form = await request.formData();
  const words = [...new Set(["title", "text", "url"].map((name) => form.get(name)).filter(Boolean))];
  const files = form.getAll("file").filter((file) => file instanceof File && (file.size > 0 || file.name));
  const cache = await caches.open(SHARED);
  const put = (name, content, headers) => cache.put(`${path}/shared/${name}`, new Response(content, { headers }));
  await Promise.all([
    words.length > 0 && put("words", words.join("\n")),
    ...files.map((file, index) => put(index, file, { "Content-Type": file.type || "application/octet-stream", "X-Name": encodeURIComponent(file.name) })),
  ]);
  return Response.redirect(path, 303);
}

addEventListener("push", (event) => event.waitUntil(show(read(event.data))));

function read(data) {
  try {
    return data.json();
  } catch {
    // Nothing was sent along.
    return {};
  }
}

function show({ title = "Rejoinder", text, path = PAGE.path, conversation }) {
  const language = navigator.language.split("-")[0];
  return registration.showNotification(title, {
    body: text ?? WORDS[language] ?? WORDS.en,
    icon: `${PAGE.path}/assets/icon-192.png`,
    dir: "auto",
    // A later answer takes the place of an earlier one, and is heard as well.
    tag: conversation ?? path,
    renotify: true,
    data: { path, conversation },
  });
}

addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(open(event.notification.data));
});

async function open({ path, conversation }) {
  const pages = await clients.matchAll({ type: "window", includeUncontrolled: true });
  const page = pages.find(({ url }) => new URL(url).pathname === path);
  const shown = page ? await page.focus() : await clients.openWindow(path);
  if (conversation) shown?.postMessage({ conversation });
}
