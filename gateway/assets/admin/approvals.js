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
      return found.length ? decidedTable(view, found) : empty("Nothing was decided yet.");
    },
  });
  const refresh = () => Promise.all([waiting.refresh(), decided.refresh()]);
  show(view.main, heading("Approvals"), waiting.element, decided.element);
  keepFresh(refresh, { signal: view.signal, topics: ["approval.", "operator."], every: 15_000 });
}

const block = (label, text) => make("pre", { tabIndex: 0, attributes: { role: "region", "aria-label": label } }, revealed(text));

/** The whole of what the agent asks, read when it is opened: lists do not have it. */
function whole(view, { id, is_shortened: isShortened, has_whole: isKept }) {
  if (!isShortened || !view.mayChange) return null;
  if (!isKept) return make("p", { className: "quiet" }, "The agent asks with more than that. It is not kept: it is too long or sealed, or was asked before an update.");
  const body = make("div", { data: { own: "" } });
  const fold = make("details", { data: { key: `whole ${id}` } }, make("summary", {}, "All of it"), body);
  async function fill() {
    show(body, make("p", { className: "loading" }, "Loading…"));
    try {
      const { whole: found } = await get(`approvals/${encodeURIComponent(id)}`, {}, view.signal);
      show(body, found ? [block("The whole action", found.action), found.details && block("The whole of what it is about", found.details), found.kind && block("The whole kind", found.kind)] : make("p", { className: "quiet" }, "It is not kept any more."));
    } catch (problem) {
      if (view.signal.aborted || problem.isSignedOut) return;
      show(body, make("p", { className: "failure" }, `${problem.message} `, button("Try again", fill, "quiet-button")));
    }
  }
  fold.addEventListener("toggle", () => fold.open && !body.querySelector("pre") && fill());
  return fold;
}

function card(view, approval, refresh) {
  const { id, turn_id: turn, channel, agent, person, action, details, kind, options } = approval;
  const act = (label, approves, className, option) => button(label, async () => (await decide(approval, approves, option)) && refresh(), className);
  const own = options.map(({ name, allows }, index) => act(`${allows ? "Approve" : "Decline"}: ${revealed(name)}`, allows, "button", { name, number: index + 1 }));
  return make(
    "article",
    { className: "card", data: { key: id } },
    make("h3", { dir: "auto" }, revealed(action)),
    details && block("What it is about", details),
    whole(view, approval),
    facts([
      ["Agent", agent],
      ["Kind", kind && make("code", {}, revealed(kind))],
      ["For", `${revealed(person)} on ${channel}`],
      ["Asked", time(approval.asked_at)],
      ["Expires", approval.expires_at && time(approval.expires_at)],
      ["Turn", link(`/admin/turns/${turn}`, "What was said")],
    ]),
    view.mayChange && buttons(act("Approve", true, "button primary"), act("Decline", false), own),
  );
}

const NOTE = { name: "note", label: "Note", hint: "The agent is told it, and it is in the audit.", maxLength: 1000 };

/** Without `option` it is a plain yes or no. */
const decide = ({ id, agent, action, person }, approves, option) =>
  operate({
    title: approves ? "Approve this?" : "Decline this?",
    text: `${agent} wants to do this for ${revealed(person)}: ${revealed(action)}`,
    content: option && make("p", { dir: "auto" }, `The agent’s own option: ${revealed(option.name)}`),
    body: option ? { option: option.number } : {},
    action: approves ? "Approve" : "Decline",
    isDanger: !approves,
    path: `approvals/${encodeURIComponent(id)}/${approves ? "approve" : "decline"}`,
    done: approves ? `Approved. ${agent} goes on.` : `Declined. ${agent} is told.`,
    fields: [NOTE],
  });

const TONES = { approved: "good", declined: "bad", expired: "warn", dropped: "quiet" };

const WHY = { expired: "Nobody decided in time.", dropped: "The turn ended before." };

const decidedTable = (view, items) =>
  table(
    "Decided",
    [
      { name: "Action", className: "main-cell", cell: (approval) => [link(`/admin/turns/${approval.turn_id}`, revealed(approval.action)), whole(view, approval)] },
      { name: "Decision", cell: ({ state, note, chosen }) => [badge([capital(state), TONES[state] ?? "quiet"]), chosen && make("span", { className: "why", dir: "auto" }, revealed(chosen)), (note ?? WHY[state]) && make("span", { className: "why" }, note ?? WHY[state])] },
      { name: "By", className: "who", cell: ({ decided_by: by }) => by ?? "–" },
      { name: "When", cell: ({ decided_at: at, asked_at: asked }) => time(at ?? asked) },
      { name: "Agent", cell: ({ agent }) => agent },
      { name: "For", cell: ({ person, channel }) => `${revealed(person)} on ${channel}` },
    ],
    items,
    ({ id }) => id,
  );
