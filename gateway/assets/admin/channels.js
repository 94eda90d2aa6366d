// Channels, agents and nodes: their health, and the switches of channels and nodes.

import { get } from "./api.js";
import { operate } from "./dialog.js";
import { badge, button, facts, link, make, show, time } from "./dom.js";
import { address, agentState, channelState, number, plural, revealed, span } from "./format.js";
import { keepFresh } from "./live.js";
import { buttons, empty, heading, list, part } from "./parts.js";

export function channels(view) {
  const agent = view.params.get("sessions");
  if (agent) return sessionsOf(view, agent);
  const all = part(view, {
    title: "Channels",
    load: () => get("channels", {}, view.signal),
    render: ({ items }) => (items.length ? make("div", { className: "cards" }, brokenFirst(items).map((channel) => card(view, channel, () => all.refresh()))) : empty("No channel is configured.")),
  });
  const agents = part(view, {
    title: "Agents",
    load: () => get("agents", {}, view.signal),
    render: ({ items }) => (items.length ? [make("p", { className: "quiet" }, "The figures are those of the last 24 hours."), make("div", { className: "cards" }, items.map(agentCard))] : empty("No agent is configured.")),
  });
  agents.element.id = "agents";
  const nodes = part(view, {
    title: "Nodes",
    load: () => get("nodes", {}, view.signal),
    render: ({ items }) => make("div", { className: "cards" }, items.map((node) => nodeCard(view, node, items, () => nodes.refresh()))),
  });
  nodes.element.id = "nodes";
  show(view.main, heading("Channels and agents"), all.element, agents.element, nodes.element);
  const shown = { "#agents": agents, "#nodes": nodes }[location.hash];
  shown?.element.scrollIntoView();
  keepFresh(() => Promise.all([all.refresh(), agents.refresh(), nodes.refresh()]), { signal: view.signal, topics: ["channel.", "agent.", "operator.", "turn.settled"], pause: 3_000, every: 15_000 });
}

const isWell = ({ live, sends, elsewhere }) => elsewhere || (live && sends);
const brokenFirst = (channels) => [...channels.filter((channel) => !isWell(channel)), ...channels.filter(isWell)];

const pathOf = (name, verb) => `channels/${encodeURIComponent(name)}/${verb}`;

export const resume = (name) =>
  operate({ title: `Resume ${name}?`, text: "What waits is sent now.", action: "Resume", path: pathOf(name, "resume"), done: `${name} goes on.` });

export const tryChannel = (name) =>
  operate({ title: `Try ${name} now?`, text: "What waits is tried now, without the rest of its pauses. What may have arrived is sent again, with a label, once the platform answers.", action: "Try now", path: pathOf(name, "try"), done: `What waits for ${name} is tried now.` });

/** Who paused a channel, since when and why. */
const pausedBy = ({ by, since, reason }) => make("p", {}, `Paused by ${by} since `, time(since, { isExact: true }), reason ? `: ${reason}` : ".");

