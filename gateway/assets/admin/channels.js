// Channels and agents: their health, and the switches of channels.

import { get } from "./api.js";
import { operate } from "./dialog.js";
import { badge, button, facts, link, make, show, table, time } from "./dom.js";
import { address, agentState, channelState, number, revealed, span } from "./format.js";
import { keepFresh } from "./live.js";
import { buttons, empty, heading, list, part } from "./parts.js";

export function channels(view) {
  const all = part(view, {
    title: "Channels",
    load: () => get("channels", {}, view.signal),
    render: ({ items }) => (items.length ? make("div", { className: "cards" }, brokenFirst(items).map((channel) => card(view, channel, () => all.refresh()))) : empty("No channel is configured.")),
  });
  const agents = part(view, {
    title: "Agents",
    load: () => get("agents", {}, view.signal),
    render: ({ items }) => (items.length ? [make("p", { className: "quiet" }, "The figures are those of the last 24 hours."), agentTable(items)] : empty("No agent is configured.")),
  });
  agents.element.id = "agents";
  const chosen = view.params.get("sessions");
  const sessions = chosen && sessionList(view, chosen);
  show(view.main, heading("Channels and agents"), all.element, agents.element, sessions && sessions.element);
  if (sessions) sessions.element.scrollIntoView();
  if (location.hash === "#agents") agents.element.scrollIntoView();
  keepFresh(() => Promise.all([all.refresh(), agents.refresh(), sessions && sessions.refresh()]), { signal: view.signal, topics: ["channel.", "agent.", "operator.", "turn.settled"], pause: 3_000, every: 15_000 });
}

const isWell = ({ live, sends }) => live && sends;
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
    facts([
      ["Platform", channel.platform],
      ["Heard from it", channel.inbound_at ? time(channel.inbound_at) : "not since the start"],
      ["Counts as dead", channel.stale_after_ms && `after ${span(channel.stale_after_ms)} without a sign`],
      ["Last sent", channel.sent_at ? time(channel.sent_at) : "not since the start"],
      ["Limited by the platform", isLimited && ["ends ", time(channel.limited_until)]],
      ["First signal", channel.p50_ms !== undefined && `half after ${span(channel.p50_ms)}, 95 % after ${span(channel.p95_ms)}`],
    ]),
    make("p", { className: "links" }, link(`/admin/turns?${query}`, "Turns"), link(`/admin/deliveries?${query}`, "Deliveries"), link(`/admin/live?${query}`, "Live")),
    view.mayChange && buttons(!channel.paused && !channel.sends && act("Try now", tryChannel), channel.paused ? act("Resume", resume) : act("Pause", pause)),
  );
}

const share = ({ runs, failed }) => (runs ? `${number(failed)} of ${number(runs)} (${((100 * failed) / runs).toFixed(1)} %)` : "–");

const member = ({ name, left_out: isLeftOut, answered, failed, p50_ms: p50, error }) =>
  make("li", {}, make("strong", {}, name), `: ${number(answered)} answered, ${number(failed)} failed${p50 === undefined ? "" : `, half within ${span(p50)}`}${isLeftOut ? "; left out for now" : ""}${error ? ` (${error})` : ""}`);

const money = ({ amount, currency }) => `${amount.toFixed(2)} ${currency}`;

const budget = ({ tokens, estimated_tokens: estimated, tokens_per_day: most, cost, cost_per_day: mostCost }) => {
  const about = estimated > 0 ? "about " : "";
  return [most !== undefined && `${about}${number(tokens)} of ${number(most)} tokens`, mostCost && cost && `${about}${money(cost)} of ${money(mostCost)}`].filter(Boolean).join(", ");
};

/** A session's name, and in quotes what it is about, as its agent says. */
const sessionName = ({ session_id: id, name, title }) => [name && [make("strong", {}, revealed(name)), " "], title && make("q", { dir: "auto" }, revealed(title)), make("span", { className: "words" }, make("code", {}, id))];

/** The sessions that an agent remembers by itself. */
const sessionList = (view, agent) =>
  list(view, {
    title: `Sessions of ${agent}`,
    path: `agents/${encodeURIComponent(agent)}/sessions`,
    columns: [
      { name: "Session", className: "main-cell", cell: sessionName },
      { name: "Whose", cell: ({ person }) => (person ? revealed(person) : "its conversation’s") },
      { name: "Began in", cell: (session) => link(`/admin/conversations/${session.conversation_id}`, address(session)) },
      { name: "Began", cell: ({ started_at: at }) => time(at) },
      { name: "Last used", cell: ({ used_at: at }) => (at ? time(at) : "–") },
      { name: "Id of the agent’s own", cell: ({ has_own_id: has }) => (has ? "Yes" : "No") },
    ],
    key: ({ session_id: id }) => id,
    none: () => "The agent remembers no session by itself.",
  });

const agentTable = (agents) =>
  table(
    "Agents",
    [
      { name: "Agent", className: "main-cell", cell: ({ name, is_default: isDefault, description, members }) => [link(`/admin/turns?agent=${encodeURIComponent(name)}`, make("strong", {}, name)), make("span", { className: "words" }, `${description}${isDefault ? ". The default" : ""}`), members?.length > 0 && make("ul", {}, ...members.map(member))] },
      { name: "State", cell: (agent) => [badge(agentState(agent)), make("span", { className: "why" }, agent.error, agent.failing_since && [" First ", time(agent.failing_since)])] },
      { name: "Runs now", cell: ({ running }) => number(running) },
      { name: "Turns that wait", cell: ({ waiting }) => number(waiting) },
      { name: "Runs that failed", cell: share },
      { name: "Half within", cell: ({ runs, p50_ms: p50 }) => (runs ? span(p50) : "–") },
      { name: "95 % within", cell: ({ runs, p95_ms: p95 }) => (runs ? span(p95) : "–") },
      { name: "Tokens read", cell: ({ input_tokens: tokens }) => number(tokens) },
      { name: "Tokens written", cell: ({ output_tokens: tokens }) => number(tokens) },
      ...(agents.some(({ sessions }) => sessions) ? [{ name: "Sessions of its own", cell: ({ name, sessions }) => (sessions ? link(`/admin/channels?sessions=${encodeURIComponent(name)}`, number(sessions)) : "–") }] : []),
      ...(agents.some(({ cost }) => cost) ? [{ name: "Cost", cell: ({ cost }) => (cost ? money(cost) : "–") }] : []),
      ...(agents.some((agent) => agent.budget) ? [{ name: "Budget of today", cell: (agent) => (agent.budget ? budget(agent.budget) : "–") }] : []),
    ],
    agents,
    ({ name }) => name,
  );
