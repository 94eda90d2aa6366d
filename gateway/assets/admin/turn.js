// One turn: its story from intake to receipt, and what an operator can do about it.

import { get } from "./api.js";
import { discard, redirect, retry } from "./deadletters.js";
import { operate, REASON } from "./dialog.js";
import { badge, button, facts, link, make, prose, show, table, time } from "./dom.js";
import { address, between, deliveryState, exactClock, excerpt, full, handler, number, person, plural, revealed, span, turnState, via } from "./format.js";
import { keepFresh } from "./live.js";
import { buttons, empty, heading, part } from "./parts.js";

export function turn(view) {
  const path = `turns/${encodeURIComponent(view.id)}`;
  const title = heading("Turn");
  const acts = make("div", { className: "acts" });
  const story = part(view, { title: "Story", load: () => get(`${path}/explain`, {}, view.signal), render: storyOf });
  const detail = part(view, {
    title: "What was said and done",
    load: () => get(path, {}, view.signal),
    render(found) {
      const about = { ...found, why: waits(found), held: isHeld(found), fallback: found.fallback ?? fallbackOf(found), sender_id: found.event.sender_id, sender_name: found.event.sender_name };
      const whose = `Turn of ${initiator(about)}`;
      view.setTitle(whose);
      show(title, make("h1", { tabIndex: -1 }, whose), badge(turnState(about)));
      show(acts, view.mayChange && actions(about, refresh));
      return [said(about), runs(found), deliveries(found), notes(found), identifiers(found)];
    },
  });
  const refresh = () => Promise.all([story.refresh(), detail.refresh()]);
  show(view.main, make("p", { className: "back" }, link("/admin/turns", "All turns")), title, acts, story.element, detail.element);
  keepFresh(refresh, { signal: view.signal, topics: ["turn.", "delivery."], pause: 2_000, every: 15_000 });
}

/** Why what was claimed is not sent, if it waits for another attempt. */
const waits = ({ why, deliveries: all }) => why ?? (all.some(({ state, attempts }) => state === "parked" || (state === "pending" && attempts?.length)) ? "it cannot be sent" : undefined);

/** Whether the ladder answered: then a delivery says by which rung. */
const fallbackOf = ({ deliveries: all }) => all.some(({ state, via: rung, is_copy: isCopy }) => state === "delivered" && !isCopy && rung.includes(":"));

function storyOf({ headline, owed, timeline, next }) {
  const entry = ({ at, text }) => make("li", {}, make("time", { title: full(at), attributes: { datetime: at } }, exactClock(at)), make("p", {}, prose(revealed(text))));
  return [
    make("p", { className: "lead" }, prose(revealed(headline))),
    facts([["Owed", prose(owed)]]),
    make("ol", { className: "timeline", attributes: { "aria-label": "What happened, oldest first" } }, timeline.map(entry)),
    facts([["Next", prose(next)]]),
  ];
}

/** Whether an operator holds it: the last of those two remarks says so. */
function isHeld({ held, remarks, ended_at: ended }) {
  if (typeof held === "boolean") return held;
  return !ended && remarks.findLast(({ kind }) => kind === "hold" || kind === "resume")?.kind === "hold";
}

const SAY = { name: "say", label: "What the person is told", kind: "textarea", maxLength: 4000, hint: "If this is empty, the template given_up.", isWide: true };
const SILENTLY = { name: "silently", label: "If an answer is owed", kind: "select", options: [["", "The person is told"], ["yes", "The person is told nothing, and a promise is removed"]] };

/** What is posted when a turn is given up. */
const giveUp = ({ silently, ...entered }) => (silently ? { ...entered, silently: true } : entered);

function actions(turn, refresh) {
  const id = turn.turn_id;
  const act = (title, text, action, verb, done, more) =>
    button(title, async () => (await operate({ title: `${title}?`, text, action, path: `turns/${id}/${verb}`, done, ...more })) && refresh());
  if (turn.state === "undeliverable") {
    return buttons(
      button("Retry", async () => (await retry(id)) && refresh(), "button primary"),
      button("Redirect", async () => (await redirect(id)) && refresh()),
      button("Discard", async () => (await discard(id)) && refresh()),
    );
  }
  if (turn.ended_at || turn.state === "merged") return null;
  const waits = turn.deliveries.some(({ state }) => state === "pending" || state === "parked");
  return buttons(
    waits && act("Try now", "What waits to be sent is tried now. If it may have arrived, it has a label, and may be seen twice.", "Try now", "retry", "It is tried now."),
    turn.held
      ? act("Resume", "Runs and attempts begin again.", "Resume", "resume", "The turn goes on.")
      : act("Hold", "No run and no attempt begins until you resume it. Other turns of the conversation go on.", "Hold", "hold", "The turn is held."),
    act("Cancel", "The turn is given up: its run is stopped, and what waits to be sent is withdrawn. A person who waits for an answer is told.", "Give it up", "cancel", "The turn is given up.", { fields: [SAY, SILENTLY, REASON], entered: giveUp, isDanger: true }),
  );
}

