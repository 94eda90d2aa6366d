// The search in all that was said, at the gateway, in the conversations of this browser. What is found stands below the list.

import { make } from "./dom.js";
import "./more.js";
import { newId } from "./storage.js";
import { shortTime } from "./time.js";
import { folded, inWords } from "./words.js";

const $ = (id) => document.getElementById(id);
/** How long (ms) nothing is typed before the gateway is asked. */
const PAUSE = 250;
/** How long (ms) it is left alone after it could not search. */
const RETRY = 2_000;
const LONGEST = 256;

export class Found {
  #acts;
  #words = "";
  /** The search that goes on: `{id, words}`. */
  #asked = null;
  #timer = 0;
  /** The lines by their buttons: the page itself holds no id of a conversation. */
  #lines = new Map();
  #note = make("p", { className: "list-note", attributes: { role: "status" } });
  #list = make("ol", { className: "found", attributes: { "aria-label": inWords("Messages") } });
  #box = make("div", { className: "found-box", hidden: true }, this.#note, this.#list);

  /**
   * `send(frame)` returns whether the frame was given to the socket, `ids()` gives the conversations to search, `titleOf(id)` the name
   * of one, and `open(id)` shows one. `has(turn)` says whether the turn is known, `loadUntil(isThere)` loads earlier ones, `bring(turn)`
   * shows it if another version is shown in its place, and `refuse(words)` says why nothing is shown.
   */
  constructor(acts) {
    this.#acts = acts;
    $("conversations").after(this.#box);
    $("search").maxLength = LONGEST;
    $("list").addEventListener("keydown", (event) => this.#press(event));
    this.#list.addEventListener("focusin", (event) => this.#reach(event.target));
    this.#list.addEventListener("click", (event) => {
      const line = this.#lines.get(event.target.closest("button"));
      if (line) this.#jump(line);
    });
  }

  /** Looks for `words`, once no more is typed. */
  look(words) {
    this.#words = words.trim();
    clearTimeout(this.#timer);
    if (/[\p{L}\p{N}]/u.test(this.#words)) this.#timer = setTimeout(() => this.#ask(), PAUSE);
    else this.#show([], "");
  }

  /** The socket is new: no answer comes any more. */
  restart() {
    this.#asked = null;
    this.look(this.#words);
  }

  found({ id, lines, more }) {
    if (id !== this.#asked?.id) return;
    const { words } = this.#asked;
    this.#asked = null;
    if (words !== this.#words) return this.look(this.#words);
    const count = lines.length;
    const few = count === 1 ? inWords("1 message found") : inWords("{count} messages found", { count });
    const many = more && inWords("The last {count} messages with these words", { count });
    this.#show(lines, count ? many || few : inWords("No message has these words."));
  }

  /** The gateway could not search. */
  refused(id, retry) {
    if (id !== this.#asked?.id) return;
    this.#asked = null;
    this.#show([], inWords("Messages cannot be searched right now."));
    if (retry) this.#timer = setTimeout(() => this.#ask(), RETRY);
  }

  /** Shows the turn of a line. */
  async #jump({ conversation, turn_id }) {
    this.#acts.open(conversation);
    await this.#acts.loadUntil(() => this.#acts.has(turn_id));
    this.#acts.bring(turn_id);
    const item = document.querySelector(`#turns > [data-turn-id="${turn_id}"]`);
    if (!item) return this.#acts.refuse(inWords("That message is not shown any more."));
    const view = $("conversation");
    item.tabIndex = -1;
    item.classList.add("sought");
    item.addEventListener("blur", () => item.classList.remove("sought"), { once: true });
    item.focus({ preventScroll: true });
    view.scrollTop += item.getBoundingClientRect().top - view.getBoundingClientRect().top - 16;
  }

  #ask() {
    if (this.#asked) return;
    const [id, text, conversations] = [newId(), this.#words, this.#acts.ids()];
    if (this.#acts.send({ type: "search", id, text, conversations })) this.#asked = { id, words: text };
    else this.#show([], inWords("Messages can be searched when the connection is back."));
  }

  #show(lines, note) {
    this.#lines = new Map(lines.map((line) => [this.#button(line), line]));
    this.#list.replaceChildren(...[...this.#lines.keys()].map((button) => make("li", {}, button)));
    this.#reach(this.#list.querySelector("button"));
    this.#note.textContent = note;
    this.#box.hidden = note === "";
  }

  #button({ conversation, at, speaker, agent, excerpt }) {
    const who = { person: inWords("You"), agent: agent ?? inWords("Answer"), gateway: inWords("The gateway") }[speaker];
    return make(
      "button",
      { type: "button", className: "found-line" },
      make("span", { className: "found-title", dir: "auto" }, this.#acts.titleOf(conversation)),
      " ",
      shortTime(Date.parse(at)),
      " ",
      make("span", { className: "found-words", dir: "auto" }, make("bdi", {}, who), ": ", ...marked(excerpt, this.#words)),
    );
  }

  // --- Keys: the arrows go from the list to what is found, and back ---

  #reach(reached) {
    for (const button of this.#lines.keys()) button.tabIndex = button === reached ? 0 : -1;
  }

  #press(event) {
    if (event.isComposing || event.ctrlKey || event.altKey || event.metaKey || event.shiftKey || this.#lines.size === 0) return;
    const buttons = [...this.#lines.keys()];
    const at = buttons.indexOf(event.target);
    const above = $("conversations").lastElementChild;
    const isAbove = above ? above.contains(event.target) : event.target === $("search");
    if (at < 0 && !(isAbove && event.key === "ArrowDown" && !event.target.matches(".listed-name"))) return;
    const to = { ArrowDown: Math.min(at + 1, buttons.length - 1), ArrowUp: at - 1, Home: 0, End: buttons.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    (buttons[to] ?? above?.querySelector(".listed-open") ?? $("search")).focus();
  }
}

/** The parts of `text`, with the words that were looked for marked. */
function marked(text, wanted) {
  const words = folded(wanted).match(/[\p{L}\p{N}]+/gu) ?? [];
  const isWanted = (word) => words.some((one, index) => (index === words.length - 1 ? folded(word).startsWith(one) : folded(word) === one));
  return text.split(/([\p{L}\p{N}\p{M}]+)/u).map((part) => (isWanted(part) ? make("mark", {}, part) : part));
}
