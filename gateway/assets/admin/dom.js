// Builds and updates what is on the page. Everything that people and agents wrote is text, never markup.

import { ago, full, moment, sinceWhen } from "./format.js";

export const $ = (id) => document.getElementById(id);

/** Creates an element: `make("p", {className: "x", data: {key: 1}}, "text", child)`. */
export function make(tag, { data, attributes, ...properties } = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  Object.assign(element.dataset, data);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...nodes(children));
  return element;
}

const nodes = (children) =>
  children
    .flat(Infinity)
    .filter((child) => child !== null && child !== undefined && child !== false && child !== "")
    .map((child) => (child instanceof Node ? child : document.createTextNode(child)));

const HANDLERS = ["onclick", "onsubmit", "oninput", "onchange"];

/**
 * Makes `element` have these children. What is there already stays, so that the focus, a selection and what is open are not
 * lost. Children with a `data-key` are recognised by it. `data-own` marks what somebody else fills.
 */
export function show(element, ...children) {
  const wanted = nodes(children);
  const keys = new Set(wanted.map((node) => node.dataset?.key).filter(Boolean));
  const keyed = new Map();
  for (const node of [...element.childNodes]) {
    const key = node.dataset?.key;
    if (key && keys.has(key)) keyed.set(key, node);
    else if (key) node.remove();
  }
  let place = element.firstChild;
  for (const node of wanted) {
    const key = node.dataset?.key;
    const known = node.parentNode === element ? node : key ? keyed.get(key) : place?.dataset?.key ? null : place;
    if (!known || known.nodeName !== node.nodeName) {
      element.insertBefore(node, place);
      continue;
    }
    if (known === place) place = place.nextSibling;
    else element.insertBefore(known, place);
    adopt(known, node);
  }
  while (place) {
    const next = place.nextSibling;
    place.remove();
    place = next;
  }
}

function adopt(known, node) {
  if (known === node) return;
  if (known.nodeType === Node.TEXT_NODE) {
    if (known.data !== node.data) known.data = node.data;
    return;
  }
  // What the person opened stays open.
  for (const { name } of [...known.attributes]) if (name !== "open" && !node.hasAttribute(name)) known.removeAttribute(name);
  for (const { name, value } of node.attributes) if (name !== "open" && known.getAttribute(name) !== value) known.setAttribute(name, value);
  for (const name of HANDLERS) if (known[name] !== node[name]) known[name] = node[name];
  if (!("own" in known.dataset)) show(known, ...node.childNodes);
}

const SVG = "http://www.w3.org/2000/svg";

export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  const use = document.createElementNS(SVG, "use");
  use.setAttribute("href", `#icon-${name}`);
  svg.setAttribute("aria-hidden", "true");
  svg.append(use);
  return svg;
}

/** A link within the page; the frame follows it without loading anew. */
export const link = (href, ...children) => make("a", { attributes: { href } }, ...children);

export const button = (label, onclick, className = "button") => make("button", { type: "button", className, onclick }, label);

/** A time as "4 min ago"; the full local time is its title. It grows older by itself. With `isBoth`, the time stands before it. */
export function time(at, { isExact = false, isBoth = false } = {}) {
  if (!at) return null;
  const data = isExact ? {} : { relative: isBoth ? "both" : "" };
  return make("time", { data, title: full(at), attributes: { datetime: at } }, isExact ? moment(at) : words(at, isBoth));
}

const words = (at, isBoth) => (isBoth ? `${sinceWhen(at)} (${ago(at)})` : ago(at));

setInterval(() => {
  for (const element of document.querySelectorAll("time[data-relative]")) element.textContent = words(element.dateTime, element.dataset.relative === "both");
}, 15_000);

/** A state as a word with a coloured dot. */
export const badge = ([word, tone]) => make("span", { className: "badge", data: { tone } }, word);

/** Text with `code` in it. */
export const prose = (text) => text.split("`").map((part, index) => (index % 2 ? make("code", {}, part) : part));

/** Names and values; those without a value are left out. */
export function facts(entries) {
  const there = entries.filter(([, value]) => value !== null && value !== undefined && value !== "" && value !== false);
  return make("dl", { className: "facts" }, there.map(([name, ...value]) => make("div", {}, make("dt", {}, name), make("dd", {}, ...value))));
}

/**
 * A table; on a phone each row is a card. `columns`: `[{name, cell: (item) => nodes, className?}]`; the first cell is the
 * row's heading. `key(item)` recognises a row. On a phone, the cells of a compact one have no labels.
 */
export function table(label, columns, items, key, { isCompact = false } = {}) {
  const role = (name) => ({ attributes: { role: name } });
  const cell = (item) => ({ name, cell, className = "" }, index) =>
    make(index ? "td" : "th", { className, data: { label: name }, attributes: index ? { role: "cell" } : { role: "rowheader", scope: "row" } }, cell(item));
  return make(
    "table",
    { className: isCompact ? "table compact" : "table", attributes: { role: "table", "aria-label": label } },
    make("thead", role("rowgroup"), make("tr", role("row"), columns.map(({ name, className = "" }) => make("th", { className, attributes: { role: "columnheader", scope: "col" } }, name)))),
    make("tbody", role("rowgroup"), items.map((item) => make("tr", { data: { key: key(item) }, ...role("row") }, columns.map(cell(item))))),
  );
}

/** Shows the result of an action, and has it read out; or has it read out only. */
export function announce(words, { isSeen = true } = {}) {
  const announcer = $("announcer");
  announcer.classList.toggle("unseen", !isSeen);
  announcer.textContent = words;
  clearTimeout(announcer.timer);
  announcer.timer = setTimeout(() => (announcer.textContent = ""), 8_000);
}