const INITIATORS = { operator: "the operator", schedule: "the schedule", trigger: "the trigger", event: "the event on", gateway: "the gateway" };

/** Who began a turn. */
function initiator(turn) {
  const { begun_by: kind, sender_name: name } = turn.event;
  if (!INITIATORS[kind]) return person(turn);
  return kind === "gateway" ? INITIATORS[kind] : `${INITIATORS[kind]} ${name.replace(/^trigger:/, "")}`;
}

/** What the one who began a turn did. */
function began(turn) {
  const { begun_by: kind } = turn.event;
  const who = initiator(turn);
  return INITIATORS[kind] ? `What ${who} began` : `${who} wrote`;
}

const card = (title, ...content) => make("article", { className: "card" }, make("h3", {}, title), ...content);

const UNHEARD = { too_long: "it is too long", over_budget: "what may be written down in a day is used up", no_file: "it could not be fetched", no_server: "no server is configured for that", failed: "the server gave no words", no_words: "nobody speaks in it" };

/** How long a message was spoken, and what became of its words. */
function spoken({ seconds, heard, why, model }) {
  const what = { words: `written down${model ? ` by ${model}` : ""}`, awaited: "being written down" };
  return [seconds !== undefined && span(seconds * 1000), what[heard] ?? `not written down${why ? `: ${UNHEARD[why] ?? why}` : ""}`].filter(Boolean).join(", ");
}

function said({ event, ...turn }) {
  return card(
    began({ event, ...turn }),
    make("blockquote", { className: "words" }, event.text || "(no text)"),
    facts([
      ["Spoken", event.voice && spoken(event.voice)],
      ["Files", files(event.attachments, turn.turn_id)],
      ["Replies to", event.quoted && excerpt(event.quoted.text ?? "another message")],
      ["Forwarded from", event.forwarded && (event.forwarded.name ?? "somebody")],
      ["Received", time(event.received_at, { isExact: true })],
      ["Conversation", link(`/admin/conversations/${turn.conversation_id}`, address(turn))],
      ["Handled by", handler(turn)],
    ]),
  );
}

const ENDS = { reply: "It answered", reaction: "It reacted", deferral: "It deferred the answer", silent: "It said nothing", failed: "It failed", stopped: "It was stopped", crashed: "The gateway ended while it ran", unreadable: "The message could not be read", unheard: "The voice note could not be written down", budget: "Its agent has used its budget of the day" };

/** What the gateway serves as a picture. */
const PICTURE = /^image\/(png|jpeg|gif|webp)(;|$)/;

/** A file of a turn. If it is stored, its name opens it, a picture is shown, and a sound can be played. */
function file({ name, media_type: type, size, digest, removed }, turn) {
  const about = [type, size !== undefined && plural(size, "byte"), digest?.slice(0, 19), removed && "not kept any more"];
  const title = `${name || "a file"} (${about.filter(Boolean).join(", ")})`;
  if (!digest) return make("div", { className: "file" }, title);
  const url = `/admin/files/${digest.replace("sha256:", "")}?turn=${turn}`;
  return make(
    "div",
    { className: "file" },
    make("a", { href: url, target: "_blank" }, title),
    // What they load is set last: an element that `show` throws away must load nothing.
    PICTURE.test(type) && make("img", { loading: "lazy", alt: name || "a picture", src: url }),
    type.startsWith("audio/") && make("audio", { controls: true, preload: "none", src: url, attributes: { "aria-label": name || "a sound" } }),
  );
}

const files = (attachments, turn) => attachments?.map((one) => file(one, turn));

function runs({ runs: all }) {
  if (!all.length) return card("Runs", empty("No run has begun."));
  return all.map((run) =>
    card(
      `Run ${run.number}: ${handler(run)}`,
      facts([
        ["Member", run.member],
        ["Began", time(run.started_at, { isExact: true })],
        ["Took", run.ended_at ? between(run.started_at, run.ended_at) : "It is running"],
        ["End", run.end && `${ENDS[run.end] ?? run.end}${run.detail ? `: ${run.detail}` : ""}`],
        ["Tokens", run.input_tokens !== undefined && `${number(run.input_tokens)} read, ${number(run.output_tokens ?? 0)} written`],
        ["Cost", run.cost && `${run.cost.amount} ${run.cost.currency}`],
      ]),
      run.shown && shown(run),
      run.tools?.length > 0 && tools(run),
    ),
  );
}

