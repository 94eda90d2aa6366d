// Conversations: their list, a search in everything that was written, and one as the person saw it.

import { get, post } from "./api.js";
import { deliveryTable } from "./deliveries.js";
import { ask } from "./dialog.js";
import { announce, badge, button, facts, link, make, show, table, time } from "./dom.js";
import { address, excerpt, full, minute, number } from "./format.js";
import { keepFresh } from "./live.js";
import { buttons, channelField, empty, filters, heading, list, part } from "./parts.js";

export function conversations(view) {
  const params = () => Object.fromEntries(view.params);
  const found = list(view, {
    title: "Conversations",
    className: "bare",
    path: "conversations",
    params,
    columns: [
      { name: "Conversation", className: "main-cell", cell: (one) => link(`/admin/conversations/${one.conversation_id}`, make("strong", {}, one.name ?? one.chat), make("span", { className: "words" }, excerpt(one.last_text ?? ""))) },
      { name: "Where", cell: address },
      { name: "Turns", cell: ({ turns }) => number(turns) },
      { name: "Open", cell: ({ open }) => (open ? badge([`${number(open)} open`, "wait"]) : "–") },
      { name: "Last", cell: ({ last_at: at }) => time(at) },
    ],
    key: ({ conversation_id: id }) => id,
    none: () => (view.params.size ? "No conversation matches." : "Nobody has written yet."),
    what: "conversation",
  });
  const hits = make("div");
  let search = null;
  const showHits = () => {
    if (!view.params.get("text")) {
      search = null;
      return show(hits);
    }
    if (search) return search.restart();
    search = list(view, {
      title: "Messages with this text",
      path: "search",
      params: () => ({ q: view.params.get("text"), channel: view.params.get("channel") }),
      columns: [
        { name: "Message", className: "main-cell", cell: (hit) => link(`/admin/turns/${hit.turn_id}`, make("span", { className: "words" }, hit.excerpt)) },
        { name: "Written by", cell: ({ speaker, name }) => name ?? WHO[speaker] ?? speaker },
        { name: "Where", cell: (hit) => link(`/admin/conversations/${hit.conversation_id}`, address(hit)) },
        { name: "When", cell: ({ at }) => time(at) },
      ],
      key: ({ turn_id: id, speaker, at }) => `${id} ${speaker} ${at}`,
      none: () => "Nobody wrote this.",
    });
    show(hits, search.element);
  };
  const changed = () => {
    found.restart();
    showHits();
  };
  const send = view.mayChange && buttons(button("Send a message", () => sendTo(view, view.params.get("channel"))));
  const fields = [{ name: "text", label: "Search", kind: "search", placeholder: "Words, or a name", isWide: true }, channelField(view)];
  show(view.main, heading("Conversations", send), filters(view, fields, changed), found.element, hits);
  showHits();
  keepFresh(found.refresh, { signal: view.signal, topics: ["turn.accepted", "turn.settled", "delivery.delivered"], pause: 2_000 });
}

async function sendTo(view, channel) {
  const sent = await ask({
    title: "Send a message",
    text: "It goes to a conversation in which somebody has written before.",
    fields: [
      { name: "to", label: "Conversation", placeholder: "CHANNEL/CHAT", value: channel ? `${channel}/` : "", hint: "For example telegram.main/42, or telegram.main/42/7 for a thread.", required: true, spellcheck: false },
      { name: "text", label: "Message", kind: "textarea", required: true },
    ],
    action: "Send",
    perform: (values) => post("messages", values),
  });
  if (!sent) return;
  // A message of an operator is a turn of its own.
  view.go(`/admin/turns/${sent.id}`);
  announce("The message is on its way.");
}