function card(view, channel, refresh) {
  const name = channel.channel;
  const query = `channel=${encodeURIComponent(name)}`;
  const pause = () => operate({ title: `Pause ${name}?`, text: "Nothing is sent there until you resume it.", action: "Pause", path: pathOf(name, "pause"), done: `${name} is paused.` });
  const act = (words, perform) => button(words, async () => (await perform(name)) && refresh());
  const isLimited = channel.limited_until && Date.parse(channel.limited_until) > Date.now();
  const isChosen = view.params.get("channel") === name;
  return make(
    "article",
    { className: isChosen ? "card chosen" : "card", data: { key: name } },
    make("h3", {}, name, " ", badge(channelState(channel))),
    channel.problem && make("p", { className: "problem" }, channel.problem, channel.failing_since && [" Since ", time(channel.failing_since, { isBoth: true }), "."]),
    channel.paused && pausedBy(channel.paused),
    channel.elsewhere && make("p", { className: "quiet" }, "Another node receives and sends there, and knows how it is."),
    facts([
      ["Platform", channel.platform],
      ["Heard from it", channel.elsewhere ? null : channel.inbound_at ? time(channel.inbound_at) : "not since the start"],
      ["Counts as dead", channel.stale_after_ms && `after ${span(channel.stale_after_ms)} without a sign`],
      ["Last sent", channel.elsewhere ? null : channel.sent_at ? time(channel.sent_at) : "not since the start"],
      ["Limited by the platform", isLimited && ["ends ", time(channel.limited_until)]],
      ["First signal", channel.p50_ms !== undefined && `half after ${span(channel.p50_ms)}, 95 % after ${span(channel.p95_ms)}`],
    ]),
    make("p", { className: "links" }, link(`/admin/turns?${query}`, "Turns"), link(`/admin/deliveries?${query}`, "Deliveries"), link(`/admin/live?${query}`, "Live"), channel.platform === "webhook" && link(`/admin/siri/${encodeURIComponent(channel.name)}`, "Set up Siri")),
    view.mayChange && buttons(!channel.paused && !channel.elsewhere && !channel.sends && act("Try now", tryChannel), channel.paused ? act("Resume", resume) : act("Pause", pause)),
  );
}

/** How far a clock may be wrong, in milliseconds. */
const CLOCK_MS = 2_000;

/** How wrong the clock of a node is. */
const clock = ({ clock_ms: ahead }) => (Math.abs(ahead) <= CLOCK_MS ? "right" : `${span(Math.abs(ahead))} ${ahead > 0 ? "ahead" : "behind"}`);

/** A node, and what it does alone. With one node there is nobody to give that to. */
function nodeCard(view, node, all, refresh) {
  const change = (verb, rest) => operate({ ...rest, path: `nodes/${encodeURIComponent(node.node)}/${verb}` });
  const drain = () => change("drain", { title: `Have ${node.name} give its channels back?`, text: "Other nodes take them. Runs go on there.", action: "Give back", done: `${node.name} gives its channels back within a few seconds.` });
  const resumed = () => change("resume", { title: `Have ${node.name} take channels again?`, text: "It takes those that no other node has.", action: "Take channels", done: `${node.name} takes channels again.` });
  const act = (words, perform) => button(words, async () => (await perform()) && refresh());
  return make(
    "article",
    { className: "card", data: { key: node.node } },
    make("h3", {}, node.name, " ", badge(node.draining ? ["Draining", "warn"] : ["Up", "good"])),
    make("p", { className: "quiet" }, node.this ? "This page comes from it. " : "", make("code", {}, node.node)),
    facts([
      ["Has", node.held.length > 0 && node.held.map(({ lease, since }, index) => [index > 0 && ", ", lease, " since ", time(since)])],
      ["Since", time(node.since)],
      ["Version", node.version],
      ["Configuration", node.revision !== null && `revision ${number(node.revision)}`],
      ["Clock", clock(node)],
      ["Last heard from", all.length > 1 && `${span(node.seen_ms)} ago`],
    ]),
    view.mayChange && all.length > 1 && buttons(node.draining ? act("Take channels", resumed) : act("Give channels back", drain)),
  );
}

const share = ({ runs, failed }) => (runs ? `${number(failed)} of ${number(runs)} (${((100 * failed) / runs).toFixed(1)} %)` : "–");

const money = ({ amount, currency }) => `${amount.toFixed(2)} ${currency}`;

const tokenCounts = ({ input_tokens: read, output_tokens: written }) => `${number(read)} read, ${number(written)} written`;

