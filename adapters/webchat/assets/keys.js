// Which keys do something on the whole page. What they do is in chat.js, and the card that lists them is in help.js.

import { recall } from "./storage.js";

/** Under which name it is stored that keys without Ctrl or Alt do nothing. */
export const SINGLE_KEYS = "single-keys";

/** What a key does, if anything. `hasWords`: something is written in the input. */
export function shortcut(event, hasWords) {
  if (event.defaultPrevented || event.isComposing || document.querySelector(".dialog[open]")) return undefined;
  const key = event.key.toLowerCase();
  const isControl = event.ctrlKey || event.metaKey;
  if (isControl) return event.altKey ? undefined : { k: "search", "/": "help", ...(event.shiftKey && { o: "begin" }) }[key];
  if (event.altKey) return { arrowup: "previous", arrowdown: "next" }[key];
  if (event.target.id === "text") return key === "arrowup" && !event.shiftKey && !hasWords ? "edit" : undefined;
  if (event.target.closest("input, textarea, [role=menu]") || recall(SINGLE_KEYS) === "off") return undefined;
  return { "?": "help", "/": "commands" }[key];
}