export function conversation(view) {
  const path = `conversations/${encodeURIComponent(view.id)}`;
  const title = heading("Conversation");
  let older = [];
  let before;

  const load = async () => {
    const found = await get(path, {}, view.signal);
    if (!older.length) before = found.next;
    return found;
  };
  const body = part(view, {
    title: "Transcript",
    load,
    render(found) {
      const name = found.name ?? found.chat;
      view.setTitle(name);
      show(title, make("h1", { tabIndex: -1 }, name));
      show(about, facts([["Where", address(found)], ["Turns", link(`/admin/turns?conversation=${found.conversation_id}`, number(found.turns))], ["Open", found.open > 0 && number(found.open)]]));
      show(more, sessions(found), sentTo(found));
      return transcript([...older, ...found.transcript]);
    },
  });
  const earlier = async (event) => {
    event.currentTarget.disabled = true;
    try {
      const found = await get(path, { before }, view.signal);
      older = [...found.transcript, ...older];
      before = found.next;
      await body.refresh();
    } catch (problem) {
      if (!view.signal.aborted) announce(problem.message);
    }
  };
  function transcript(messages) {
    if (!messages.length) return empty("Nothing was said here yet.");
    return [
      before && make("div", { className: "pager", data: { key: "earlier" } }, button("Earlier messages", earlier)),
      make("ol", { className: "transcript", data: { key: "transcript" } }, messages.map(message)),
    ];
  }
  const about = make("div");
  const more = make("div");
  show(view.main, make("p", { className: "back" }, link("/admin/conversations", "All conversations")), title, about, body.element, view.mayChange && composer(view, body.refresh), more);
  keepFresh(body.refresh, { signal: view.signal, topics: ["turn.", "delivery."], pause: 1_500, every: 30_000 });
}

const WHO = { person: "The person", agent: "The agent", gateway: "The gateway", operator: "An operator" };
const STATES = { waiting: ["Not sent yet", "wait"], failed: ["Could not be sent", "bad"] };

function message({ at, from, name, text, spoken, turn_id: turn, delivery_id: id, state }) {
  const day = new Date(at).toDateString() === new Date().toDateString() ? "" : `${new Date(at).toLocaleDateString(undefined, { day: "numeric", month: "short" })}, `;
  const when = make("time", { title: full(at), attributes: { datetime: at } }, day + minute(at));
  return make(
    "li",
    { className: "said", data: { from, state, key: `${id ?? turn} ${from} ${at}` } },
    make("p", { className: "meta" }, make("strong", {}, name ?? WHO[from] ?? from), " ", turn ? link(`/admin/turns/${turn}`, when) : when),
    make("p", { className: "words" }, spoken && (from === "person" ? "🎤 " : "🔊 "), text || "(no text)"),
    STATES[state] && badge(STATES[state]),
  );
}

function sessions({ sessions: all = [] }) {
  if (!all.length) return null;
  const columns = [
    { name: "Session", cell: ({ session_id: id }) => make("code", {}, id) },
    { name: "Agent", cell: ({ agent }) => agent ?? "–" },
    { name: "Began", cell: ({ started_at: at }) => time(at) },
    { name: "State", cell: ({ current }) => (current ? badge(["Current", "good"]) : "Ended") },
  ];
  return make("section", { className: "part", data: { key: "sessions" } }, make("h2", {}, "Sessions"), table("Sessions", columns, all, ({ session_id: id }) => id));
}

function sentTo({ deliveries = [] }) {
  const content = deliveries.length ? deliveryTable("Deliveries", deliveries) : empty("Nothing was sent here yet.");
  return make("section", { className: "part", data: { key: "deliveries" } }, make("h2", {}, "Deliveries"), content);
}

/** What the operator writes is sent as a message of the gateway. */
function composer(view, refresh) {
  const text = make("textarea", { id: "message", name: "text", rows: 2, required: true });
  const send = make("button", { type: "submit", className: "button primary" }, "Send");
  const note = make("p", { className: "note", hidden: true, attributes: { role: "alert" } });
  const form = make("form", { className: "composer" }, make("label", { htmlFor: "message" }, "Send a message"), make("div", {}, text, send), note);
  form.onsubmit = async (event) => {
    event.preventDefault();
    if (!text.value.trim()) return;
    send.disabled = true;
    note.hidden = true;
    try {
      await post("messages", { conversation_id: view.id, text: text.value });
      text.value = "";
      announce("The message is on its way.");
      refresh();
    } catch (problem) {
      show(note, problem.message);
      note.hidden = false;
    }
    send.disabled = false;
  };
  return form;
}
