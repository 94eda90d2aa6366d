// What code, formulas, tables and footnotes have beyond their markup. Loaded with the first answer that has one.

import { colour } from "./code.js";
import { addStyles } from "./dom.js";
import { addWords, inWords } from "./words.js";

addWords({
  "Table": ["Tabelle", "Tabla"],
  "Formula": ["Formel", "Fórmula"],
  "Footnotes": ["Fußnoten", "Notas al pie"],
  "done": ["erledigt", "hecho"],
  "not done": ["nicht erledigt", "pendiente"],
  "Footnote {label}": ["Fußnote {label}", "Nota al pie {label}"],
  "Back to footnote {label} in the text": ["Zurück zu Fußnote {label} im Text", "Volver a la nota al pie {label} en el texto"],
});

// What is shown may be higher then.
addStyles("rich.css").then(grown);

function grown() {
  document.getElementById("turns").dispatchEvent(new Event("load"));
}

let marked = 0;

/** Finishes elements of answers that are on the page. */
export function dress(elements) {
  const all = (selector) => elements.flatMap((element) => [...(element.matches(selector) ? [element] : []), ...element.querySelectorAll(selector)]);
  for (const named of all("[aria-label]")) named.setAttribute("aria-label", inWords(named.getAttribute("aria-label")));
  for (const code of all(".code")) colour(code.querySelector("code"), code.querySelector("figcaption span").textContent);
  for (const reference of all("[data-ref]")) join(reference, "ref", "note", inWords("Footnote {label}", { label: reference.textContent }));
  for (const note of all("[data-note]")) join(note, "note", "ref", inWords("Back to footnote {label} in the text", { label: note.textContent }));
  grown();
}

/** Makes a link between a footnote and its first reference. Their ids are those of the answer that they stand in. */
function join(link, own, other, name) {
  const markup = link.closest(".markup");
  const place = (kind) => `${(markup.dataset.marks ??= ++marked)}-${kind}-${link.dataset[own]}`;
  if (!document.getElementById(place(own))) link.id = place(own);
  link.href = `#${place(other)}`;
  link.setAttribute("aria-label", name);
}
