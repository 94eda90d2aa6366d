// What sections are made of: parts that load by themselves, lists with pages, and filters that are in the address.

import { get } from "./api.js";
import { field } from "./dialog.js";
import { announce, button, make, show, table } from "./dom.js";
import { plural } from "./format.js";

let count = 0;

/** The most items that the API gives at once. */
const MOST = 200;

export const heading = (title, ...children) => make("div", { className: "heading" }, make("h1", { tabIndex: -1 }, title), ...children);

export const empty = (...words) => make("p", { className: "empty" }, ...words);

/** Buttons of an item; null if there are none. */
export function buttons(...children) {
  const there = children.flat().filter(Boolean);
  return there.length ? make("div", { className: "buttons" }, there) : null;
}

/**
 * A part of the page. `load()` gives what `render(data)` shows; when it fails, only this part says so. What was loaded
 * before stays. `tools` stand above it.
 */
export function part(view, { title, tools, load, render, className = "" }) {
  const id = `part-${(count += 1)}`;
  const note = make("p", { className: "failure", hidden: true, attributes: { role: "alert" } });
  const body = make("div", { className: "body" }, make("p", { className: "loading" }, "Loading…"));
  const element = make("section", { className: `part ${className}`, attributes: { "aria-labelledby": id, "aria-busy": "true" } }, make("h2", { id }, title), tools, note, body);
  let number = 0;
  let isShown = false;

  async function refresh() {
    const mine = (number += 1);
    try {
      const data = await load();
      if (mine !== number || view.signal.aborted) return;
      note.hidden = true;
      show(body, render(data));
      isShown = true;
    } catch (problem) {
      if (mine !== number || view.signal.aborted || problem.isSignedOut || problem.name === "AbortError") return;
      if (!("status" in problem)) console.error(problem);
      show(note, `${isShown ? "This is not up to date. " : ""}${problem.message} `, button("Try again", refresh, "quiet-button"));
      note.hidden = false;
      if (!isShown) show(body);
    }
    element.setAttribute("aria-busy", "false");
  }

  refresh();
  return { element, refresh };
}

/**
 * A list with pages, as a part. `columns` make a table (`isCompact`: see there), or `render(items)` what else it is; `key(item)` recognises an item;
 * `none()` says that there are none.
 */
export function list(view, { title, tools, path, params = () => ({}), columns, isCompact, render, key, none, what, className }) {
  let items = [];
  let next = null;

  const page = (more) => get(path, { ...params(), ...more }, view.signal);
  const all = part(view, {
    title,
    tools,
    className,
    async load() {
      const found = await page({ limit: Math.min(MOST, Math.max(50, items.length)) });
      [items, next] = [found.items, found.next];
    },
    render: shown,
  });
  const more = async (event) => {
    event.currentTarget.disabled = true;
    try {
      const found = await page({ limit: 50, before: next });
      [items, next] = [[...items, ...found.items], found.next];
    } catch (problem) {
      if (!view.signal.aborted) announce(problem.message);
    }
    show(all.element.querySelector(".body"), shown());
  };
  function shown() {
    if (!items.length) return empty(none());
    return [render ? render(items) : table(title, columns, items, key, { isCompact }), next && make("div", { className: "pager" }, button("Show more", more))];
  }

  return {
    element: all.element,
    /** Loads it again. More than the API gives at once is left alone: whoever is that far back looks at the past. */
    refresh: () => items.length <= MOST && all.refresh(),
    /** Loads it from its beginning, because the filter changed, and says how many there are. */
    async restart() {
      items = [];
      await all.refresh();
      if (what && !view.signal.aborted) announce(`${plural(items.length, what)}${next ? " and more" : ""}`, { isSeen: false });
    },
  };
}

/** So many fields stand open on a phone as well. */
const MOST_OPEN = 2;

/**
 * A form of fields whose values are in the address. `onChange` is called after it has changed. On a phone, many fields are
 * behind a button.
 */
export function filters(view, fields, onChange) {
  let timer = 0;
  let label = () => {};
  const apply = () => {
    clearTimeout(timer);
    const params = new URLSearchParams(view.params);
    for (const control of form.elements) {
      const value = control.type === "checkbox" ? (control.checked ? control.value : "") : control.value?.trim();
      if (!control.name) continue;
      if (value) params.set(control.name, value);
      else params.delete(control.name);
    }
    if (params.toString() === view.params.toString()) return;
    view.setParams(params);
    label();
    onChange();
  };
  const form = make(
    "form",
    {
      className: "filters",
      attributes: { role: "search", "aria-label": "Filter" },
      onchange: apply,
      oninput: () => {
        clearTimeout(timer);
        timer = setTimeout(apply, 400);
      },
      onsubmit: (event) => {
        event.preventDefault();
        apply();
      },
    },
    fields.map((one) => field({ ...one, value: view.params.get(one.name) ?? "" })),
  );
  if (fields.length <= MOST_OPEN) return form;
  const toggle = button("Filter", () => toggle.setAttribute("aria-expanded", String(form.classList.toggle("open"))), "button filter-toggle");
  label = () => {
    const set = fields.filter(({ name }) => view.params.get(name)).length;
    toggle.textContent = set ? `Filter (${set})` : "Filter";
  };
  toggle.setAttribute("aria-expanded", "false");
  form.classList.add("folded");
  label();
  return [toggle, form];
}

/** A field with the configured channels; they are filled in when they are known. */
export function channelField(view) {
  const chosen = view.params.get("channel") ?? "";
  return { name: "channel", label: "Channel", kind: "select", options: [["", "All"], ...[...new Set([chosen, ...view.channels()])].filter(Boolean).map((name) => [name, name])] };
}
