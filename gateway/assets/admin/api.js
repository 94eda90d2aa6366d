// Requests to the admin API.

/** Why a request failed, in words. `status` is 0 if the gateway could not be reached. */
export class Problem extends Error {
  constructor(status, { title, detail } = {}) {
    super(sentence(detail ?? title ?? `The gateway answered with status ${status}`));
    this.status = status;
  }

  get isLost() {
    return this.status === 0;
  }

  get isSignedOut() {
    return this.status === 401;
  }
}

function sentence(text) {
  const words = text.trim();
  return words.charAt(0).toUpperCase() + words.slice(1) + (/[.!?…]$/.test(words) ? "" : ".");
}

let signedOut = () => {};

/** `listener` is called when the session has ended. */
export function onSignedOut(listener) {
  signedOut = listener;
}

/** The address of an API path with its parameters; empty ones are left out. */
function apiUrl(path, params = {}) {
  const there = Object.entries(params).filter(([, value]) => value !== null && value !== undefined && value !== "" && value !== false);
  const query = new URLSearchParams(there).toString();
  return `/admin/api/${path}${query ? `?${query}` : ""}`;
}

async function request(method, path, { params, body, headers, signal } = {}) {
  const content = body === undefined ? {} : { "Content-Type": "application/json" };
  const options = { method, signal, headers: { Accept: "application/json", ...content, ...headers }, cache: "no-store", credentials: "same-origin" };
  let response;
  try {
    response = await fetch(apiUrl(path, params), { ...options, body: body === undefined ? undefined : JSON.stringify(body) });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, { detail: "The gateway cannot be reached" });
  }
  const isJson = /json/.test(response.headers.get("content-type") ?? "");
  const answer = isJson ? await response.json().catch(() => null) : null;
  if (response.ok) return answer;
  if (response.status === 401 && path !== "session") signedOut();
  throw new Problem(response.status, answer ?? {});
}

export const get = (path, params, signal) => request("GET", path, { params, signal });

/** Changes something. If the answer is lost, the same request is sent again: by its key, it is done once. */
export async function change(method, path, body = {}) {
  const headers = { "Idempotency-Key": newKey() };
  for (const pause of [500, 1_000, 2_000]) {
    try {
      return await request(method, path, { body, headers });
    } catch (error) {
      if (!error.isLost) throw error;
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }
  return request(method, path, { body, headers });
}

export const post = (path, body) => change("POST", path, body);

/** The session that the browser has; null if it has none. */
export async function session() {
  try {
    return await request("GET", "session");
  } catch (error) {
    if (error.isSignedOut) return null;
    throw error;
  }
}

/** Opens a session with the code of a link, or with a token. Neither is kept. */
export const signIn = ({ code, token }) =>
  request("POST", "session", { body: code ? { code } : {}, headers: token ? { Authorization: `Bearer ${token}` } : {} });

export const signOut = () => request("DELETE", "session");

/** `crypto.randomUUID` exists in secure contexts only, and a gateway in the local network may be none. */
function newKey() {
  if (crypto.randomUUID) return crypto.randomUUID();
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
