// Storage on this device. It may be missing or full (private windows): what cannot be stored is kept until the page is left.

const PREFIX = `rejoinder:${location.pathname.replace(/\/+$/, "")}:`;

/** The name of the database with the files of messages that are not sent yet. */
export const FILES = `${PREFIX}files`;

/** Where the worker keeps what was shared until a page takes it. As in `worker.js`. */
export const SHARED = "rejoinder:shared";

/** What could not be stored. */
const unstored = new Map();

/** The storage of this device, which all tabs share. */
const device = {
  getItem: (key) => (unstored.has(key) ? unstored.get(key) : localStorageOrNull()?.getItem(key)) ?? null,
  setItem(key, value) {
    try {
      localStorage.setItem(key, value);
      unstored.delete(key);
    } catch {
      unstored.set(key, value);
    }
  },
  removeItem(key) {
    unstored.delete(key);
    localStorageOrNull()?.removeItem(key);
  },
  get keys() {
    return new Set([...Object.keys(localStorageOrNull() ?? {}), ...unstored.keys()]);
  },
};

export function recall(name, area = device) {
  try {
    return area?.getItem(PREFIX + name) ?? null;
  } catch {
    return null;
  }
}

export function remember(name, value, area = device) {
  try {
    if (value === null || value === "") area?.removeItem(PREFIX + name);
    else area?.setItem(PREFIX + name, value);
  } catch {
    // Not stored.
  }
}

/** The stored names that start with `start`. */
export function remembered(start) {
  const prefix = PREFIX + start;
  return [...device.keys].filter((key) => key.startsWith(prefix)).map((key) => key.slice(PREFIX.length));
}

/** The name that a `storage` event of another tab is about; `null` if it is not of this chat. */
export function changedName({ key, storageArea }) {
  return storageArea === localStorageOrNull() && key?.startsWith(PREFIX) ? key.slice(PREFIX.length) : null;
}

/** Removes everything that this chat has stored, on this device and in this tab. */
export function forgetAll() {
  unstored.clear();
  // First what tells the other tabs.
  remember("conversation", null);
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
