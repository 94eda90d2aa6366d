// What is attached, over the input, and why something cannot be.

import { addStyles, icon, make } from "./dom.js";
import { addWords, inWords, locale } from "./words.js";

addWords({
  "Remove {name}": ["{name} entfernen", "Quitar {name}"],
  "A message may have {count} files. Send the others in another one.": ["Eine Nachricht kann {count} Dateien haben. Sende die anderen in einer weiteren.", "Un mensaje puede tener {count} archivos. Envía los demás en otro."],
  "“{name}” is too large: the files of a message may have {size} together.": ["„{name}“ ist zu groß: Die Dateien einer Nachricht dürfen zusammen {size} haben.", "«{name}» es demasiado grande: los archivos de un mensaje pueden tener {size} en total."],
});

await addStyles("files.css");

const list = document.getElementById("attached");
const previews = new Map();

/** Shows these files. */
export function show(files) {
  for (const [file, url] of previews) {
    if (files.includes(file)) continue;
    URL.revokeObjectURL(url);
    previews.delete(file);
  }
  list.hidden = files.length === 0;
  list.replaceChildren(...files.map(item));
}

export const tooMany = (count) => inWords("A message may have {count} files. Send the others in another one.", { count });

export const tooLarge = (name, bytes) => inWords("“{name}” is too large: the files of a message may have {size} together.", { name, size: sizeInWords(bytes) });

function item(file) {
  const picture = /^image\/(png|jpeg|gif|webp)$/.test(file.type) && make("img", { src: preview(file), alt: "", width: 40, height: 40 });
  const words = make("span", { className: "attached-name", dir: "auto" }, file.name);
  const label = inWords("Remove {name}", { name: file.name });
  const remove = make("button", { type: "button", className: "icon-button", title: label, attributes: { "aria-label": label } }, icon("close"));
  return make("li", {}, picture || icon("attach"), words, make("span", { className: "attached-size" }, sizeInWords(file.size)), remove);
}

function preview(file) {
  if (!previews.has(file)) previews.set(file, URL.createObjectURL(file));
  return previews.get(file);
}

/** A size as people read it: 1.5 MB. */
function sizeInWords(bytes) {
  const units = ["byte", "kilobyte", "megabyte", "gigabyte"];
  const power = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(bytes, 1)) / 10));
  const style = { style: "unit", unit: units[power], unitDisplay: "short", maximumFractionDigits: 1 };
  return new Intl.NumberFormat(locale, style).format(bytes / 1024 ** power);
}
