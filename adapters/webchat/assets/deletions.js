// Conversations that were deleted here, and not at the gateway yet: stored on this device until the gateway has accepted it,
// and told always with the same id.

import { newId, recall, remember, remembered } from "./storage.js";

/** After this time (ms) what could not be stored is told again. */
const PAUSE = 5_000;

export class Deletions {
  #send;
  #timer = 0;

  /** `send(frame)` returns whether the frame was given to a socket; it may be that of any conversation. */
  constructor({ send }) {
    this.#send = send;
  }

  /** How many the gateway has not accepted. */
  get count() {
    return remembered("deleted:").length;
  }

  add(conversation) {
    remember(`deleted:${newId()}`, conversation);
    this.restart();
  }

  /** Tells the gateway all that it has not accepted. */
  restart() {
    clearTimeout(this.#timer);
    for (const name of remembered("deleted:")) {
      this.#send({ type: "delete", id: idIn(name), conversation: recall(name) });
    }
  }

  /** Whether `id` is that of a deletion, which is then done. */
  accepted(id) {
    const isOurs = recall(`deleted:${id}`) !== null;
    if (isOurs) remember(`deleted:${id}`, null);
    return isOurs;
  }

  /** Whether `id` is that of a deletion. It is told again if it can succeed, or else given up. */
  refused(id, retry) {
    if (!retry) return this.accepted(id);
    const isOurs = recall(`deleted:${id}`) !== null;
    if (isOurs) clearTimeout(this.#timer);
    if (isOurs) this.#timer = setTimeout(() => this.restart(), PAUSE);
    return isOurs;
  }
}

function idIn(name) {
  return name.slice("deleted:".length);
}
