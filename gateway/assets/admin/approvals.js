// Approvals: what agents ask before they act, and what was decided.

import { get } from "./api.js";
import { operate } from "./dialog.js";
import { badge, button, facts, link, make, show, table, time } from "./dom.js";
import { capital, revealed } from "./format.js";
import { keepFresh } from "./live.js";
import { buttons, empty, heading, part } from "./parts.js";

/** How many decided ones are shown. */
const SHOWN = 50;

export function approvals(view) {
  const waiting = part(view, {
    title: "Waiting",
    load: () => get("approvals", {}, view.signal),
    render: ({ items }) => (items.length ? make("div", { className: "cards" }, items.map((approval) => card(view, approval, refresh))) : empty("No agent waits for a decision.")),
  });
  const decided = part(view, {
    title: "Decided",
    load: () => get("approvals", { state: "all" }, view.signal),
    render({ items }) {
      const found = items.filter(({ state }) => state !== "waiting").slice(0, SHOWN);
      return found.length ? decidedTable(found) : empty("Nothing was decided yet.");
    },
  });
  const refresh = () => Promise.all([waiting.refresh(), decided.refresh()]);
  show(view.main, heading("Approvals"), waiting.element, decided.element);
  keepFresh(refresh, { signal: view.signal, topics: ["approval.", "operator."], every: 15_000 });
}

function card(view, approval, refresh) {
  const { id, turn_id: turn, channel, agent, person, action, details, kind } = approval;
  const act = (label, approves, className) => button(label, async () => (await decide(approval, approves)) && refresh(), className);
  return make(
    "article",
    { className: "card", data: { key: id } },
    make("h3", { dir: "auto" }, revealed(action)),
    details && make("pre", { tabIndex: 0, attributes: { role: "region", "aria-label": "What it is about" } }, revealed(details)),
    facts([
      ["Agent", agent],
      ["Kind", kind && make("code", {}, revealed(kind))],
      ["For", `${person} on ${channel}`],
      ["Asked", time(approval.asked_at)],
      ["Expires", approval.expires_at && time(approval.expires_at)],
      ["Turn", link(`/admin/turns/${turn}`, "What was said")],
    ]),
    view.mayChange && buttons(act("Approve", true, "button primary"), act("Decline", false)),
  );
}

const NOTE = { name: "note", label: "Note", hint: "The agent is told it, and it is in the audit.", maxLength: 1000 };

const decide = ({ id, agent, action, person }, approves) =>
  operate({
    title: approves ? "Approve this?" : "Decline this?",
    text: `${agent} wants to do this for ${person}: ${revealed(action)}`,
    action: approves ? "Approve" : "Decline",
    isDanger: !approves,
    path: `approvals/${encodeURIComponent(id)}/${approves ? "approve" : "decline"}`,
    done: approves ? `Approved. ${agent} goes on.` : `Declined. ${agent} is told.`,
    fields: [NOTE],
  });

const TONES = { approved: "good", declined: "bad", expired: "warn", dropped: "quiet" };

const WHY = { expired: "Nobody decided in time.", dropped: "The turn ended before." };

const decidedTable = (items) =>
  table(
    "Decided",
    [
      { name: "Action", className: "main-cell", cell: ({ action, turn_id: turn }) => link(`/admin/turns/${turn}`, revealed(action)) },
      { name: "Decision", cell: ({ state, note }) => [badge([capital(state), TONES[state] ?? "quiet"]), (note ?? WHY[state]) && make("span", { className: "why" }, note ?? WHY[state])] },
      { name: "By", cell: ({ decided_by: by }) => by ?? "–" },
      { name: "When", cell: ({ decided_at: at, asked_at: asked }) => time(at ?? asked) },
      { name: "Agent", cell: ({ agent }) => agent },
      { name: "For", cell: ({ person, channel }) => `${person} on ${channel}` },
    ],
    items,
    ({ id }) => id,
  );
