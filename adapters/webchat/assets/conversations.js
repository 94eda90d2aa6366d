// The conversations of this browser. Whoever has the id of a conversation can read it, so the gateway has no list of
// them, and no id stands in an address or in the page. Where people sign in, it has a list for each of them. No DOM here.

import { Conversation, isCommand } from "./conversation.js";
import { changedName, newId, recall, remember, remembered, tabStorage } from "./storage.js";
import { folded, inWords } from "./words.js";

/** How many conversations the list holds. */
export const MOST = 200;
/** How many conversations are kept in memory, so that their turns can be searched and shown at once. */
const MOST_LOADED = 20;
/** The longest name, and the most that is stored of what was said first and last. */
export const LONGEST_NAME = 80;
const LONGEST_WORDS = 160;
const ID = /^[\w-]{16,64}$/;

export class Conversations {
  /** The id of the conversation that this tab has open. */
  current = "";
  #listed = new Map();
  #loaded = new Map();
  #onChange;
  #onGone;
  #isWaiting;

  /**
   * `onChange()` is called when another tab has changed the list, `onGone()` when it has removed the conversation that is
   * open here. `isWaiting(id)` returns whether something waits there to be sent.
   */
  constructor({ onChange, onGone, isWaiting }) {
    this.#onChange = onChange;
    this.#onGone = onGone;
    this.#isWaiting = isWaiting;
    this.#readAll();
    addEventListener("storage", (event) => /^(conversation|name|pin):/.test(changedName(event) ?? "") && this.#reread());
    // A page that was put aside heard of no changes.
    addEventListener("pageshow", (event) => event.persisted && this.#reread());
  }

  /** The conversation with which the page begins: that of this tab, or the one that was opened last, or a new one. */
  get first() {
    const [inTab, last] = [recall("conversation", tabStorage()), recall("conversation")];
    // One that another tab has deleted meanwhile must not come back.
    return [inTab, last].find((id) => id && (id === last || this.#listed.has(id))) ?? newId();
  }

  /** Makes a conversation the one of this tab. Returns what is known of it. */
  open(id) {
    this.current = id;
    remember("conversation", id, tabStorage());
    remember("conversation", id);
    const conversation = this.#loaded.get(id) ?? new Conversation();
    this.#loaded.delete(id);
    this.#loaded.set(id, conversation);
    if (this.#loaded.size > MOST_LOADED) this.#loaded.delete(this.#loaded.keys().next().value);
    return conversation;
  }

  /** The ids of those that are listed. */
  get ids() {
    return [...this.#listed.keys()];
  }

  /** How many are listed. */
  get count() {
    return this.#listed.size;
  }

  /** Whether a conversation is listed. A new one is not until something was written in it. */
  has(id) {
    return this.#listed.has(id);
  }

  /** A conversation of the list: `{id, title, name?, last?, at, isPinned}`; the one that is open is there, also if it is new. */
  get(id) {
    const { at = Infinity, first, last, name, isPinned = false } = this.#listed.get(id) ?? {};
    return { id, title: name ?? first ?? inWords("Unnamed conversation"), name, last, at, isPinned };
  }

  /**
   * The conversations with all of `words` in their names, or in what was said in them as far as it is known here; those that are pinned, and then
   * the last used first.
   */
  find(words) {
    const wanted = folded(words).split(/\s+/).filter(Boolean);
    const isFound = (id) => {
      if (wanted.length === 0) return true;
      const { name, first, last } = this.#listed.get(id) ?? {};
      const turns = this.#loaded.get(id)?.turns ?? [];
      const text = folded([this.get(id).title, name, first, last, ...turns.flatMap((turn) => [turn.text, turn.shown?.text])].join("\n"));
      return wanted.every((word) => text.includes(word));
    };
    const ids = new Set([...this.#listed.keys(), this.current]);
    const found = [...ids].filter(isFound).map((id) => this.get(id));
    return found.sort((a, b) => b.isPinned - a.isPinned || (a.at === b.at ? 0 : b.at - a.at));
  }

  /** Whether nothing was ever said or begun in a conversation, as far as this browser knows: another tab may have it open. */
  isUnwritten(id) {
    const { first, last } = parsed(recall(`conversation:${id}`)) ?? {};
    const isKnown = first || last || this.#loaded.get(id)?.turns.length > 0;
    return !isKnown && !this.#isKept(id);
  }

  /** Something is being written in the conversation that is open: it is listed from now on. */
  begun() {
    if (!this.has(this.current)) this.#put(this.current, { at: Date.now() });
  }

  /** The person says something in the conversation that is open. */
  said(words) {
    const known = this.#listed.get(this.current);
    this.#put(this.current, { ...known, at: Date.now(), first: known?.first ?? title([words]) });
  }

  /** Notes what was said in the conversation that is open. */
  note() {
    const turns = this.#loaded.get(this.current).seen;
    const last = turns.findLast((turn) => !isCommand(turn)) ?? turns.at(-1);
    if (!last) return;
    const known = this.#listed.get(this.current);
    const first = known?.first ?? title(turns.map((turn) => turn.text));
    const at = Math.max(Date.parse(last.at), Date.parse(last.shown?.at ?? last.at));
    this.#put(this.current, { at, first, last: beginning(plain(last.shown?.text || last.text)) });
  }

  /** Takes over the list of who is signed in: what is not in it is gone, unless something waits there. */
  merge(listed) {
    const deleted = new Set(remembered("deleted:").map((name) => recall(name)));
    const there = listed.filter(({ id }) => ID.test(id) && !deleted.has(id));
    for (const { id, first, last, at } of there) {
      const known = this.#listed.get(id);
      if (known?.at >= Date.parse(at)) continue;
      this.#put(id, { at: Date.parse(at), first: known?.first ?? title([first ?? ""]), last: beginning(plain(last ?? "")) });
    }
    const ids = new Set(there.map(({ id }) => id));
    for (const id of [...this.#listed.keys()]) if (!ids.has(id) && id !== this.current && !this.#isKept(id)) this.remove(id);
  }

  /** Gives a conversation a name. Without one it is called by what was said first. */
  rename(id, name) {
    const known = this.#listed.get(id);
    if (!known) return;
    known.name = beginning(name, LONGEST_NAME);
    remember(`name:${id}`, known.name ?? null);
  }

  /** Pins a conversation, which then stays above the others, or takes that back. */
  pin(id, isPinned) {
    const known = this.#listed.get(id);
    if (!known) return;
    known.isPinned = isPinned;
    remember(`pin:${id}`, isPinned ? "1" : null);
  }

  /** Removes a conversation from this browser. */
  remove(id) {
    this.#loaded.delete(id);
    this.#listed.delete(id);
    // The next tab must not open it.
    if (id !== this.current && recall("conversation") === id) remember("conversation", this.current);
    for (const what of ["conversation", "name", "pin", "unfinished"]) remember(`${what}:${id}`, null);
  }

  #put(id, entry) {
    const known = this.#listed.get(id);
    // Another tab has just deleted it, and this one is about to hear of that.
    if (known && recall(`conversation:${id}`) === null) return;
    const { at, first, last } = entry;
    const stored = JSON.stringify({ at, first, last });
    if (recall(`conversation:${id}`) !== stored) remember(`conversation:${id}`, stored);
    this.#listed.set(id, { ...entry, name: known?.name, isPinned: known?.isPinned });
    if (!known) this.#makeRoom();
  }

  /** Removes what is too much: last those that are pinned, before them those with a name; the one used longest ago before the others. */
  #makeRoom() {
    if (this.#listed.size <= MOST) return;
    const spare = [...this.#listed].filter(([id]) => id !== this.current && !this.#isKept(id));
    const worth = ({ name, isPinned }) => (isPinned ? 2 : name ? 1 : 0);
    spare.sort(([, a], [, b]) => worth(a) - worth(b) || a.at - b.at);
    for (const [id] of spare.slice(0, this.#listed.size - MOST)) this.remove(id);
  }

  /** Whether something waits there to be sent or finished. */
  #isKept(id) {
    return this.#isWaiting(id) || recall(`unfinished:${id}`) !== null;
  }

  #readAll() {
    this.#listed.clear();
    for (const stored of remembered("conversation:")) {
      const id = stored.slice("conversation:".length);
      const entry = parsed(recall(stored));
      if (ID.test(id) && entry) this.#listed.set(id, { ...entry, name: recall(`name:${id}`) ?? undefined, isPinned: recall(`pin:${id}`) !== null });
    }
  }

  #reread() {
    const wasListed = this.has(this.current);
    this.#readAll();
    for (const id of this.#loaded.keys()) if (!this.has(id) && id !== this.current) this.#loaded.delete(id);
    if (wasListed && !this.has(this.current)) this.#onGone();
    else this.#onChange();
  }
}

/** An entry of the list, or `null` if it is none. */
function parsed(text) {
  try {
    const { at, first, last } = JSON.parse(text);
    return Number.isFinite(at) ? { at, first, last } : null;
  } catch {
    return null;
  }
}

/** The beginning of `words`, on one line; `undefined` if there are none. */
function beginning(words, longest = LONGEST_WORDS) {
  const line = words.trim().replace(/\s+/g, " ");
  return line.length > longest ? `${line.slice(0, longest - 1).trimEnd()}…` : line || undefined;
}

/** What a conversation is called in which `said` was said: its first words that are no command. */
function title(said) {
  return beginning(said.find((words) => words.trim() && !words.trim().startsWith("/")) ?? "", LONGEST_NAME);
}

/** Markdown without its marks. */
function plain(markdown) {
  return markdown.replace(/\[([^\]]*)\]\([^)]*\)/g, "$1").replace(/^\s*(?:[#>]+|[-*+]|\|?[-:| ]+\|)\s/gm, " ").replace(/[*_`|]+/g, " ");
}
