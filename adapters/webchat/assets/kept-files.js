// The files of messages that are not sent yet, on this device. Loaded when the first one is needed.

import { FILES } from "./storage.js";

/** What could not be stored, until the page is left. */
const unstored = new Map();

export async function keep(id, files) {
  try {
    await inStore("readwrite", (store) => store.put(files, id));
  } catch {
    unstored.set(id, files);
  }
}

/** The files of a message; `undefined` if they are not here any more. */
export async function kept(id) {
  if (unstored.has(id)) return unstored.get(id);
  try {
    return await inStore("readonly", (store) => store.get(id));
  } catch {
    return undefined;
  }
}

export async function drop(id) {
  unstored.delete(id);
  try {
    await inStore("readwrite", (store) => store.delete(id));
  } catch {
    // Nothing is stored.
  }
}

async function inStore(mode, act) {
  const database = await done(Object.assign(indexedDB.open(FILES, 1), { onupgradeneeded: ({ target }) => target.result.createObjectStore("files") }));
  try {
    return await done(act(database.transaction("files", mode).objectStore("files")));
  } finally {
    database.close();
  }
}

function done(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = request.onblocked = () => reject(request.error);
  });
}
