// What the buttons that copy do.

import { make } from "./dom.js";
import { addWords, inWords } from "./words.js";

addWords({
  "Copied": ["Kopiert", "Copiado"],
  "Not copied": ["Nicht kopiert", "No copiado"],
});

/** Copies `words`, and says on `button` whether it could. */
export async function copy(button, words) {
  const isCopied = await toClipboard(words);
  button.textContent = isCopied ? inWords("Copied") : inWords("Not copied");
  setTimeout(() => (button.textContent = inWords("Copy")), 1_500);
}

async function toClipboard(words) {
  try {
    await navigator.clipboard.writeText(words);
    return true;
  } catch {
    // Pages over plain HTTP have no clipboard API.
    const field = make("textarea", { value: words, className: "unseen" });
    document.body.append(field);
    field.select();
    const isCopied = document.execCommand("copy");
    field.remove();
    return isCopied;
  }
}
