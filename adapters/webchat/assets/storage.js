// Storage on this device. It may be missing or full (private windows): then nothing is stored, and everything else
// works.

const PREFIX = `rejoinder:${location.pathname.replace(/\/+$/, "")}:`;

export function recall(name, area = localStorageOrNull()) {
  try {
    return area?.getItem(PREFIX + name) ?? null;
  } catch {
    return null;
  }
}

export function remember(name, value, area = localStorageOrNull()) {
  try {
    if (value === null || value === "") area?.removeItem(PREFIX + name);
    else area?.setItem(PREFIX + name, value);
  } catch {
    // Not stored.
  }
}

/** The stored names that start with `start`. */
export function remembered(start) {
  try {
    const prefix = PREFIX + start;
    return Object.keys(localStorage).filter((key) => key.startsWith(prefix)).map((key) => key.slice(PREFIX.length));
  } catch {
    return [];
  }
}

/** Removes everything that this chat has stored, on this device and in this tab. */
export function forgetAll() {
  forget(localStorageOrNull());
  forgetTab();
}

/** Removes everything that this chat has stored in this tab. */
export function forgetTab() {
  forget(tabStorage());
}

/** Whether a `storage` event says that another tab has forgotten this device. */
export function isForgotten({ key, newValue }) {
  return key === null || (key === `${PREFIX}conversation` && newValue === null);
}

function forget(area) {
  try {
    Object.keys(area ?? {}).filter((key) => key.startsWith(PREFIX)).forEach((key) => area.removeItem(key));
  } catch {
    // Nothing is stored.
  }
}

/** Storage until the tab is closed. */
export function tabStorage() {
  try {
    return sessionStorage;
  } catch {
    return null;
  }
}

function localStorageOrNull() {
  try {
    return localStorage;
  } catch {
    return null;
  }
}

/** 132 random bits. */
export function newId() {
  const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  return Array.from(crypto.getRandomValues(new Uint8Array(22)), (byte) => letters[byte & 63]).join("");
}
