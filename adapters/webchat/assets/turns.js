// Renders turns. Markup comes only from the server, which emits a closed set of tags; everything else is text.

import { isCommand, isFinal } from "./conversation.js";

const policy = globalThis.trustedTypes?.createPolicy("rejoinder", { createHTML: (html) => html });

const WORDS = {
  silent: "Seen",
  undeliverable: "This could not be answered.",
};

/** Creates an element: `make("p", {className: "x", data: {turnId: 1}}, "text", child)`. */
export function make(tag, { data, attributes, ...properties } = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  Object.assign(element.dataset, data);
  for (const [name, value] of Object.entries(attributes ?? {})) element.setAttribute(name, value);
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** Makes `element` show `html`. Keeps unchanged leading nodes, with their selections and copy buttons. */
export function showMarkup(element, html) {
  const template = document.createElement("template");
  template.innerHTML = policy ? policy.createHTML(html) : html;
  const wanted = [...template.content.childNodes];
  const there = [...element.childNodes];
  let same = 0;
  while (same < wanted.length && same < there.length && wanted[same].isEqualNode(there[same])) same += 1;
  for (const node of there.slice(same)) node.remove();
  element.append(...wanted.slice(same));
}

/**
 * Makes `item` show a turn. `context`: `day` (a heading above it, or null), `isMissed` (whether the turns that the
 * person missed start here), `draft` (markup or undefined), `activity` (`writing`, `waiting` or null), `picked` (the
 * picked choice, or null), `canPick`.
 */
export function showTurn(item, turn, context) {
  const key = JSON.stringify([turn, { ...context, draft: undefined }]);
  if (item.turnKey !== key) {
    item.turnKey = key;
    build(item, turn, context);
  }
  const draft = item.querySelector(".draft");
  if (draft) showMarkup(draft, context.draft ?? "");
}

function build(item, turn, context) {
  item.className = isCommand(turn) ? "turn command" : "turn";
  Object.assign(item.dataset, { turnId: turn.turn_id, status: turn.status });
  const draft = item.querySelector(".draft");
  item.replaceChildren(...separators(context));
  if (isCommand(turn)) {
    item.append(make("p", { className: "remark answer" }, turn.shown?.text ?? "…"));
    return;
  }
  item.append(said(turn));
  const answer = answerOf(turn, context, draft);
  if (answer) item.append(answer);
}

function separators({ day, isMissed }) {
  const separator = (className, words) => make("div", { className, attributes: { role: "separator" } }, make("span", {}, words));
  return [day && separator("day", day), isMissed && separator("missed", "While you were away")].filter(Boolean);
}

function said(turn) {
  const reaction = isFinal(turn) && turn.shown?.signal === "reaction" ? turn.shown.text : null;
  return make(
    "div",
    { className: "said", attributes: { role: "group", "aria-label": "You" } },
    make("p", { className: "words" }, turn.text),
    files(turn.attachments),
    reaction && make("span", { className: "reaction answer", data: { signal: "reaction" }, attributes: { role: "img", "aria-label": `Reaction: ${reaction}` } }, reaction),
    make("p", { className: "meta" }, time(turn.at), turn.status === "cancelled" ? " · Stopped" : null),
  );
}

function answerOf(turn, context, draft) {
  const { shown, status } = turn;
  const box = (signal, ...children) =>
    make("div", { className: "answer", data: { signal }, attributes: { role: "group", "aria-label": "Answer" } }, ...children);
  if (!isFinal(turn)) return unfinished(turn, context, draft, box);
  // A reaction is shown on the message itself; a stopped turn is acknowledged by the answer to the command.
  if (shown?.signal === "reaction" || status === "cancelled") return null;
  if (status !== "answered" || !shown) return make("p", { className: "remark answer", data: { signal: "none" } }, WORDS[status] ?? "");
  const words = make("div", { className: "words markup" });
  showMarkup(words, shown.html ?? "");
  const copy = make("button", { type: "button", className: "quiet-button", data: { copy: "answer" } }, "Copy");
  // The message shows the time already; repeat it only for a slow answer.
  const answeredAt = Date.parse(shown.at) - Date.parse(turn.at) > 60_000 ? time(shown.at) : null;
  const meta = make("p", { className: "meta" }, answeredAt, shown.text ? copy : null);
  return box("reply", words, files(shown.attachments), choices(turn, context), meta);
}

function unfinished(turn, { activity, draft: markup }, draft, box) {
  const { shown } = turn;
  const written = markup === undefined ? null : (draft ?? make("div", { className: "words markup draft" }));
  if (shown?.signal === "deferral") {
    const words = make("div", { className: "words markup" });
    showMarkup(words, shown.html ?? "");
    const due = shown.due && Date.parse(shown.due) > Date.now() ? ` · expected by ${clock(shown.due)}` : "";
    const working = make("p", { className: "working" }, make("span", { className: "spinner", attributes: { "aria-hidden": "true" } }), `Still working${due}`);
    return box("deferral", written ?? words, working);
  }
  if (written) return box("draft", written);
  if (activity === "writing") {
    const dots = make("span", { className: "dots", attributes: { "aria-hidden": "true" } }, make("i"), make("i"), make("i"));
    return box("typing", dots, make("span", { className: "unseen" }, "An answer is being written"));
  }
  return activity === "waiting" ? make("p", { className: "remark" }, "Waiting in line") : null;
}

/** The choices; after a pick, only the picked one. */
function choices(turn, { canPick, picked }) {
  const words = turn.shown.choices ?? [];
  if (words.length === 0) return null;
  const isOpen = turn.picked === undefined;
  const button = (choice, index) =>
    make(
      "button",
      { type: "button", className: "choice", disabled: !(isOpen && canPick), data: { choice: index }, attributes: { "aria-pressed": String(choice === picked) } },
      choice,
    );
  const buttons = words.map(button).filter((_, index) => isOpen || words[index] === turn.picked);
  return make("div", { className: "choices", attributes: { role: "group", "aria-label": "Choices" } }, ...buttons);
}

function files(attachments) {
  if (!attachments?.length) return null;
  const file = ({ name, href }) =>
    make("li", {}, href ? make("a", { href, target: "_blank", rel: "noopener noreferrer nofollow" }, name) : name);
  return make("ul", { className: "files", attributes: { "aria-label": "Files" } }, ...attachments.map(file));
}

/** Makes `item` show a message that the server has not accepted yet. */
export function showUnsent(item, entry, isOnline) {
  const state = entry.problem ? "failed" : isOnline ? "sending" : "waiting";
  const key = JSON.stringify([entry.problem, state]);
  if (item.turnKey === key) return;
  item.turnKey = key;
  item.className = "turn";
  Object.assign(item.dataset, { unsent: entry.id, status: state });
  const words = { failed: `Not sent. ${entry.problem}`, sending: "Sending…", waiting: "Will be sent when the connection is back" };
  const button = (act, label) => make("button", { type: "button", className: "quiet-button", data: { unsentAct: act } }, label);
  const acts = entry.problem ? [button("retry", "Try again"), button("edit", "Edit"), button("discard", "Discard")] : [];
  item.replaceChildren(
    make(
      "div",
      { className: "said", attributes: { role: "group", "aria-label": "You" } },
      make("p", { className: "words" }, entry.text),
      make("p", { className: "meta" }, words[state], ...acts),
    ),
  );
}

const CLOCK = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const FULL = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "short" });
const DAY = new Intl.DateTimeFormat(undefined, { weekday: "long", day: "numeric", month: "long" });
const DAY_AND_YEAR = new Intl.DateTimeFormat(undefined, { dateStyle: "long" });

function clock(at) {
  return CLOCK.format(new Date(at));
}

function time(at) {
  return make("time", { dateTime: at, title: FULL.format(new Date(at)) }, clock(at));
}

/** The day of `at` as text. */
export function dayOf(at) {
  const day = new Date(at);
  const today = new Date();
  const yesterday = new Date(today.getFullYear(), today.getMonth(), today.getDate() - 1);
  if (day.toDateString() === today.toDateString()) return "Today";
  if (day.toDateString() === yesterday.toDateString()) return "Yesterday";
  return (day.getFullYear() === today.getFullYear() ? DAY : DAY_AND_YEAR).format(day);
}
