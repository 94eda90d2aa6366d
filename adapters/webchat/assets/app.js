// The page as an app: its worker, which shows it without a connection, and what was shared with it.

import { install } from "./install.js";

/** As in `worker.js`. */
const SHARED = "rejoinder:shared";

export class App {
  #path;

  /** `path` is that of the page. */
  constructor({ path }) {
    this.#path = path;
    install("/chat");
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
}
