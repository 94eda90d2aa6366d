// Deliveries: what was sent, and what waits to be sent.

import { tabs } from "./deadletters.js";
import { operate } from "./dialog.js";
import { badge, button, link, make, show, table, time } from "./dom.js";
import { address, capital, deliveryState, deliveryStates, excerpt, ORIGINS, plural, via } from "./format.js";
import { keepFresh } from "./live.js";
import { channelField, filters, heading, list } from "./parts.js";

export function deliveries(view) {
  const found = list(view, {
    title: "Deliveries",
    className: "bare",
    path: "deliveries",
    params: () => Object.fromEntries(view.params),
    columns: view.mayChange ? [...deliveryColumns, { name: "What to do", cell: (delivery) => tryButton(delivery, () => found.refresh()) }] : deliveryColumns,
    key: ({ delivery_id: id }) => id,
    none: () => (view.params.size ? "No delivery matches." : "There are no deliveries yet."),
    what: "delivery",
  });
  const fields = [
    { name: "state", label: "State", kind: "select", options: [["", "All"], ...deliveryStates] },
    channelField(view),
    { name: "person", label: "Person", kind: "search" },
    { name: "origin", label: "From", kind: "select", options: [["", "Anything"], ...Object.entries(ORIGINS)] },
  ];
  show(view.main, heading("Deliveries"), tabs("deliveries"), filters(view, fields, found.restart), found.element);
  keepFresh(found.refresh, { signal: view.signal, topics: ["delivery.", "turn.claimed", "turn.settled", "operator."], pause: 2_000 });
}

const deliveryColumns = [
  {
    name: "Delivery",
    className: "main-cell",
    cell: ({ turn_id: turn, text }) => link(`/admin/turns/${turn}`, make("span", { className: "words" }, excerpt(text) || "(no text)")),
  },
  { name: "State", cell: (delivery) => [badge(deliveryState(delivery)), why(delivery)] },
  { name: "What", cell: (delivery) => (delivery.origin === "operator" ? "A message of an operator" : capital(via(delivery))) },
  { name: "Where", cell: (delivery) => link(`/admin/conversations/${delivery.conversation_id}`, address(delivery)) },
  { name: "Created", cell: ({ created_at: at }) => time(at) },
];

/** A button that tries a delivery that waits. */
function tryButton({ delivery_id: id, state }, refresh) {
  if (state !== "pending" && state !== "parked") return null;
  const text = "It is sent now, without the rest of its pause. If it may have arrived, it has a label, and may be seen twice.";
  return button("Try now", async () => (await operate({ title: "Try it now?", text, action: "Try now", path: `deliveries/${id}/try`, done: "It is tried now." })) && refresh());
}

function why({ error, tries, next_attempt_at: next }) {
  const tried = tries > 1 ? `Tried ${plural(tries, "time")}. ` : "";
  const isDue = Date.parse(next) <= Date.now();
  const due = next && (isDue ? "The next attempt is due. " : ["The next attempt is ", time(next), ". "]);
  if (!tried && !due && !error) return null;
  return make("span", { className: "why" }, tried, due, error);
}

/** A short table of deliveries, for other sections. */
export const deliveryTable = (label, items) => table(label, deliveryColumns, items, ({ delivery_id: id }) => id);
