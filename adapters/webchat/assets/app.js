// The page as an app: what was shared with it, and notifications. Loaded when there is any of that.

import { newId, recall, remember, SHARED } from "./storage.js";
import { addWords, inWords } from "./words.js";

addWords({
  "Stop notifying me": ["Nicht mehr benachrichtigen", "No avisarme más"],
  "The browser does not let this page notify you.": ["Der Browser lässt diese Seite dich nicht benachrichtigen.", "El navegador no permite a esta página avisarte."],
});

const $ = (id) => document.getElementById(id);

export class App {
  #path;
  #send;
  #notice;
  #place;
  /** The conversations of which the gateway tells this browser. */
  #followed = new Set();

  /**
   * `path` is that of the page, `send(frame)` gives a frame to the socket, `notice(words)` shows words for a while, and `place()` returns
   * `{key, id, isKnown}`: the gateway's key at push services, the conversation that is open, and whether the gateway knows that.
   */
  constructor({ path, send, notice, place }) {
    this.#path = path;
    this.#send = send;
    this.#notice = notice;
    this.#place = place;
  }

  /** Turns notifications on, or off. */
  async toggle() {
    try {
      await (this.#isOn ? this.#turnOff() : this.#turnOn());
    } catch {
      this.#notice(inWords("This browser cannot be notified."));
    }
  }

  /** Has this browser told of answers in the conversation that is open once the gateway knows that, if the person wants it. */
  async follow() {
    const { key, id, isKnown } = this.#place();
    this.#show();
    if (!this.#isOn || !isKnown || key === null || this.#followed.has(id)) return;
    const subscription = await this.#subscription(key);
    const { endpoint, keys } = subscription.toJSON();
    const isOpen = this.#place().id === id;
    if (isOpen && this.#send({ type: "subscribe", id: newId(), endpoint, key: keys.p256dh, auth: keys.auth })) this.#followed.add(id);
  }

  /** The gateway may tell this browser of no conversation any more: somebody was signed out. */
  restart() {
    this.#followed.clear();
  }

  /** The one of these conversations that has this address at the gateway. */
  async find(ids, address) {
    for (const id of ids) {
      const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(id)));
      if (Array.from(digest.slice(0, 16), (byte) => byte.toString(16).padStart(2, "0")).join("") === address) return id;
    }
    return null;
  }

  /** The words and the files that were shared with the page, once. */
  async takeShared() {
    const shared = { words: "", files: [] };
    if (!(await caches.has(SHARED))) return shared;
    const cache = await caches.open(SHARED);
    const requests = (await cache.keys()).filter(({ url }) => new URL(url).pathname.startsWith(`${this.#path}/shared/`));
    for (const request of requests) {
      const response = await cache.match(request);
      // Another tab may have taken it.
      if (!response || !(await cache.delete(request))) continue;
      const name = response.headers.get("X-Name");
      if (name === null) shared.words = await response.text();
      else shared.files.push(new File([await response.blob()], decodeURIComponent(name), { type: response.headers.get("Content-Type") }));
    }
    return shared;
  }

  /** Ends notifications: the push service tells the gateway. */
  async forget() {
    const registration = await navigator.serviceWorker.getRegistration("/chat");
    const subscription = await registration?.pushManager?.getSubscription();
    await Promise.all([subscription?.unsubscribe(), caches.delete(SHARED)]);
  }

  get #isOn() {
    return recall("notify") !== null && globalThis.Notification?.permission === "granted";
  }

  async #turnOn() {
    if ((await Notification.requestPermission()) !== "granted") return this.#notice(inWords("The browser does not let this page notify you."));
    await this.#subscription(this.#place().key);
    remember("notify", "yes");
    await this.follow();
  }

  async #turnOff() {
    remember("notify", null);
    this.#followed.clear();
    this.#show();
    const { pushManager } = await navigator.serviceWorker.ready;
    const subscription = await pushManager.getSubscription();
    if (!subscription) return;
    this.#send({ type: "unsubscribe", id: newId(), endpoint: subscription.endpoint });
    await subscription.unsubscribe();
  }

  /** The subscription of this browser for the gateway's key: the one that it has, or a new one. */
  async #subscription(key) {
    const { pushManager } = await navigator.serviceWorker.ready;
    const known = await pushManager.getSubscription();
    if (known && encoded(known.options.applicationServerKey) === key) return known;
    await known?.unsubscribe();
    return pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: decoded(key) });
  }

  #show() {
    $("notify-words").textContent = this.#isOn ? inWords("Stop notifying me") : inWords("Notify me of answers");
  }
}

function decoded(key) {
  return Uint8Array.from(atob(key.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0));
}

function encoded(key) {
  const letters = String.fromCharCode(...new Uint8Array(key));
  return btoa(letters).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}
