// Errors and logs of the gateway itself.

import { get } from "./api.js";
import { badge, facts, link, make, show, table, time } from "./dom.js";
import { number } from "./format.js";
import { keepFresh } from "./live.js";
import { channelField, empty, filters, heading, list, part } from "./parts.js";

const LEVELS = { error: ["Error", "bad"], warn: ["Warning", "warn"], info: ["Info", "good"], debug: ["Debug", "quiet"] };
const level = (name) => badge(LEVELS[name] ?? [name, "quiet"]);

export function logs(view) {
  const errors = part(view, {
    title: "Errors and warnings",
    load: () => get("errors", {}, view.signal),
    render: ({ items }) => (items.length ? errorTable(items) : empty("No error and no warning was written since the start.")),
  });
  const fields = [
    { name: "level", label: "Level", kind: "select", options: [["", "Everything"], ["warn", "Errors, warnings"], ["error", "Errors"]] },
    channelField(view),
    { name: "turn", label: "Turn", kind: "search", placeholder: "Id", spellcheck: false },
    { name: "text", label: "Text", kind: "search", isWide: true },
  ];
  const lines = list(view, {
    title: "Log",
    tools: filters(view, fields, () => lines.restart()),
    path: "logs",
    params: () => Object.fromEntries(view.params),
    columns: [
      { name: "Message", className: "main-cell", cell: (line) => message(line) },
      { name: "Level", cell: (line) => level(line.level) },
      { name: "Part", cell: ({ target }) => target },
      { name: "About", cell: ({ channel, turn_id: turn }) => [channel ?? (turn ? "" : "–"), " ", turn && link(`/admin/turns/${turn}`, "Turn")] },
      { name: "When", cell: ({ at }) => time(at) },
    ],
    key: ({ id }) => String(id),
    none: () => (view.params.size ? "No line matches." : "Nothing was written yet."),
    what: "line",
  });
  show(view.main, heading("Errors and logs"), errors.element, lines.element);
  keepFresh(() => Promise.all([errors.refresh(), lines.refresh()]), { signal: view.signal, topics: ["channel.", "agent."], every: 15_000 });
}

/** A message with its error, and its fields to open. */
function message({ id, message: words, fields }) {
  const there = Object.entries(fields ?? {});
  const why = fields?.error ?? fields?.reason;
  const text = make("span", { className: "words" }, why ? `${words}: ${why}` : words);
  if (!there.length) return text;
  const value = (one) => make("code", {}, typeof one === "string" ? one : JSON.stringify(one));
  return make("details", { data: { key: `fields-${id}` } }, make("summary", {}, text), facts(there.map(([name, one]) => [name, value(one)])));
}

const errorTable = (items) =>
  table(
    "Errors and warnings",
    [
      { name: "Message", className: "main-cell", cell: message },
      { name: "Level", cell: (error) => level(error.level) },
      { name: "Times", cell: ({ count }) => number(count) },
      { name: "Channel", cell: ({ channel }) => channel ?? "–" },
      { name: "First", cell: ({ first_seen_at: at }) => time(at) },
      { name: "Last", cell: ({ last_seen_at: at }) => time(at) },
    ],
    items,
    ({ id }) => String(id),
  );
