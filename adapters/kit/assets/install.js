// Installs the worker of a page, which shows it without a connection. Browsers have workers on this machine and over TLS.

const policy = globalThis.trustedTypes?.createPolicy("rejoinder-worker", { createScriptURL: (url) => url });

/** Installs `worker.js`, which stands beside this file, for the pages at `scope` and below. */
export function install(scope) {
  const worker = new URL("worker.js", import.meta.url).pathname;
  navigator.serviceWorker?.register(policy?.createScriptURL(worker) ?? worker, { scope, updateViaCache: "none" }).catch(() => {});
}
