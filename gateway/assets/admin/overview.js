// Overview: whether everything is answered, and what is wrong.

import { get } from "./api.js";
import { resume, tryChannel } from "./channels.js";
import { charts } from "./charts.js";
import { retryMany } from "./deadletters.js";
import { badge, button, facts, link, make, show, table, time } from "./dom.js";
import { agentState, channelState, excerpt, number, person, plural, span } from "./format.js";
import { keepFresh } from "./live.js";
import { mark } from "./logs.js";
import { empty, heading, part } from "./parts.js";

export function overview(view) {
  const graphs = charts(view);
  const day = make("section", { className: "part", attributes: { "aria-labelledby": "day" } }, make("h2", { id: "day" }, "The last 24 hours"), graphs.element);
  const parts = make("div", { data: { own: "" } });
  const head = heading("Overview");
  const now = part(view, {
    title: "Now",
    className: "bare",
    load: () => Promise.all([get("overview", {}, view.signal), get("pairings", {}, view.signal), get("approvals", {}, view.signal)]),
    render([found, { items: requests }, { items: approvals }]) {
      show(parts, details(found));
      // While something is wrong, the charts can wait.
      show(view.main, head, now.element, found.ok ? [day, parts, loops.element] : [loops.element, parts, day]);
      graphs.put(found);
      return [headline(found), problems(view, found, () => refresh()), asking(requests, approvals)];
    },
  });
  const loops = part(view, {
    title: "Open loops",
    load: () => get("loops", { limit: 50 }, view.signal),
    render: loopTable,
  });
  const refresh = () => Promise.all([now.refresh(), loops.refresh()]);

  show(view.main, head, now.element, loops.element);
  keepFresh(refresh, { signal: view.signal, topics: ["turn.", "delivery.dead", "delivery.parked", "delivery.discarded", "channel.", "agent.", "person.", "approval.", "operator."], pause: 2_000, every: 15_000 });
}

function headline({ ok, headline: words, problems: all, at }) {
  // With several problems, the first is the headline; the list has all of them.
  const text = all.length > 1 ? `${plural(all.length, "thing is", "things are")} wrong.` : all.length ? sentence(all[0]) : words;
  return make("div", { className: "headline", data: { tone: ok ? "good" : "bad", key: "headline" } }, make("p", { attributes: { role: "status" } }, text), make("p", { className: "quiet" }, "As of ", time(at)));
}

/** What is wrong, since when and why, in this browser's time zone. */
function sentence({ kind, what, since, why, count, text }) {
  if (!what) return text;
  const first = count > 1 ? ", the first" : "";
  const word = ["undeliverable", "undelivered", "undelivered_alerts", "error", "node"].includes(kind) ? "at" : "since";
  return [what, since && [`${first} ${word} `, time(since, { isBoth: true })], why && `: ${why.replace(/\.$/, "")}`, "."];
}

function problems(view, { problems: all }, refresh) {
  if (!all.length) return null;
  const item = (problem) =>
    make("li", { data: { key: `${problem.kind} ${problem.subject ?? ""}` } }, make("p", {}, all.length > 1 ? sentence(problem) : detail(problem)), make("div", { className: "buttons" }, mend(view, problem, refresh)));
  return make("ul", { className: "problems", data: { key: "problems" }, attributes: { "aria-label": "What is wrong" } }, all.map(item));
}

/** A single problem is the headline already: beside its buttons stands what to do. */
function detail({ kind }) {
  const words = {
    store: "Nothing is accepted until the disk or the database is well again.",
    channel: "Its deliveries wait, and go out when it is back.",
    paused: "Its deliveries wait until it is resumed.",
    agent: "Its turns get what the ladder says.",
    overdue: "Look at what each of them waits for.",
    parked_alerts: "Name another way to be told in [alerts].",
    undelivered_alerts: "Name another way to be told in [alerts].",
    parked: "They are tried again, with growing pauses.",
    undelivered: "Send again what could not be sent, or look first.",
    undeliverable: "Send again what could not be sent, or look first.",
    callbacks: "Send them again, or look first.",
    absent: "Configure the channel again, or give these turns up.",
    pairing: "Let some of them in, or decline them: each makes room.",
    schedule: "It begins nothing until it is resumed.",
    error: "Nobody has seen this kind of error before.",
    approval: "Decide here, or let somebody in who may.",
  };
  return words[kind] ?? "";
}

