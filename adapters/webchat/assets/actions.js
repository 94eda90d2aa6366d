// The menu with what can be done with a conversation. What it asks of the gateway are commands that can be written as well.

import { make } from "./dom.js";
import "./more.js";
import { inWords } from "./words.js";

/** The commands that choose something, as the menu calls them. */
const CHOICES = [["agent", inWords("Agent")], ["model", inWords("Model")]];

/**
 * Opens the menu of `button`. `commands` are those of the gateway, `say(words)` sends one, `loadAll()` loads what was said earlier,
 * and `help()` shows the keys.
 */
export function openActions(button, { commands, say, loadAll, help }) {
  if (button.getAttribute("aria-expanded") === "true") return;
  const item = (label, act) => Object.assign(make("button", { type: "button", className: "action", tabIndex: -1, attributes: { role: "menuitem" } }, label), { act });
  const group = (label, ...items) => make("div", { className: "actions-group", attributes: { role: "group", "aria-label": label } }, ...items);
  const choices = CHOICES.map(([name, label]) => [name, label, commands.find((command) => command.name === name)?.choices ?? []]);
  const menu = make(
    "div",
    { className: "actions", attributes: { role: "menu", "aria-label": button.getAttribute("aria-label") } },
    item(inWords("Save as Markdown"), () => say("/export")),
    item(inWords("Save as JSON"), () => say("/export json")),
    item(inWords("Print"), () => printAll(loadAll)),
    item(inWords("Keyboard shortcuts"), help),
    ...choices.filter(([, , names]) => names.length > 1).map(([name, label, names]) =>
      group(label, make("p", { attributes: { "aria-hidden": "true" } }, label), ...names.map((one) => item(one, () => say(`/${name} ${one}`))))),
  );
  const items = [...menu.querySelectorAll("button")];
  const ending = new AbortController();
  const close = () => {
    ending.abort();
    button.setAttribute("aria-expanded", "false");
    menu.remove();
  };
  menu.addEventListener("keydown", (event) => {
    const at = items.indexOf(document.activeElement);
    const to = { ArrowDown: (at + 1) % items.length, ArrowUp: (at + items.length - 1) % items.length, Home: 0, End: items.length - 1 }[event.key];
    if (to !== undefined) items[to].focus();
    else if (event.key === "Escape" || event.key === "Tab") {
      button.focus();
      close();
    } else return;
    event.preventDefault();
  });
  menu.addEventListener("click", (event) => {
    const chosen = event.target.closest("button");
    if (!chosen) return;
    button.focus();
    close();
    chosen.act();
  });
  document.addEventListener("pointerdown", (event) => !menu.contains(event.target) && !button.contains(event.target) && close(), { signal: ending.signal });
  button.setAttribute("aria-expanded", "true");
  button.after(menu);
  items[0].focus();
}

async function printAll(loadAll) {
  await loadAll();
  const pictures = [...document.querySelectorAll("#turns img")];
  for (const picture of pictures) picture.loading = "eager";
  await Promise.allSettled(pictures.map((picture) => picture.decode()));
  print();
}
