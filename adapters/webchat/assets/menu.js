// The menu of commands: it opens while the name of a command is typed, and what is picked goes into the input.

import { addStyles, make } from "./dom.js";
import { addWords, inWords } from "./words.js";

addWords({
  "1 command": ["1 Befehl", "1 orden"],
  "{count} commands": ["{count} Befehle", "{count} órdenes"],
});

await addStyles("menu.css");

/** The name that is being typed, if the input has nothing else. */
const NAME = /^\/(\S*)$/;

export class CommandMenu {
  /** The commands of the gateway: `{name, description, takes_text}`. */
  commands;
  #text;
  #list;
  #announce;
  #shown = [];
  #active = 0;
  /** The person has closed the menu. It stays closed until another command is begun. */
  #isDismissed = false;
  /** What was picked: no menu for that. */
  #picked = null;

  /** `text` is the input, `list` the listbox, and `announce(words)` tells those who do not see the menu open. */
  constructor({ text, list, commands, announce }) {
    this.commands = commands;
    this.#text = text;
    this.#list = list;
    this.#announce = announce;
    text.addEventListener("focus", () => this.update());
    text.addEventListener("blur", () => this.#show([]));
    // A press must not take the focus away from the input.
    list.addEventListener("mousedown", (event) => event.preventDefault());
    list.addEventListener("click", (event) => {
      const option = event.target.closest("[role=option]");
      if (option) this.#pick(this.#shown[Number(option.dataset.index)]);
    });
    list.addEventListener("mousemove", (event) => {
      const option = event.target.closest("[role=option]");
      if (option) this.#activate(Number(option.dataset.index));
    });
  }

  get isOpen() {
    return this.#shown.length > 0;
  }

  /** Shows what fits the input. */
  update() {
    const typed = NAME.exec(this.#text.value)?.[1].toLowerCase();
    if (typed === undefined) this.#isDismissed = false;
    const isWanted = typed !== undefined && !this.#isDismissed && this.#text.value !== this.#picked;
    if (this.#text.value !== this.#picked) this.#picked = null;
    this.#show(isWanted && document.activeElement === this.#text ? this.#matches(typed) : []);
  }

  /** Handles a key that is meant for the menu. Returns whether it was. */
  press(event) {
    if (!this.isOpen || event.isComposing || event.ctrlKey || event.altKey || event.metaKey || event.shiftKey) return false;
    const active = this.#shown[this.#active];
    const count = this.#shown.length;
    if (event.key === "ArrowDown") this.#activate((this.#active + 1) % count);
    else if (event.key === "ArrowUp") this.#activate((this.#active + count - 1) % count);
    else if (event.key === "Escape") this.#dismiss();
    else if (event.key === "Tab") this.#pick(active);
    else if (event.key === "Enter") {
      // The whole name is there already: it is sent.
      if (this.#text.value.toLowerCase() === `/${active.name}`) {
        this.#show([]);
        return false;
      }
      this.#pick(active);
    } else return false;
    event.preventDefault();
    return true;
  }

  #matches(typed) {
    const rank = ({ name }) => (name === typed ? 0 : name.startsWith(typed) ? 1 : name.includes(typed) ? 2 : 3);
    const found = this.commands.filter((command) => rank(command) < 3);
    return found.sort((a, b) => rank(a) - rank(b));
  }

  #show(commands) {
    const wasOpen = this.isOpen;
    const isSame = commands.length === this.#shown.length && commands.every((command, index) => command === this.#shown[index]);
    if (isSame) return;
    this.#shown = commands;
    this.#list.hidden = commands.length === 0;
    this.#list.replaceChildren(...commands.map(option));
    if (commands.length === 0) return this.#text.removeAttribute("aria-activedescendant");
    this.#activate(0);
    if (!wasOpen) this.#announce(commands.length === 1 ? inWords("1 command") : inWords("{count} commands", { count: commands.length }));
  }

  #activate(index) {
    this.#active = index;
    [...this.#list.children].forEach((option, at) => option.setAttribute("aria-selected", String(at === index)));
    const option = this.#list.children[index];
    this.#text.setAttribute("aria-activedescendant", option.id);
    option.scrollIntoView({ block: "nearest" });
  }

  #dismiss() {
    this.#isDismissed = true;
    this.#show([]);
  }

  #pick({ name, takes_text }) {
    this.#text.value = this.#picked = `/${name}${takes_text ? " " : ""}`;
    this.#text.setSelectionRange(this.#text.value.length, this.#text.value.length);
    this.#text.dispatchEvent(new Event("input", { bubbles: true }));
    this.#text.focus();
  }
}

function option({ name, description }, index) {
  return make(
    "li",
    { id: `command-${index}`, data: { index }, attributes: { role: "option", "aria-selected": "false" } },
    make("span", { className: "command-name" }, `/${name}`),
    " ",
    make("span", { className: "command-words" }, description),
  );
}
