// Errors and logs of the gateway itself.

import { get } from "./api.js";
import { operate } from "./dialog.js";
import { badge, button, facts, link, make, show, table, time } from "./dom.js";
import { number } from "./format.js";
import { keepFresh } from "./live.js";
import { channelField, empty, filters, heading, list, part } from "./parts.js";

const LEVELS = { error: ["Error", "bad"], warn: ["Warning", "warn"], info: ["Info", "good"], debug: ["Debug", "quiet"] };
const level = (name) => badge(LEVELS[name] ?? [name, "quiet"]);

export function logs(view) {
  const errors = part(view, {
    title: "Errors and warnings",
    load: () => get("errors", {}, view.signal),
    render: ({ items }) => (items.length ? errorTable(view, items, () => errors.refresh()) : empty("No error and no warning was written since the start.")),
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

const MARKS = {
  acknowledge: { title: "Acknowledge this error?", text: "It is told no more, unless it is a panic that happens again.", action: "Acknowledge", done: "It is acknowledged." },
  mute: { title: "Mute this error?", text: "It is never told, also when it happens again.", action: "Mute", done: "It is muted." },
  unmute: { title: "Unmute this error?", text: "It is told again when it is a panic.", action: "Unmute", done: "It is unmuted." },
};

/** Acknowledges, mutes or unmutes an error. */
export const mark = (id, verb) => operate({ ...MARKS[verb], path: `errors/${encodeURIComponent(id)}/${verb}` });

function marks(view, { id, acknowledged_at: at, muted }, refresh) {
  const act = (words, verb) => view.mayChange && button(words, async () => (await mark(id, verb)) && refresh());
  const state = muted ? ["Muted", "quiet"] : at ? ["Acknowledged", "quiet"] : ["New", "warn"];
  return [badge(state), " ", !at && !muted && act("Acknowledge", "acknowledge"), " ", muted ? act("Unmute", "unmute") : act("Mute", "mute")];
}

const errorTable = (view, items, refresh) =>
  table(
    "Errors and warnings",
    [
      { name: "Message", className: "main-cell", cell: message },
      { name: "Level", cell: (error) => level(error.level) },
      { name: "Times", cell: ({ count }) => number(count) },
      { name: "Channel", cell: ({ channel }) => channel ?? "–" },
      { name: "First", cell: ({ first_seen_at: at }) => time(at) },
      { name: "Last", cell: ({ last_seen_at: at }) => time(at) },
      { name: "State", cell: (error) => marks(view, error, refresh) },
    ],
    items,
    ({ id }) => String(id),
  );
