// The page's own words, in the language of the browser. What agents and the gateway say comes in theirs.

const LANGUAGES = ["en", "de", "es"];

/** The page's language. */
export const language = LANGUAGES.find((one) => navigator.language.toLowerCase().split("-")[0] === one) ?? "en";

/** Each text in English, and in the page's language; empty if that is English, or cannot be loaded. */
export const WORDS = {};

if (language !== "en") {
  await import(`./words-${language}.js`).then((loaded) => Object.assign(WORDS, loaded.WORDS), () => {});
}

/** Adds the words of a script that is loaded when it is used: each text in English, and in German and Spanish. */
export function addWords(words) {
  const at = LANGUAGES.indexOf(language) - 1;
  for (const [text, others] of Object.entries(words)) if (at >= 0) WORDS[text] = others[at];
}

/** How times are written: as the browser says, if that is in the page's language. */
export const locale = navigator.language.toLowerCase().startsWith(language) ? navigator.language : language;

/** A text of the table in the page's language. */
export function inWords(text, values = {}) {
  return (WORDS[text] ?? text).replace(/\{(\w+)\}/g, (_, name) => values[name]);
}

/** `words` as they are compared: without case and accents. */
export function folded(words) {
  return words.normalize("NFKD").replace(/\p{Mn}/gu, "").toLowerCase();
}

/** Puts the words of `index.html` into the page's language. */
export function translate(page) {
  page.documentElement.lang = language;
  if (language === "en") return;
  for (const element of page.querySelectorAll("[aria-label], [title], [placeholder]")) {
    for (const name of ["aria-label", "title", "placeholder"]) {
      if (element.hasAttribute(name)) element.setAttribute(name, inWords(element.getAttribute(name)));
    }
  }
  const texts = page.createTreeWalker(page.body, NodeFilter.SHOW_TEXT);
  for (let node = texts.nextNode(); node; node = texts.nextNode()) {
    const text = node.data.trim();
    if (text && !node.parentElement.closest("#title")) node.data = node.data.replace(text, () => inWords(text));
  }
}
