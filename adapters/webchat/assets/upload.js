// Sends messages with files. Loaded when the first one is sent.

import { addWords, inWords } from "./words.js";

addWords({
  "The files are too large.": ["Die Dateien sind zu groß.", "Los archivos son demasiado grandes."],
  "The files did not arrive.": ["Die Dateien sind nicht angekommen.", "Los archivos no llegaron."],
});

/** The requests that are under way, by the id of their message. */
const running = new Map();

/**
 * Sends an entry of the outbox with its files. `onProgress(share)` is told how much has left, from 0 to 1. Returns
 * `{turn_id}`, or `{problem, retry, code?}`.
 */
export function upload({ url, token, entry, files, onProgress }) {
  const known = running.get(entry.id);
  if (known) return known;
  const form = new FormData();
  form.append("conversation", entry.conversation);
  form.append("id", entry.id);
  form.append("text", entry.text);
  if (entry.instead_of) form.append("instead_of", entry.instead_of);
  form.append("language", navigator.language);
  if (entry.voice !== undefined) form.append("voice", String(entry.voice));
  for (const file of files) form.append("file", file, file.name);
  const sent = new Promise((resolve) => {
    const request = new XMLHttpRequest();
    request.open("POST", url);
    if (token) request.setRequestHeader("Authorization", `Bearer ${token}`);
    request.responseType = "json";
    request.upload.onprogress = ({ loaded, total }) => total && onProgress(loaded / total);
    request.onload = () => resolve(outcome(request));
    // The file may be gone from the disk, but more likely the connection is lost.
    request.onerror = request.onabort = request.ontimeout = () => resolve({ problem: inWords("The files did not arrive."), retry: true });
    request.send(form);
  });
  running.set(entry.id, sent);
  return sent.finally(() => running.delete(entry.id));
}

function outcome({ status, response }) {
  if (status === 200) return { turn_id: response?.turn_id ?? null };
  const code = response?.type?.split(":").pop();
  const words = status === 413 ? inWords("The files are too large.") : response?.detail;
  return { problem: words ?? inWords("The files did not arrive."), retry: status >= 500 || status === 408, code };
}