/** What a member of an agent did in its place, and what it cost. */
const memberItem = (member) =>
  make(
    "li",
    {},
    make("strong", {}, member.name),
    `: ${number(member.answered)} answered, ${number(member.failed)} failed${member.left_out ? "; left out for now" : ""}${member.error ? ` (${member.error})` : ""}`,
    facts([
      ["An answer takes", member.p50_ms !== undefined && `${span(member.p50_ms)} for half, ${span(member.p95_ms)} for 95 %`],
      ["Tokens", member.input_tokens + member.output_tokens > 0 && tokenCounts(member)],
      ["Cost", member.cost && money(member.cost)],
    ]),
  );

/** The agents that answer in an agent's place. */
const members = (all) => [make("h4", {}, "Members"), make("p", { className: "quiet" }, "Their figures are counted since the start, or since one of them was configured anew."), make("ul", { className: "members" }, ...all.map(memberItem))];

const budget = ({ tokens, estimated_tokens: estimated, tokens_per_day: most, cost, cost_per_day: mostCost }) => {
  const about = estimated > 0 ? "about " : "";
  return [most !== undefined && `${about}${number(tokens)} of ${number(most)} tokens`, mostCost && cost && `${about}${money(cost)} of ${money(mostCost)}`].filter(Boolean).join(", ");
};

/** A session's name, and in quotes what it is about, as its agent says. */
const sessionName = ({ session_id: id, name, title }) => [name && [make("strong", {}, revealed(name)), " "], title && make("q", { dir: "auto" }, revealed(title)), make("span", { className: "words" }, make("code", {}, id))];

/** The sessions that an agent remembers by itself. */
function sessionsOf(view, agent) {
  const all = list(view, {
    title: "Newest first",
    path: `agents/${encodeURIComponent(agent)}/sessions`,
    columns: [
      { name: "Session", className: "main-cell", cell: sessionName },
      { name: "Whose", className: "who", cell: ({ person }) => (person ? revealed(person) : "The conversation’s") },
      { name: "Began in", cell: (session) => link(`/admin/conversations/${session.conversation_id}`, address(session)) },
      { name: "Began", cell: ({ started_at: at }) => time(at) },
      { name: "Last used", cell: ({ used_at: at }) => (at ? time(at) : "–") },
      { name: "Own id", cell: ({ has_own_id: has }) => (has ? "Yes" : "No") },
    ],
    key: ({ session_id: id }) => id,
    none: () => "The agent remembers no session by itself.",
  });
  show(view.main, make("p", { className: "back" }, link("/admin/channels#agents", "All channels and agents")), heading(`Sessions of ${agent}`), all.element);
  keepFresh(all.refresh, { signal: view.signal, topics: ["agent.", "turn.settled"], pause: 3_000, every: 15_000 });
}

/** What an agent did, and what it cost; of the last 24 hours. */
const figures = (agent) => [
  ["Now", [agent.running > 0 && plural(agent.running, "run"), agent.waiting > 0 && `${plural(agent.waiting, "turn")} waiting`].filter(Boolean).join(", ") || "–"],
  ["Runs that failed", share(agent)],
  ["A run takes", agent.runs > 0 && `${span(agent.p50_ms)} for half, ${span(agent.p95_ms)} for 95 %`],
  ["Tokens", tokenCounts(agent)],
  ["Cost", agent.cost && money(agent.cost)],
  ["Budget of today", agent.budget && budget(agent.budget)],
  ["Sessions of its own", agent.sessions > 0 && link(`/admin/channels?sessions=${encodeURIComponent(agent.name)}`, number(agent.sessions))],
];

const agentCard = (agent) =>
  make(
    "article",
    { className: "card", data: { key: agent.name } },
    make("h3", {}, agent.name, " ", badge(agentState(agent))),
    make("p", { className: "quiet" }, `${agent.description}${agent.is_default ? ". The default" : ""}`),
    agent.error && make("p", { className: "problem" }, agent.error, agent.failing_since && [" First ", time(agent.failing_since), "."]),
    facts(figures(agent)),
    agent.members?.length > 0 && members(agent.members),
    make("p", { className: "links" }, link(`/admin/turns?agent=${encodeURIComponent(agent.name)}`, "Turns")),
  );
