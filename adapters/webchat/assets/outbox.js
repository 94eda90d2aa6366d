// Messages that the server has not accepted yet: stored on this device and sent in order, one at a time, always with
// the same id, so that none is lost or sent twice.

import { newId, recall, remember, remembered } from "./storage.js";

const FIRST_PAUSE = 2_000;
const LONGEST_PAUSE = 30_000;

export class Outbox {
  #conversation = null;
  #send;
  #upload;
  #holdFiles;
  #dropFiles;
  #onChange;
  #entries = [];
  #inFlight = null;
  #pause = FIRST_PAUSE;
  #timer = 0;

  /**
   * `send(frame)` returns whether the frame was given to the socket of the conversation that is open, and `upload(entry)` whether an
   * entry with files is on its way. `holdFiles(id, files)` keeps the files of an entry until `dropFiles(id)`.
   */
  constructor({ send, upload, holdFiles, dropFiles, onChange }) {
    this.#send = send;
    this.#upload = upload;
    this.#holdFiles = holdFiles;
    this.#dropFiles = dropFiles;
    this.#onChange = onChange;
  }

  /** Goes on with the entries of another conversation. Those of the one before stay stored. `restart` sends them. */
  open(conversation) {
    clearTimeout(this.#timer);
    this.#inFlight = null;
    this.#pause = FIRST_PAUSE;
    this.#conversation = conversation;
    this.#entries = stored().filter((entry) => entry.conversation === conversation);
  }

  /** How many entries wait in each conversation. */
  get counts() {
    const counts = new Map();
    for (const { conversation } of stored()) counts.set(conversation, (counts.get(conversation) ?? 0) + 1);
    return counts;
  }

  /** The waiting entries, oldest first: `{id, at, text, after, files?, voice?, instead_of?, sent?, turn_id?, choice?, asked?, problem?, wasSent?}`. */
  get entries() {
    return this.#entries;
  }

  /**
   * `after` is the place of the last turn that the person had seen placed. `files` are sent with it; `voice`: the first is a voice
   * note of so many seconds. `instead_of`: the turn in whose place it is; `sent`: what is sent for it, if not its text.
   */
  say(text, after, files = [], voice = undefined, { instead_of, sent } = {}) {
    if (files.length === 0) return this.#add({ text, after, instead_of, sent });
    const id = newId();
    this.#holdFiles(id, files);
    this.#add({ id, text, after, voice, instead_of, files: files.map(({ name, type, size }) => ({ name, type, size })) });
  }

  /** `asked` is the time of the signal with the choices. */
  choose(turn_id, choice, text, after, asked) {
    this.#add({ text, after, turn_id, choice, asked });
  }

  /** The socket is new: the entry in flight may not have arrived. */
  restart() {
    this.#inFlight = null;
    this.#flush();
  }

  accepted(id) {
    this.#pause = FIRST_PAUSE;
    const entry = this.#remove(id);
    this.#flush();
    return entry;
  }

  refused(id, message, retry) {
    const entry = this.#entries.find((entry) => entry.id === id);
    if (this.#inFlight === id) this.#inFlight = null;
    if (!entry) return;
    if (retry) {
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => this.#flush(), this.#pause);
      this.#pause = Math.min(LONGEST_PAUSE, this.#pause * 2);
    } else {
      entry.problem = message;
      this.#keep(entry);
      this.#flush();
    }
    this.#onChange();
  }

  retry(id) {
    const entry = this.#entries.find((entry) => entry.id === id);
    if (!entry) return;
    delete entry.problem;
    this.#keep(entry);
    this.#onChange();
    this.#flush();
  }

  discard(id) {
    return this.#remove(id);
  }

  /** Another tab has sent or discarded an entry. */
  drop(id) {
    if (this.#entries.some((entry) => entry.id === id)) this.accepted(id);
  }

  /** Removes all entries of a conversation. */
  clear(conversation) {
    for (const entry of stored()) if (entry.conversation === conversation) this.#remove(entry.id);
  }

  #add(what) {
    const entry = { id: newId(), conversation: this.#conversation, at: Date.now(), ...what };
    this.#entries.push(entry);
    this.#keep(entry);
    this.#onChange();
    this.#flush();
  }

  #flush() {
    clearTimeout(this.#timer);
    if (this.#inFlight) return;
    const entry = this.#entries.find((entry) => !entry.problem);
    if (!entry) return;
    const { id, text, turn_id, choice, asked, instead_of, sent } = entry;
    const message = { type: "message", id, text: sent ?? text, instead_of: sent ? undefined : instead_of };
    const frame = turn_id ? { type: "choose", id, turn_id, choice, asked } : message;
    const isGiven = entry.files ? this.#upload(entry) : this.#send(frame);
    if (!isGiven) return;
    this.#inFlight = id;
    entry.wasSent = true;
    this.#keep(entry);
  }

  #keep(entry) {
    remember(`unsent:${entry.id}`, JSON.stringify(entry));
  }

  #remove(id) {
    const entry = this.#entries.find((entry) => entry.id === id) ?? parsed(recall(`unsent:${id}`));
    this.#entries = this.#entries.filter((entry) => entry.id !== id);
    if (entry?.files) this.#dropFiles(id);
    if (this.#inFlight === id) this.#inFlight = null;
    remember(`unsent:${id}`, null);
    this.#onChange();
    return entry;
  }
}

/** The entries of all conversations, oldest first. */
function stored() {
  const entries = remembered("unsent:").map((name) => parsed(recall(name)));
  return entries.filter(Boolean).sort((a, b) => a.at - b.at);
}

/** A stored entry, or `null` if it is none. */
function parsed(text) {
  try {
    const entry = JSON.parse(text);
    const isWhole = ["id", "conversation", "text"].every((name) => typeof entry?.[name] === "string");
    return isWhole ? entry : null;
  } catch {
    return null;
  }
}