const look = (href, words) => make("a", { className: "button", attributes: { href } }, words);

/** That people wait to be let in, or agents for a decision, if any do. */
function asking(requests, approvals) {
  const item = (count, words, href, label) => count > 0 && make("li", { data: { key: href } }, make("p", {}, words), make("div", { className: "buttons" }, look(href, label)));
  const items = [
    item(requests.length, `${plural(requests.length, "person asks", "people ask")} to be let in.`, "/admin/people", "Look at the requests"),
    item(approvals.length, `${plural(approvals.length, "action waits", "actions wait")} for approval.`, "/admin/approvals", "Look at the approvals"),
  ].filter(Boolean);
  return items.length ? make("ul", { className: "problems", data: { key: "asking" }, attributes: { "aria-label": "What you are asked" } }, items) : null;
}

function mend(view, { kind, subject }, refresh) {
  const retry = view.mayChange && button("Retry all", async () => (await retryMany({})) && refresh(), "button primary");
  const dead = () => [retry, look("/admin/dead-letters", "Look at them")];
  const acts = {
    store: () => [look("/admin/logs", "Look at the errors")],
    channel: () => [view.mayChange && button("Try now", async () => (await tryChannel(subject)) && refresh(), "button primary"), look(`/admin/channels?channel=${encodeURIComponent(subject)}`, `Look at ${subject}`)],
    paused: () => [view.mayChange && button("Resume", async () => (await resume(subject)) && refresh(), "button primary"), look(`/admin/channels?channel=${encodeURIComponent(subject)}`, `Look at ${subject}`)],
    agent: () => [look("/admin/channels#agents", "Look at the agents"), look(`/admin/turns?agent=${encodeURIComponent(subject)}`, "Its turns")],
    holder: () => [look("/admin/channels#nodes", "Look at the nodes")],
    node: () => [look("/admin/channels#nodes", "Look at the nodes")],
    overdue: () => [look("/admin/turns?state=overdue", "Look at these turns")],
    parked: () => [look(`/admin/deliveries?state=parked&channel=${encodeURIComponent(subject)}`, "Look at them")],
    undeliverable: dead,
    parked_alerts: () => [look(`/admin/deliveries?state=parked&channel=${encodeURIComponent(subject)}`, "Look at them")],
    undelivered: dead,
    undelivered_alerts: dead,
    callbacks: dead,
    absent: () => [look("/admin/turns?state=absent", "Look at these turns")],
    error: () => [view.mayChange && button("Acknowledge", async () => (await mark(subject, "acknowledge")) && refresh(), "button primary"), look("/admin/logs", "Look at the errors")],
    approval: () => [look("/admin/approvals", "Look at the approvals")],
    pairing: () => [look("/admin/people", "Look at the requests")],
    schedule: () => [look(`/admin/schedules/${encodeURIComponent(subject)}`, "Look at the schedule")],
  };
  return acts[kind]?.().filter(Boolean) ?? [];
}

/** How much of a day's speech is used. */
const speech = (part) => part && `${span(part.seconds * 1_000)} of ${span(part.seconds_per_day * 1_000)}`;

function details({ backlog, channels, agents, heard, spoken }) {
  const section = (id, title, ...content) => make("section", { className: "part", data: { key: id }, attributes: { "aria-labelledby": `${id}-title` } }, make("h2", { id: `${id}-title` }, title), ...content);
  return [
    section("waiting", "What waits", tiles(backlog)),
    section("channels", "Channels", channels.length ? channelTable(channels) : empty("No channel is configured.")),
    section("agents", "Agents", agents.length ? agentTable(agents) : empty("No agent is configured.")),
    (heard || spoken) && section("speech", "Speech of today", facts([["Written down", speech(heard)], ["Spoken", speech(spoken)]])),
  ];
}

