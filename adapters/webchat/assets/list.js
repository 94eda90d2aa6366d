// The list of conversations: beside the conversation on a wide screen, else in a drawer.

import { LONGEST_NAME, MOST } from "./conversations.js";
import { arrange, icon, make } from "./dom.js";
import { shortTime } from "./time.js";
import { inWords } from "./words.js";

const $ = (id) => document.getElementById(id);
/** The same width as in list.css. */
const isWide = matchMedia("(min-width: 64rem)");

export class ConversationList {
  #conversations;
  #acts;
  /** The items by the ids of their conversations: the page itself holds no id. */
  #items = new Map();
  #renaming = null;
  /** The conversation whose item is reached with the Tab key; the arrow keys reach the others. */
  #reached = null;
  #shown = [];

  /**
   * `open(id)` shows a conversation, `remove(id)` deletes one, `unsent()` returns how many messages wait in each, `loss(id)`
   * is what is lost with one, `waits()` whether the gateway is still to be told of a deletion, and `announce(words)` speaks to those who do not see the page.
   */
  constructor(conversations, acts) {
    this.#conversations = conversations;
    this.#acts = acts;
    isWide.addEventListener("change", () => this.#place());
    this.#place();
    $("list-open").addEventListener("click", () => this.#openDrawer());
    $("list-close").addEventListener("click", () => $("drawer").close());
    $("drawer").addEventListener("click", (event) => event.target === $("drawer") && $("drawer").close());
    $("search").addEventListener("input", () => this.#search());
    $("search").addEventListener("keydown", (event) => this.#pressInSearch(event));
    $("conversations").addEventListener("keydown", (event) => this.#press(event));
    $("conversations").addEventListener("focusin", (event) => this.#reach(this.#idAt(event.target)));
    $("conversations").addEventListener("click", (event) => this.#click(event));
  }

  close() {
    $("drawer").close();
  }

  /** Brings the list up to date. A name that is being written stays as it is. */
  show() {
    if (this.#renaming !== null) return;
    const [found, unsent] = [this.#conversations.find($("search").value), this.#acts.unsent()];
    this.#shown = found.map(({ id }) => id);
    if (!this.#shown.includes(this.#reached)) this.#reached = this.#shown.find((id) => id === this.#conversations.current) ?? this.#shown[0];
    for (const id of this.#items.keys()) if (!this.#shown.includes(id)) this.#items.delete(id);
    const focused = document.activeElement;
    arrange($("conversations"), found.map((conversation) => this.#item(conversation, unsent.get(conversation.id) ?? 0)));
    this.#markReached();
    if (focused !== document.activeElement && focused.isConnected) focused.focus({ preventScroll: true });
    $("list-nothing").hidden = found.length > 0;
    $("list-deleting").hidden = !this.#acts.waits();
    $("list-full").textContent = inWords("The list holds {most} conversations. A new one takes the place of the one used longest ago; those that you have named stay longest.", { most: MOST });
    $("list-full").hidden = this.#conversations.count < MOST || $("search").value.trim() !== "";
  }

  #item(conversation, unsent) {
    const { id, title, last, at, isPinned } = conversation;
    if (!this.#items.has(id)) this.#items.set(id, make("li", { className: "listed" }));
    const item = this.#items.get(id);
    const isCurrent = id === this.#conversations.current;
    const isListed = this.#conversations.has(id);
    const key = JSON.stringify([title, last, at, isPinned, unsent, isCurrent, isListed, new Date().toDateString()]);
    if (item.key === key) return item;
    item.key = key;
    const acted = item.contains(document.activeElement) ? document.activeElement.dataset.act : null;
    const waiting = unsent === 1 ? inWords("1 message not sent") : inWords("{count} messages not sent", { count: unsent });
    const words = unsent ? make("span", { className: "listed-unsent" }, waiting) : last && make("span", { className: "listed-last", dir: "auto" }, last);
    const open = make(
      "button",
      { type: "button", className: "listed-open", data: { act: "open" }, attributes: { ...(isCurrent && { "aria-current": "true" }), ...(isListed && { "aria-keyshortcuts": "F2 Delete P" }) } },
      make("span", { className: "listed-title", dir: "auto", title }, title),
      " ",
      words,
      " ",
      !unsent && Number.isFinite(at) && shortTime(at),
    );
    const act = (name, label, about, more = {}) =>
      isListed && make("button", { type: "button", className: "icon-button listed-act", title: label, data: { act: name }, attributes: { "aria-label": about, ...more } }, icon(name));
    const acts = [
      act("rename", inWords("Rename"), inWords("Rename “{title}”", { title })),
      act("delete", inWords("Delete"), inWords("Delete “{title}”", { title })),
      act("pin", isPinned ? inWords("Unpin") : inWords("Pin"), inWords("Pin “{title}”", { title }), { "aria-pressed": String(isPinned) }),
    ];
    item.replaceChildren(...[open, ...acts].filter(Boolean));
    if (acted) item.querySelector(`[data-act="${acted}"]`)?.focus({ preventScroll: true });
    return item;
  }

  // --- The drawer ---

  #place() {
    if (isWide.matches && $("drawer").open) $("drawer").close();
    (isWide.matches ? $("side") : $("drawer")).append($("list"));
  }

  #openDrawer() {
    this.show();
    $("drawer").showModal();
    this.#items.get(this.#conversations.current)?.scrollIntoView({ block: "nearest" });
  }

  // --- Search ---

  #search() {
    this.show();
    const count = this.#shown.length;
    if ($("search").value.trim()) this.#acts.announce(count === 1 ? inWords("1 conversation found") : count ? inWords("{count} conversations found", { count }) : inWords("No conversations found"));
  }

  #pressInSearch(event) {
    if (event.isComposing) return;
    if (event.key === "Escape" && $("search").value) {
      // Escape closes the drawer only when there is no search to end.
      event.preventDefault();
      $("search").value = "";
      $("search").dispatchEvent(new Event("input"));
    } else if (event.key === "ArrowDown" && this.#shown.length) {
      event.preventDefault();
      this.#focus(this.#shown[0]);
    } else if (event.key === "Enter" && $("search").value.trim() && this.#shown.length) {
      event.preventDefault();
      this.#open(this.#shown[0]);
    }
  }

  /** The conversation after the one that is open, or before it. */
  neighbour(step) {
    return this.#shown[this.#shown.indexOf(this.#conversations.current) + step];
  }

  // --- Keys and clicks ---

  #idAt(element) {
    const item = element.closest(".listed");
    return this.#shown.find((id) => this.#items.get(id) === item);
  }

  #reach(id) {
    if (id === undefined || id === this.#reached) return;
    this.#reached = id;
    this.#markReached();
  }

  #markReached() {
    for (const [id, item] of this.#items) {
      for (const button of item.querySelectorAll("button")) button.tabIndex = id === this.#reached ? 0 : -1;
    }
  }

  #focus(id) {
    const button = this.#items.get(id)?.querySelector(".listed-open");
    if (button) button.focus();
    else $("search").focus();
  }

  #press(event) {
    if (event.target.matches("input") || event.ctrlKey || event.altKey || event.metaKey || event.shiftKey) return;
    const at = this.#shown.indexOf(this.#idAt(event.target));
    const last = this.#shown.length - 1;
    const to = { ArrowDown: Math.min(at + 1, last), ArrowUp: at - 1, Home: 0, End: last }[event.key];
    if (to !== undefined) this.#focus(this.#shown[to]);
    else if (event.key === "F2") this.#rename(this.#shown[at]);
    else if (event.key === "Delete") this.#askToDelete(this.#shown[at]);
    else if (event.key.toLowerCase() === "p") this.#pin(this.#shown[at]);
    else return;
    event.preventDefault();
  }

  #click(event) {
    const act = event.target.closest("button")?.dataset.act;
    const id = this.#idAt(event.target);
    if (act === "open") this.#open(id);
    else if (act === "rename") this.#rename(id);
    else if (act === "delete") this.#askToDelete(id);
    else if (act === "pin") this.#pin(id);
  }

  #pin(id) {
    const { title, isPinned } = this.#conversations.get(id);
    this.#conversations.pin(id, !isPinned);
    this.show();
    this.#acts.announce(isPinned ? inWords("“{title}” is not pinned any more", { title }) : inWords("“{title}” is pinned", { title }));
  }

  #open(id) {
    this.close();
    this.#acts.open(id);
  }

  // --- Names ---

  #rename(id) {
    if (!this.#conversations.has(id)) return;
    const { title } = this.#conversations.get(id);
    const item = this.#items.get(id);
    const input = make("input", { className: "listed-name", value: title, maxLength: LONGEST_NAME, dir: "auto", autocomplete: "off", attributes: { "aria-label": inWords("Name of “{title}”", { title }), enterkeyhint: "done" } });
    this.#renaming = id;
    item.replaceChildren(input);
    input.select();
    input.focus();
    const end = (isKept, isByKey) => {
      if (this.#renaming !== id) return;
      this.#renaming = null;
      if (isKept && input.value.trim() !== title) this.#conversations.rename(id, input.value);
      item.key = "";
      this.show();
      if (isByKey) this.#focus(id);
    };
    input.addEventListener("blur", () => end(true, false));
    input.addEventListener("keydown", (event) => {
      if (event.isComposing || !["Enter", "Escape"].includes(event.key)) return;
      // Escape must not close the drawer.
      event.preventDefault();
      end(event.key === "Enter", true);
    });
  }

  // --- Deleting ---

  async #askToDelete(id) {
    if (!this.#conversations.has(id)) return;
    const { title } = this.#conversations.get(id);
    const { askToDelete } = await import("./dialogs.js");
    if (!(await askToDelete(title, this.#acts.loss(id))) || !this.#conversations.has(id)) return;
    const at = this.#shown.indexOf(id);
    this.#acts.remove(id);
    this.#focus(this.#shown[Math.min(at, this.#shown.length - 1)]);
    this.#acts.announce(inWords("“{title}” is deleted", { title }));
  }
}
