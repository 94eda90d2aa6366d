// The card with the keys.

import { make } from "./dom.js";
import { SINGLE_KEYS } from "./keys.js";
import "./more.js";
import { recall, remember } from "./storage.js";
import { inWords } from "./words.js";

const CONTROL = /Mac|iP(hone|ad)/.test(navigator.platform) ? "⌘" : "Ctrl";
const KEYS = [
  [inWords("Send message"), ["Enter"]],
  [inWords("Start a new line"), ["Shift", "Enter"]],
  [inWords("Edit what you said last, if nothing is written"), ["↑"]],
  [inWords("Search conversations and messages"), [CONTROL, "K"]],
  [inWords("New conversation"), [CONTROL, "Shift", "O"]],
  [inWords("Previous conversation"), ["Alt", "↑"]],
  [inWords("Next conversation"), ["Alt", "↓"]],
  [inWords("In the list: pin, rename, delete"), ["P"], ["F2"], ["Delete"]],
  [inWords("Show this card"), [CONTROL, "/"]],
  [inWords("Outside of the input: show this card"), ["?"]],
  [inWords("Outside of the input: list the commands"), ["/"]],
];

/** Shows the card. */
export function showKeys() {
  const keys = (parts) => make("span", { className: "keys-together" }, ...parts.flatMap((part, index) => [index > 0 && "+", make("kbd", {}, part)]));
  const singles = make("input", { type: "checkbox", checked: recall(SINGLE_KEYS) !== "off" });
  const close = make("button", { type: "button", className: "button primary" }, inWords("Close"));
  const card = make(
    "dialog",
    { className: "dialog keys", attributes: { "aria-labelledby": "keys-title" } },
    make("h2", { id: "keys-title" }, inWords("Keyboard shortcuts")),
    make("dl", {}, ...KEYS.map(([label, ...ways]) => make("div", {}, make("dt", {}, label), make("dd", {}, ...ways.map(keys))))),
    make("label", { className: "check" }, singles, " ", inWords("Keys without Ctrl or Alt work outside of the input")),
    make("div", { className: "buttons" }, close),
  );
  singles.addEventListener("change", () => remember(SINGLE_KEYS, singles.checked ? null : "off"));
  close.addEventListener("click", () => card.close());
  card.addEventListener("close", () => card.remove());
  document.body.append(card);
  card.showModal();
}
