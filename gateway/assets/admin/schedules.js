// Schedules: what is begun at given times, what became of it, and a form to make one.

import { change, get, post } from "./api.js";
import { ask, operate, REASON } from "./dialog.js";
import { announce, badge, button, facts, link, make, show, table, time } from "./dom.js";
import { capital, excerpt, plural, scheduleState, scheduleTimes } from "./format.js";
import { keepFresh } from "./live.js";
import { buttons, empty, heading, part } from "./parts.js";

/** To how many turns of one time the history links. */
const MOST_TURNS = 5;

const FRESH = { topics: ["schedule.", "operator."], every: 30_000 };

export function schedules(view) {
  const all = part(view, {
    title: "Schedules",
    className: "bare",
    load: () => get("schedules", {}, view.signal),
    render: ({ items }) =>
      items.length
        ? scheduleTable(view, items, refresh)
        : empty("There are no schedules. Add one here or with ", make("code", {}, "rejoinder schedule add"), ", or name one in the configuration."),
  });
  const refresh = () => all.refresh();
  const adding = view.mayChange && buttons(button("Add a schedule", () => add(view), "button primary"));
  show(view.main, heading("Schedules", adding), all.element);
  keepFresh(refresh, { signal: view.signal, ...FRESH });
}

const hrefOf = ({ id }) => `/admin/schedules/${id}`;

/** What a schedule begins. */
const what = ({ prompt, quiet, digest }) => (digest ? "Digest" : prompt === undefined ? "Message" : quiet ? "Quiet prompt" : "Prompt");

/** Its text, where the gateway does not write it. */
const textOf = ({ message, prompt }) => message ?? prompt;

const scheduleTable = (view, items, refresh) =>
  table(
    "Schedules",
    [
      { name: "Schedule", className: "main-cell", cell: (one) => link(hrefOf(one), make("strong", { dir: "auto" }, one.name), make("span", { className: "words", dir: "auto" }, `${what(one)} for ${one.to}${one.digest ? "" : `: ${excerpt(textOf(one), 80)}`}`)) },
      { name: "When", className: "when", cell: (one) => [words(one), one.cron && make("span", { className: "why" }, isKnown(one) ? zone(one) : make("code", {}, one.cron))] },
      { name: "Last", cell: ({ last }) => (last ? [last.turns.length ? link(`/admin/turns/${last.turns[0]}`, time(last.at)) : time(last.at), last.problem && make("span", { className: "why" }, last.problem)] : "–") },
      { name: "Next", cell: ({ state, next_at: at }) => (at && state === "active" ? time(at) : "–") },
      { name: "State", cell: (one) => [badge(scheduleState(one)), one.why && make("span", { className: "why" }, one.why)] },
      ...(view.mayChange ? [{ name: "Change", cell: (one) => buttons(acts(one, refresh)) }] : []),
    ],
    items,
    ({ id }) => id,
  );

/** When it begins something, in words. */
const words = (one) => [capital(scheduleTimes(one) ?? "at the times of a pattern"), one.at && [", ", time(one.at, { isExact: true })]];

const isKnown = (one) => scheduleTimes(one) !== null;

const zone = ({ time_zone: name }) => (name === "system" ? "the machine's time zone" : name);

/** The buttons of a schedule, without that which removes it. */
function acts(one, refresh) {
  const act = (label, perform) => button(label, async () => (await perform(one)) && refresh());
  return [act("Run now", run), one.state === "active" && act("Pause", pause), one.state === "paused" && act("Resume", resume)];
}

const pathOf = ({ id }, verb) => `schedules/${id}${verb ? `/${verb}` : ""}`;

const run = (one) =>
  operate({
    title: `Run ${one.name} now?`,
    text: `${one.digest ? "The digest is sent" : what(one) === "Message" ? "The message is sent" : "The prompt is put before the agent"} now, for ${one.to}. Its times stay as they are.`,
    action: "Run now",
    path: pathOf(one, "run"),
    done: `${one.name} has begun.`,
  });