function tiles(backlog) {
  const tile = (count, words, href, tone) =>
    make("li", { data: { key: words } }, make("a", { data: { tone: count > 0 && tone ? tone : "" }, attributes: { href } }, make("strong", {}, number(count)), make("span", {}, words)));
  return make(
    "ul",
    { className: "tiles" },
    tile(backlog.open, "turns owed an answer", "/admin/turns?state=open"),
    tile(backlog.overdue, "of them late", "/admin/turns?state=overdue", "bad"),
    tile(backlog.waiting, "wait for a run", "/admin/turns?state=open"),
    tile(backlog.pending_deliveries, "deliveries to send", "/admin/deliveries?state=pending"),
    tile(backlog.parked_deliveries, "of them parked", "/admin/deliveries?state=parked", "warn"),
    tile(backlog.undeliverable + backlog.dead_callbacks, "dead letters", "/admin/dead-letters", "bad"),
  );
}

const since = (words, at) => (at ? [words, " ", time(at)] : "–");

const channelTable = (channels) =>
  table(
    "Channels",
    [
      { name: "Channel", cell: ({ channel }) => link(`/admin/channels?channel=${encodeURIComponent(channel)}`, channel) },
      { name: "State", cell: (channel) => [badge(channelState(channel)), channel.problem && make("span", { className: "why" }, channel.problem)] },
      { name: "Receives", cell: ({ inbound_at: at }) => since("heard", at) },
      { name: "Sends", cell: ({ sent_at: at }) => since("sent", at) },
    ],
    channels,
    ({ channel }) => channel,
  );

const agentTable = (agents) =>
  table(
    "Agents",
    [
      { name: "Agent", cell: ({ name }) => link("/admin/channels#agents", name) },
      { name: "State", cell: (agent) => [badge(agentState(agent)), agent.error && make("span", { className: "why" }, agent.error)] },
      { name: "Since", cell: ({ failing_since: failing, ok_at: ok }) => (failing ? since("fails, first", failing) : since("answered", ok)) },
      { name: "Runs", cell: ({ runs, failed }) => `${number(runs)}${failed ? `, ${number(failed)} failed` : ""}` },
      { name: "Half within", cell: ({ runs, p50_ms: p50 }) => (runs ? span(p50) : "–") },
    ],
    agents,
    ({ name }) => name,
  );

const turnTable = (label, column, turns) =>
  table(
    label,
    [
      { name: "Person", cell: (turn) => link(`/admin/turns/${turn.turn_id}`, `${person(turn)}: ${excerpt(turn.text, 80)}`) },
      column,
      { name: "Channel", cell: ({ channel }) => channel },
      { name: "Accepted", cell: ({ accepted_at: at }) => time(at) },
    ],
    turns,
    ({ turn_id: id }) => id,
  );

const KINDS = {
  late: ["Late", "bad"],
  deferred: ["Promised", "warn"],
  open: ["Waits", ""],
  asked: ["Was asked", ""],
  failed: ["Failed", "bad"],
};

/** What is owed, what people were asked and what has failed, the most pressing first; what waits for one thing together. */
function loopTable({ items, total }) {
  if (!items.length) return empty("Nothing is owed or has failed, and nobody was asked anything that they have not answered.");
  const turns = items.map(({ kind, because, turn }) => ({ ...turn, kind, because }));
  const reason = ({ kind, because, why, wake_at: at }) => (kind === "deferred" && at ? ["due ", time(at)] : (kind === "late" || kind === "failed") && !because && why);
  const what = { name: "What", cell: (turn) => [badge(KINDS[turn.kind]), reason(turn) && make("span", { className: "why" }, reason(turn))] };
  const rest = turns.filter(({ because }) => !because);
  const causes = [...new Set(turns.map(({ because }) => because).filter(Boolean))];
  const group = (because) => {
    const waiting = turns.filter((turn) => turn.because === because);
    return make("details", { data: { key: `because ${because}` } }, make("summary", {}, `${plural(waiting.length, "turn waits", "turns wait")} because ${because}`), turnTable(`Because ${because}`, what, waiting));
  };
  return [causes.map(group), rest.length > 0 && turnTable("Open loops", what, rest), total > items.length && make("p", { className: "quiet" }, `And ${number(total - items.length)} more.`)];
}
