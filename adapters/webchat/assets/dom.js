// Making elements.

/** Creates an element: `make("p", {className: "x", data: {turnId: 1}}, "text", child)`. */
export function make(tag, { data, attributes, ...properties } = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  Object.assign(element.dataset, data);
  for (const [name, value] of Object.entries(attributes ?? {})) element.setAttribute(name, value);
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

const styles = new Map();

/** Adds a style sheet of the page. Returns once it is loaded, or is not there. */
export function addStyles(name) {
  const sheet = make("link", { rel: "stylesheet", href: new URL(name, import.meta.url).href });
  const load = (done) => {
    sheet.onload = sheet.onerror = done;
    document.head.append(sheet);
  };
  if (!styles.has(name)) styles.set(name, new Promise(load));
  return styles.get(name);
}

/** An icon of `index.html`. It says nothing that words do not say. */
export function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const use = document.createElementNS("http://www.w3.org/2000/svg", "use");
  svg.setAttribute("aria-hidden", "true");
  use.setAttribute("href", `#icon-${name}`);
  svg.append(use);
  return svg;
}

/** Makes `wanted` the children of `list`, in this order. One that is there already stays, with its focus. */
export function arrange(list, wanted) {
  const kept = new Set(wanted);
  for (const child of [...list.children]) if (!kept.has(child)) child.remove();
  wanted.forEach((item, index) => {
    if (list.children[index] !== item) list.insertBefore(item, list.children[index] ?? null);
  });
}