const pause = (one) =>
  operate({
    title: `Pause ${one.name}?`,
    text: "It begins nothing until you resume it. Times that pass meanwhile are not made up for.",
    action: "Pause",
    path: pathOf(one, "pause"),
    done: `${one.name} is paused.`,
  });

const resume = (one) =>
  operate({
    title: `Resume ${one.name}?`,
    text: "Times that have passed meanwhile are not made up for. Its failures are counted anew.",
    action: "Resume",
    path: pathOf(one, "resume"),
    done: `${one.name} goes on.`,
  });

const remove = (one) =>
  operate({
    title: `Remove ${one.name}?`,
    text: "Its history is removed, too. What it has begun goes on.",
    action: "Remove",
    isDanger: true,
    perform: (entered) => change("DELETE", pathOf(one), entered),
    done: `${one.name} is removed.`,
  });

export function schedule(view) {
  const path = `schedules/${encodeURIComponent(decoded(view.id))}`;
  const title = heading("Schedule");
  const about = part(view, { title: "What it does", className: "bare", load: () => get(path, {}, view.signal), render: shown });
  const history = make("div");
  const refresh = () => about.refresh();

  function shown(one) {
    const isConfigured = one.origin === "configuration";
    const gone = async () => {
      if (await remove(one)) view.go("/admin/schedules");
    };
    view.setTitle(one.name);
    show(title, make("h1", { tabIndex: -1, dir: "auto" }, one.name), badge(scheduleState(one)));
    show(history, make("section", { className: "part", attributes: { "aria-labelledby": "history" } }, make("h2", { id: "history" }, "What became of its times"), one.runs.length ? runTable(one.runs) : empty("None of its times has come yet.")));
    return make(
      "article",
      { className: "card", data: { key: one.id } },
      one.state === "paused" && make("p", { className: "problem" }, `Paused${one.why ? `: ${one.why}` : ""}`),
      facts([
        ["When", ...words(one)],
        ["Pattern", one.cron && [make("code", {}, one.cron), ` in ${zone(one)}`]],
        ["Next", one.state === "active" && time(one.next_at)],
        ["For", one.to],
        ["Agent", one.agent],
        ["Words go to", one.words_to],
        ["Session", one.session === "copy" && "A copy: it stays as it is"],
        ["Times that were missed", MISSED[one.missed]],
        ["Failed in a row", one.failures > 0 && plural(one.failures, "run")],
        ["Made", time(one.created_at), isConfigured ? " by the configuration" : ` by ${one.by}`],
      ]),
      make("h3", {}, what(one)),
      textOf(one) && make("blockquote", { className: "words", dir: "auto" }, textOf(one)),
      one.quiet && make("p", { className: "quiet" }, "The agent owes no answer: it speaks only if it has something to say."),
      isConfigured && make("p", { className: "quiet" }, "It is in the configuration: change it or remove it there."),
      view.mayChange && buttons(acts(one, refresh), !isConfigured && button("Remove", gone)),
    );
  }

  show(view.main, make("p", { className: "back" }, link("/admin/schedules", "All schedules")), title, about.element, history);
  keepFresh(refresh, { signal: view.signal, ...FRESH });
}

/** The name or the id in an address. */
function decoded(id) {
  try {
    return decodeURIComponent(id);
  } catch {
    return id;
  }
}

const runTable = (runs) =>
  table(
    "What became of its times",
    [
      { name: "Time", cell: ({ due }) => time(due, { isExact: true }) },
      { name: "Acted on", cell: ({ at }) => time(at) },
      { name: "What was begun", cell: begun },
    ],
    runs,
    ({ due }) => due,
  );

function begun({ turns, problem }) {
  if (problem && !turns.length) return [badge(["Nothing", "bad"]), make("span", { className: "why" }, problem)];
  const more = turns.length - MOST_TURNS;
  const links = turns.slice(0, MOST_TURNS).map((turn, index) => link(`/admin/turns/${turn}`, turns.length > 1 ? `Turn ${index + 1}` : "Its turn"));
  return [
    make("p", { className: "links" }, links, more > 0 && `and ${plural(more, "other")}`),
    problem && make("span", { className: "why" }, problem),
  ];
}

