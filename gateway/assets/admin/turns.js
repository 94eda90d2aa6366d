// Turns: the list, with filters in the address.

import { badge, link, make, show, time } from "./dom.js";
import { capital, CAUSES, excerpt, handler, person, rung, turnState } from "./format.js";
import { keepFresh } from "./live.js";
import { channelField, filters, heading, list } from "./parts.js";

const HOUR = 3_600_000;
const AGES = { "1h": HOUR, "24h": 24 * HOUR, "7d": 168 * HOUR };

/** What the list asks the gateway for, from the address. */
function query(params) {
  const { age, ...rest } = Object.fromEntries(params);
  return { ...rest, since: AGES[age] && new Date(Date.now() - AGES[age]).toISOString() };
}

export function turns(view) {
  const found = list(view, {
    title: "Turns",
    className: "bare",
    path: "turns",
    params: () => query(view.params),
    columns: turnColumns,
    isCompact: true,
    key: ({ turn_id: id }) => id,
    none: () => (view.params.size ? "No turn matches." : "There are no turns yet."),
    what: "turn",
  });
  const fields = [
    { name: "text", label: "Text", kind: "search", isWide: true },
    { name: "person", label: "Person", kind: "search" },
    { name: "state", label: "State", kind: "select", options: [["", "All"], ["open", "Open"], ["overdue", "Late"], ["undeliverable", "Undeliverable"], ["settled", "Settled"], ["absent", "Channel not configured"]] },
    channelField(view),
    { name: "agent", label: "Agent", kind: "search" },
    { name: "age", label: "Age", kind: "select", options: [["", "Any"], ["1h", "The last hour"], ["24h", "The last 24 hours"], ["7d", "The last 7 days"]] },
    { name: "fallback", label: "Answered by", kind: "select", options: [["", "Anything"], ["true", "The ladder"]] },
  ];
  if (view.params.has("conversation")) fields.push({ name: "conversation", label: "Conversation", kind: "search", spellcheck: false });
  show(view.main, heading("Turns"), filters(view, fields, found.restart), found.element);
  keepFresh(found.refresh, { signal: view.signal, topics: ["turn.", "operator."], pause: 2_000 });
}

const turnColumns = [
  { name: "Message", className: "main-cell", cell: (turn) => link(`/admin/turns/${turn.turn_id}`, make("strong", {}, person(turn)), make("span", { className: "words" }, excerpt(turn.text) || "(no text)")) },
  { name: "State", cell: (turn) => [badge(turnState(turn)), why(turn)] },
  { name: "Channel", cell: ({ channel }) => channel },
  { name: "Handled by", cell: handler },
  { name: "Accepted", cell: ({ accepted_at: at }) => time(at) },
];

function why(turn) {
  const words = turn.why ?? (turn.fallback && `${CAUSES[turn.fallback.cause] ?? turn.fallback.cause}: ${rung(turn.fallback.rung)}`);
  return words && make("span", { className: "why" }, capital(words));
}
