// The log as it is written: one connection for all pages that are looked at, which recovers by itself.

import { Problem } from "./api.js";

/** The gateway sends something at least every 15 seconds: after this time the connection is dead (ms). */
const SILENCE = 40_000;
const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 10_000;
/** After a longer gap, what was missed is not asked for: it may be a great deal (ms). */
const GAP = 5 * 60_000;

const listeners = new Set();
const states = new Set();
let stopping = null;
let last = null;
/** The number of the last entry since the connection was lost. */
let newest = -1;
let heardAt = 0;

/** `listener({id, topic, data})` hears every entry until `signal` is aborted; `data` is JSON as text. */
export function listen(listener, signal) {
  listeners.add(listener);
  signal?.addEventListener("abort", () => listeners.delete(listener));
}

/** `listener(isOnline)` hears when the connection is lost and found again. */
export function onConnection(listener, signal) {
  states.add(listener);
  signal?.addEventListener("abort", () => states.delete(listener));
}

/** Follows the log while the page is looked at, and on from where it was; `as`: for whom. */
export function start({ as, onSignedOut }) {
  stop();
  const started = (stopping = new AbortController());
  let looked = null;
  const end = () => {
    looked?.abort();
    looked = null;
  };
  const begin = () => {
    if (looked || document.hidden) return;
    looked = new AbortController();
    share(as, AbortSignal.any([started.signal, looked.signal]), onSignedOut);
  };
  document.addEventListener("visibilitychange", () => (document.hidden ? end() : begin()), started);
  // A page in the back/forward cache would hold its connection there.
  addEventListener("pagehide", end, started);
  addEventListener("pageshow", begin, started);
  begin();
}

export function stop() {
  stopping?.abort();
  stopping = null;
  last = null;
}

/**
 * Of all pages that are looked at, one has the connection, and tells the others: a browser has six for a gateway. Without a
 * lock (a page over plain HTTP in the local network), each has its own.
 */
async function share(as, signal, onSignedOut) {
  const others = new BroadcastChannel(`rejoinder:log ${as}`);
  let leads = false;
  let isOnline = false;
  signal.addEventListener("abort", () => others.close());
  const lead = () => {
    leads = true;
    const pass = (message) => {
      if ("isOnline" in message) isOnline = message.isOnline;
      take(message);
      if (!signal.aborted) others.postMessage(message);
    };
    return follow(signal, pass, onSignedOut);
  };
  others.onmessage = ({ data }) => {
    if (!leads && !data.asks) take(data);
    else if (leads && data.asks) others.postMessage({ isOnline });
  };
  if (!navigator.locks) return lead();
  others.postMessage({ asks: true });
  await navigator.locks.request(others.name, { signal }, lead).catch(() => signal.aborted || lead());
}

/** Takes over what the connection gave, here or in another page. */
function take({ isOnline, entries }) {
  if (isOnline === false) newest = -1;
  if (isOnline !== undefined) states.forEach((listener) => listener(isOnline));
  if (entries) heardAt = Date.now();
  // The next page that has the connection may repeat what the one before has told.
  for (const entry of entries?.filter(({ id }) => Number(id) > newest) ?? []) {
    newest = Number(entry.id);
    last = entry.id;
    listeners.forEach((listener) => listener(entry));
  }
}

async function follow(signal, pass, onSignedOut) {
  let pause = FIRST_PAUSE;
  while (!signal.aborted) {
    try {
      await read(signal, pass, () => {
        pause = FIRST_PAUSE;
        pass({ isOnline: true });
      });
    } catch (error) {
      if (signal.aborted) return;
      if (error.isSignedOut) return onSignedOut();
    }
    if (signal.aborted) return;
    pass({ isOnline: false });
    await wait(pause, signal);
    pause = Math.min(LONGEST_PAUSE, pause * 2);
  }
}

/** The pause ends early when the network is back. */
function wait(ms, signal) {
  return new Promise((resolve) => {
    const ended = new AbortController();
    const end = () => {
      ended.abort();
      resolve();
    };
    setTimeout(end, ms);
    addEventListener("online", end, ended);
    signal.addEventListener("abort", end, ended);
  });
}

async function read(signal, pass, onOpen) {
  const broken = new AbortController();
  const connected = AbortSignal.any([signal, broken.signal]);
  const isKnown = last !== null && Date.now() - heardAt < GAP;
  const response = await fetch("/admin/api/events", {
    headers: { Accept: "text/event-stream", ...(isKnown && { "Last-Event-ID": last }) },
    signal: connected,
    cache: "no-store",
  });
  if (!response.ok) throw new Problem(response.status);
  onOpen();
  addEventListener("offline", () => broken.abort(), { signal: connected });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const silence = setTimeout(() => broken.abort(), SILENCE);
    const { done, value } = await reader.read().finally(() => clearTimeout(silence));
    if (done) return;
    const frames = (rest + value).split("\n\n");
    rest = frames.pop();
    const entries = frames.map(entryOf).filter(({ id, topic, data }) => id && topic && data);
    pass({ entries });
  }
}

function entryOf(frame) {
  const field = (name) => frame.match(new RegExp(`^${name}: ?(.*)$`, "m"))?.[1];
  return { id: field("id"), topic: field("event"), data: field("data") };
}

/**
 * Calls `load` after entries whose topic begins with one of `topics`, at most every `pause` milliseconds, and every `every`
 * milliseconds; only while the page is looked at, and again when the connection is back.
 */
export function keepFresh(load, { signal, topics = [], pause = 1_000, every = 0 }) {
  let timer = 0;
  let loadedAt = Date.now();
  const run = () => {
    timer = 0;
    if (document.hidden || signal.aborted) return;
    loadedAt = Date.now();
    load();
  };
  const soon = () => {
    timer ||= setTimeout(run, Math.max(250, loadedAt + pause - Date.now()));
  };
  listen(({ topic }) => topics.some((start) => topic.startsWith(start)) && soon(), signal);
  let wasOnline = true;
  onConnection((isOnline) => {
    if (isOnline && !wasOnline) soon();
    wasOnline = isOnline;
  }, signal);
  // A page that was put aside has heard nothing.
  document.addEventListener("visibilitychange", () => document.hidden || soon(), { signal });
  const interval = every ? setInterval(() => Date.now() - loadedAt >= every && run(), 1_000) : 0;
  signal.addEventListener("abort", () => {
    clearTimeout(timer);
    clearInterval(interval);
  });
}