const MISSED = { once: "One run makes up for all", skip: "None is made up for", all: "Each is made up for" };

const KINDS = { message: "Message: sent as it is", prompt: "Prompt: the agent's answer is sent", quiet: "Quiet prompt: the agent speaks only if it has something to say", digest: "Digest: what is open, with buttons" };
const TIMES = { at: "Once", every: "Again and again", cron: "By a cron pattern" };

/** The fields that only some schedules have, with what has to be chosen for them. */
const ONLY = { text: ["kind", "message", "prompt", "quiet"], agent: ["kind", "prompt", "quiet"], words_to: ["kind", "prompt", "quiet"], at: ["times", "at"], every: ["times", "every"], cron: ["times", "cron"], time_zone: ["times", "cron"] };

const isFor = (form, name) => !(name in ONLY) || ONLY[name].slice(1).includes(form.elements[ONLY[name][0]].value);

async function add(view) {
  const agents = await get("agents", {}, view.signal).then(({ items }) => items.map(({ name }) => [name, name]), () => []);
  if (view.signal.aborted) return;
  const choose = (event) => fit(event.currentTarget.form);
  const made = ask({
    title: "Add a schedule",
    fields: [
      { name: "name", label: "Name", hint: "One is made up if it is empty.", maxLength: 100 },
      { name: "to", label: "For", required: true, spellcheck: false, maxLength: 1000, hint: "A conversation such as telegram.main/42, the name of somebody who is known, or role:owner." },
      { name: "kind", label: "What", kind: "select", value: "message", options: Object.entries(KINDS), onchange: choose },
      { name: "text", label: "Text", kind: "textarea", required: true, maxLength: 20_000 },
      { name: "agent", label: "Agent", kind: "select", options: [["", "That of the conversation"], ...agents] },
      { name: "words_to", label: "Words go to", spellcheck: false, maxLength: 1000, hint: "That conversation if it is empty; else nowhere, a place such as words.journal, another conversation, or a name." },
      { name: "times", label: "When", kind: "select", value: "at", options: Object.entries(TIMES), onchange: choose },
      { name: "at", label: "Time", kind: "datetime-local", hint: "In the time zone of this browser." },
      { name: "every", label: "Every", placeholder: "6h", spellcheck: false, hint: "For example 30m, 6h or 24h, from a minute to 366 days." },
      { name: "cron", label: "Pattern", placeholder: "0 8 * * MON-FRI", spellcheck: false, hint: "Minute, hour, day of the month, month, day of the week." },
      { name: "time_zone", label: "Time zone", placeholder: "Europe/Vienna", spellcheck: false, hint: "That of the configuration if it is empty." },
      { name: "missed", label: "Times that pass while the gateway is down", kind: "select", value: "once", options: Object.entries(MISSED) },
      REASON,
    ],
    action: "Add it",
    perform: (values) => post("schedules", wanted(form, values)),
  });
  const form = document.querySelector("dialog[open] form");
  fit(form);
  const schedule = await made;
  if (!schedule) return;
  view.go(hrefOf(schedule));
  announce(`${schedule.name} is made.`);
}

/** Shows the fields that fit what was chosen. */
function fit(form) {
  for (const name of Object.keys(ONLY)) {
    const control = form.elements[name];
    const isThere = isFor(form, name);
    control.closest(".field").hidden = !isThere;
    control.required = isThere && ["text", form.elements.times.value].includes(name);
  }
}

/** What is sent of a form. */
function wanted(form, values) {
  const { kind, times, text, ...others } = Object.fromEntries(Object.entries(values).filter(([name]) => isFor(form, name)));
  const body = { ...others, ...(kind === "digest" ? { digest: true } : { [kind === "message" ? "message" : "prompt"]: text }) };
  if (kind === "quiet") body.quiet = true;
  if (body.at) body.at = new Date(body.at).toISOString();
  return body;
}
