// The input: what the person writes, the menu of commands, the limit, and editing a copy of what was said.

import { recall, remember } from "./storage.js";
import { inWords } from "./words.js";

/** How long a notice stays (ms). */
const NOTICE_LASTS = 8_000;

const $ = (id) => document.getElementById(id);

export class Composer {
  /** The longest message, in bytes of UTF-8. */
  maxTextBytes = Infinity;
  #text = $("text");
  /** The menu of commands, once it is loaded: when the first command is begun. */
  #menu = null;
  #commands = [];
  #onSend;
  #onUnfinished;
  #hasFiles;
  #announce;
  #noticeTimer = 0;
  /** What stood in the input before the edit began; `null`: nothing is edited. */
  #setAside = null;
  /** The turn in whose place the edited copy is sent. */
  #insteadOf;
  /** The copy as it was before it was edited. */
  #copied = "";
  /** Under which name the unfinished words are stored. */
  #place = "";

  /**
   * `onSend(words, turn)` sends a message, in place of a turn if one is given; `onUnfinished(words)` is told what stands in the input; `hasFiles()` says whether files are
   * attached, which need no words; `announce(words)` speaks to those who do not see the page.
   */
  constructor({ onSend, onUnfinished, hasFiles, announce }) {
    this.#onSend = onSend;
    this.#hasFiles = hasFiles;
    this.#onUnfinished = onUnfinished;
    this.#announce = announce;
    this.#text.addEventListener("input", () => {
      this.#changed();
      this.#updateMenu();
    });
    this.#text.addEventListener("keydown", (event) => this.#press(event));
    $("slash").addEventListener("click", () => this.#listCommands());
    $("editing-cancel").addEventListener("click", () => this.#cancelEdit());
    $("composer").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#send();
      this.focus();
    });
  }

  /** Shows what was left unfinished in a conversation. */
  open(conversation) {
    this.#endEdit();
    this.#place = `unfinished:${conversation}`;
    this.#text.value = recall(this.#place) ?? "";
    this.fit();
    this.#updateMenu();
  }

  get isEmpty() {
    return this.#unfinished.trim() === "";
  }

  set commands(commands) {
    this.#commands = commands;
    if (this.#menu) this.#menu.commands = commands;
    this.#updateMenu();
  }

  focus() {
    this.#text.focus({ preventScroll: true });
  }

  /** Sizes the input, and shows whether what it holds can be sent. */
  fit() {
    this.#text.style.height = "auto";
    this.#text.style.height = `${this.#text.scrollHeight}px`;
    const isTooLong = new TextEncoder().encode(this.#text.value).length > this.maxTextBytes;
    $("send").disabled = (this.#text.value.trim() === "" && !this.#hasFiles()) || isTooLong;
    $("note").hidden = !isTooLong;
    const words = isTooLong ? inWords("That is too long for one message. Please send it in parts.") : "";
    if ($("note").textContent !== words) $("note").textContent = words;
    $("composer").classList.toggle("too-long", isTooLong);
  }

  /** Puts `words` before what the input holds. */
  putBack(words) {
    this.#text.value = [words, this.#text.value].filter(Boolean).join("\n");
    this.#changed();
  }

  /** Begins to edit a copy of `words`, which is sent in place of the turn `insteadOf`. What the input holds comes back afterwards. */
  edit(words, insteadOf) {
    if (this.#setAside !== null && this.#text.value !== this.#copied) this.#setAside = this.#unfinished;
    this.#setAside ??= this.#text.value;
    this.#copied = words;
    this.#insteadOf = insteadOf;
    this.#text.value = words;
    const note = insteadOf ? inWords("You edit your message. The new version takes its place, and the old one can still be read.") : inWords("You edit a copy. It is sent as a new message, and the old one stays.");
    $("editing-words").textContent = note;
    $("editing").hidden = false;
    this.fit();
    this.focus();
    this.#text.setSelectionRange(words.length, words.length);
  }

  /** Empties the input. Returns what it held. */
  clear() {
    const words = this.#unfinished;
    this.#endEdit();
    this.#text.value = "";
    this.fit();
    return words;
  }

  /** Shows `words` for a while. */
  notice(words) {
    if ($("notice").textContent !== words || $("notice").hidden) $("notice").textContent = words;
    $("notice").hidden = false;
    clearTimeout(this.#noticeTimer);
    this.#noticeTimer = setTimeout(() => ($("notice").hidden = true), NOTICE_LASTS);
  }

  #listCommands() {
    this.focus();
    this.#text.value = "/";
    this.#text.dispatchEvent(new Event("input", { bubbles: true }));
  }

  /** Brings the menu of commands up to date. */
  async #updateMenu() {
    if (!this.#menu) {
      if (!this.#text.value.startsWith("/")) return;
      const loaded = await import("./menu.js").catch(() => null);
      if (!loaded) return;
      this.#menu ??= new loaded.CommandMenu({ text: this.#text, list: $("commands"), commands: this.#commands, announce: this.#announce });
    }
    this.#menu.update();
  }

  #changed() {
    this.fit();
    $("notice").hidden = true;
    this.#keep();
  }

  /** What would be lost with this page. An edited copy stands before what was set aside for it. */
  get #unfinished() {
    if (this.#setAside === null) return this.#text.value;
    const edited = this.#text.value === this.#copied ? "" : this.#text.value;
    return [edited, this.#setAside].filter(Boolean).join("\n");
  }

  #keep() {
    remember(this.#place, this.#unfinished);
    this.#onUnfinished(this.#unfinished);
  }

  #press(event) {
    if (this.#menu?.press(event)) return;
    if (event.key === "Escape" && this.#setAside !== null && !event.isComposing) return this.#cancelEdit();
    // Enter also ends a composition (Japanese, Chinese, …); older WebKit reports it as key code 229.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
    event.preventDefault();
    this.#send();
  }

  #send() {
    this.fit();
    if ($("send").disabled) return;
    const [words, insteadOf] = [this.#text.value, this.#insteadOf];
    this.#text.value = this.#setAside ?? "";
    this.#endEdit();
    this.#keep();
    this.fit();
    this.#updateMenu();
    this.#onSend(words, insteadOf);
  }

  #cancelEdit() {
    this.#text.value = this.#setAside ?? "";
    this.#endEdit();
    this.#keep();
    this.fit();
    this.focus();
  }

  #endEdit() {
    this.#setAside = null;
    this.#insteadOf = undefined;
    $("editing").hidden = true;
    $("editing-words").textContent = "";
  }
}
