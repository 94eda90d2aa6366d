// The log as it is written: one connection for the whole page, which recovers by itself.

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

export function start({ onSignedOut }) {
  stop();
  stopping = new AbortController();
  follow(stopping.signal, onSignedOut);
}

export function stop() {
  stopping?.abort();
  stopping = null;
  last = null;
}

async function follow(signal, onSignedOut) {
  let pause = FIRST_PAUSE;
  while (!signal.aborted) {
    try {
      await read(signal, () => {
        pause = FIRST_PAUSE;
        tell(true);
      });
    } catch (error) {
      if (signal.aborted) return;
      if (error.isSignedOut) return onSignedOut();
    }
    if (signal.aborted) return;
    tell(false);
    await wait(pause, signal);
    pause = Math.min(LONGEST_PAUSE, pause * 2);
  }
}

const tell = (isOnline) => states.forEach((listener) => listener(isOnline));

/** The pause ends early when the network is back, or the page is looked at. */
function wait(ms, signal) {
  return new Promise((resolve) => {
    const ended = new AbortController();
    const end = () => {
      ended.abort();
      resolve();
    };
    setTimeout(end, ms);
    addEventListener("online", end, ended);
    document.addEventListener("visibilitychange", () => document.hidden || end(), ended);
    signal.addEventListener("abort", end, ended);
  });
}

async function read(signal, onOpen) {
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
    heardAt = Date.now();
    const frames = (rest + value).split("\n\n");
    rest = frames.pop();
    frames.forEach(hear);
  }
}

function hear(frame) {
  const field = (name) => frame.match(new RegExp(`^${name}: ?(.*)$`, "m"))?.[1];
  const [id, topic, data] = [field("id"), field("event"), field("data")];
  if (!topic || !data) return;
  last = id ?? last;
  for (const listener of listeners) listener({ id, topic, data });
}

/**
 * Calls `load` after entries whose topic begins with one of `topics`, at most every `pause` milliseconds, and every `every`
 * milliseconds; only while the page is looked at, and again when the connection is back.
 */
export function keepFresh(load, { signal, topics = [], pause = 1_000, every = 0 }) {
  let timer = 0;
  let loadedAt = Date.now();
  let isStale = false;
  const run = () => {
    timer = 0;
    isStale = document.hidden;
    if (isStale || signal.aborted) return;
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
  document.addEventListener("visibilitychange", () => !document.hidden && isStale && run(), { signal });
  const interval = every ? setInterval(() => Date.now() - loadedAt >= every && run(), 1_000) : 0;
  signal.addEventListener("abort", () => {
    clearTimeout(timer);
    clearInterval(interval);
  });
}