/** The text of a message that a model was shown, whatever its shape. */
function textOf(content) {
  if (typeof content === "string") return content;
  if (Array.isArray(content)) return content.map((one) => one.text ?? JSON.stringify(one, null, 2)).join("\n");
  return content === null || content === undefined ? "" : JSON.stringify(content, null, 2);
}

function shown({ number: run, shown: { settings, messages, messages_left_out: missing } }) {
  const all = Array.isArray(messages) ? messages : [messages];
  const block = (label, text) => make("pre", { tabIndex: 0, attributes: { role: "region", "aria-label": `${label} of run ${run}` } }, text);
  const message = ({ role = "message", content, ...rest }, index) => {
    const more = Object.keys(rest).length ? JSON.stringify(rest, null, 2) : "";
    return make("li", {}, make("strong", {}, role), block(`Message ${index + 1}`, [textOf(content), more].filter(Boolean).join("\n")));
  };
  return make(
    "details",
    { data: { key: `shown-${run}` } },
    make("summary", {}, "What the agent saw"),
    missing > 0 && make("p", {}, `The ${missing} oldest messages are not kept here.`),
    make("ol", { className: "messages" }, all.map(message)),
    make("h4", {}, "Settings"),
    block("Settings", JSON.stringify(settings, null, 2)),
  );
}

function tools({ number: run, tools: all, tools_left_out: missing }) {
  return make(
    "details",
    { data: { key: `tools-${run}` } },
    make("summary", {}, `Tools (${number(all.length + (missing ?? 0))} calls)`),
    all.map(({ name, arguments: input, result, duration_ms: took }) =>
      make("div", {}, make("h4", {}, make("code", {}, name)), facts([["Arguments", make("code", {}, input)], ["Result", make("span", { className: "words" }, result)], ["Took", took != null && `${number(took)} ms`]])),
    ),
    missing > 0 && make("p", {}, `And ${missing} more.`),
  );
}

function deliveries({ deliveries: all, turn_id: turn }) {
  if (!all.length) return card("Deliveries", empty("Nothing was cleared to be sent."));
  return all.map((delivery) =>
    card(
      ["Delivery: ", via(delivery), delivery.parts > 1 ? `, part ${delivery.part} of ${delivery.parts}` : "", " ", badge(deliveryState(delivery))],
      make("blockquote", { className: "words" }, delivery.text || "(no text)"),
      facts([
        ["Choices", delivery.choices?.join(", ")],
        ["Aloud", delivery.spoken && excerpt(delivery.spoken)],
        ["Files", files(delivery.attachments, turn)],
        ["Problem", delivery.error],
        ["Next attempt", time(delivery.next_attempt_at)],
        ["Acknowledged", time(delivery.delivered_at, { isExact: true })],
        ["Message ids", delivery.message_ids.join(", ")],
        ["Read by the client", time(delivery.fetched_at, { isExact: true })],
      ]),
      attemptTable(delivery),
    ),
  );
}

const attemptTable = ({ delivery_id: id, attempts }) =>
  attempts?.length > 0 &&
  details(`${id} attempts`, `Attempts (${number(attempts.at(-1).number)})`, table(
    "Attempts",
    [
      { name: "Attempt", cell: ({ number: last, alike }) => (alike ? `${last - alike}–${last}, all alike; the last:` : String(last)) },
      { name: "Began", cell: (attempt) => time(attempt.started_at, { isExact: true }) },
      { name: "Took", cell: (attempt) => (attempt.ended_at ? between(attempt.started_at, attempt.ended_at) : "It is under way") },
      { name: "Result", cell: (attempt) => [attempt.result ?? "–", attempt.detail ? `: ${attempt.detail}` : ""] },
    ],
    attempts,
    (attempt) => `${id} ${attempt.number}`,
  ));

/** The story tells what is in it. */
const details = (key, title, ...content) => make("details", { data: { key } }, make("summary", {}, title), content);

function notes({ remarks }) {
  if (!remarks.length) return null;
  return card("Notes", make("ul", { className: "notes" }, remarks.map(({ at, kind, detail }) => make("li", {}, time(at, { isExact: true }), " ", make("strong", {}, kind.replaceAll("_", " ")), detail ? `: ${revealed(detail)}` : ""))));
}

const identifiers = (turn) =>
  card(
    "Ids",
    facts([
      ["Turn", make("code", {}, turn.turn_id)],
      ["Event", make("code", {}, turn.event.external_id)],
      ["Session", make("code", {}, turn.session_id)],
      ["Sender", make("code", {}, turn.event.sender_id)],
      ["Took", turn.ended_at && span(Date.parse(turn.ended_at) - Date.parse(turn.accepted_at))],
    ]),
  );
