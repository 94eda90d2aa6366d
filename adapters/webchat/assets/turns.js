// Renders turns. Markup comes only from the server, which emits a closed set of tags; everything else is text.

import { isAsking, isCommand, isFinal, isUnanswered, isUnasked, voiceOf } from "./conversation.js";
import { addStyles, icon, make } from "./dom.js";
import { isPast, lengthSince, promised, time } from "./time.js";
import { inWords } from "./words.js";

const policy = globalThis.trustedTypes?.createPolicy("rejoinder", { createHTML: (html) => html });

const WORDS = {
  silent: inWords("Seen"),
  undeliverable: inWords("This could not be answered."),
};

/**
 * How each voice is named, what stands over what it says, and what that is called if the person had said nothing. The agent has a
 * name of its own.
 */
const VOICES = {
  agent: { label: inWords("Answer"), unasked: inWords("Message of the agent") },
  "stand-in": { label: inWords("In place of an answer"), unasked: inWords("In place of a message"), name: inWords("The gateway, not the agent") },
  gateway: { label: inWords("Answer of the gateway"), unasked: inWords("Message of the gateway"), name: inWords("The gateway") },
};

/** What of an answer needs more than its markup. */
const RICH = "math, .code, .table, .notes, input";
let rich = null;

/** Makes `element` show `html`. Keeps unchanged leading nodes, with their selections and copy buttons. */
export function showMarkup(element, html) {
  const template = document.createElement("template");
  template.innerHTML = policy ? policy.createHTML(html) : html;
  const wanted = [...template.content.childNodes];
  for (const node of wanted) node.source = node.outerHTML ?? node.data;
  const there = [...element.childNodes];
  let same = 0;
  while (same < wanted.length && same < there.length && wanted[same].source === there[same].source) same += 1;
  for (const node of there.slice(same)) node.remove();
  const added = wanted.slice(same);
  element.append(...added);
  const elements = added.filter((node) => node.nodeType === Node.ELEMENT_NODE);
  for (const copy of elements.flatMap((one) => [...one.querySelectorAll("button[data-copy]")])) copy.textContent = inWords("Copy");
  const special = elements.filter((one) => one.matches(RICH) || one.querySelector(RICH));
  if (special.length === 0) return;
  rich ??= import("./rich.js").catch(() => (rich = null));
  // Before they are drawn, once it is loaded.
  rich.then((loaded) => loaded?.dress(special.filter((one) => one.isConnected)));
}

/**
 * Makes `item` show a turn. `context`: `day` (a heading above it, or null), `isMissed` (whether the turns that the
 * person missed start here), `draft` (markup or undefined), `steps` (what the agent did, or undefined), `activity` (`writing`, `waiting` or null), `picked` (the
 * picked choice, or null), `canPick`, `agent` (the name of the agent that may be writing), `isLast` (whether it is what the
 * person said last), `isSaidAgain` (whether they said the same words later), `version` (`{number, count}`, if it was asked more than once).
 */
export function showTurn(item, turn, context) {
  const key = JSON.stringify([turn, { ...context, draft: undefined, steps: undefined }]);
  if (item.turnKey !== key) {
    item.turnKey = key;
    keepingFocus(item, () => build(item, turn, context));
  }
  const draft = item.querySelector(".draft");
  if (draft) showMarkup(draft, context.draft ?? "");
  // They are folded: an answer does not wait for them.
  if (context.steps?.length) import("./work.js").then(({ showWork }) => showWork(item, context.steps, isFinal(turn))).catch(() => {});
}

/** After `change`, the button of `item` that had the focus has it again, if it is still there. */
function keepingFocus(item, change) {
  const controls = () => [...item.querySelectorAll("button, summary")];
  const focused = controls().includes(document.activeElement) ? { ...document.activeElement.dataset } : null;
  change();
  if (!focused) return;
  const isSame = ({ dataset }) => Object.entries(focused).every(([name, value]) => dataset[name] === value);
  controls().find(isSame)?.focus({ preventScroll: true });
}

function build(item, turn, context) {
  item.className = isCommand(turn) ? "turn command" : "turn";
  Object.assign(item.dataset, { turnId: turn.turn_id, status: turn.status });
  const draft = item.querySelector(".draft");
  // What is being played goes on.
  const media = new Map([...item.querySelectorAll("[data-media]")].map((element) => [element.dataset.media, element]));
  context = { ...context, media };
  item.replaceChildren(...separators(context));
  if (isCommand(turn)) {
    item.append(make("p", { className: "remark answer" }, turn.shown?.text ?? "…"));
    return;
  }
  if (!isUnasked(turn)) item.append(said(turn, context));
  const answer = answerOf(turn, context, draft);
  if (!answer) return;
  if (isUnasked(turn) && answer.dataset.voice) answer.setAttribute("aria-label", VOICES[answer.dataset.voice].unasked);
  item.append(answer, ...(isEarlier(context) ? [make("p", { className: "remark" }, inWords("An earlier version. The agent goes on from the last one."))] : []));
  if (item.work) answer.querySelector(".speaker")?.after(item.work);
}

const isEarlier = ({ version }) => version && version.number < version.count;

function separators({ day, isMissed }) {
  const separator = (className, words) => make("div", { className, attributes: { role: "separator" } }, make("span", {}, words));
  return [day && separator("day", day), isMissed && separator("missed", inWords("While you were away"))].filter(Boolean);
}

function said(turn, { isLast, media, version }) {
  const reaction = isFinal(turn) && turn.shown?.signal === "reaction" ? turn.shown.text : null;
  const edit = isLast && turn.text.trim() !== "" && act("edit", inWords("Edit"), inWords("Puts these words into the input"));
  return make(
    "div",
    { className: "said", attributes: { role: "group", "aria-label": inWords("You") } },
    turn.text.trim() !== "" && make("p", { className: "words", dir: "auto" }, turn.text),
    files(turn.files, media),
    reaction && make("span", { className: "reaction answer", data: { signal: "reaction" }, attributes: { role: "img", "aria-label": inWords("Reaction: {text}", { text: reaction }) } }, reaction),
    make("p", { className: "meta" }, time(turn.at, inWords("Sent")), turn.status === "cancelled" && !isFarewell(turn) ? ` · ${inWords("Stopped")}` : null, edit, version && versions(version)),
  );
}

/** Which version of a question it is, and the ways to the others. */
function versions({ number, count }) {
  const step = (name, sign, label, isThere) =>
    make("button", { type: "button", className: "quiet-button", title: label, disabled: !isThere, data: { act: name }, attributes: { "aria-label": label } }, sign);
  return make(
    "span",
    { className: "versions", attributes: { role: "group", "aria-label": inWords("Versions") } },
    step("before", "‹", inWords("Previous version"), number > 1),
    make("span", {}, inWords("{number} of {count}", { number, count })),
    step("after", "›", inWords("Next version"), number < count),
  );
}

/** Whether a turn that has ended without an answer says so. */
const isFarewell = ({ status, shown }) => status === "cancelled" && Boolean(shown) && shown.signal !== "deferral";

function answerOf(turn, context, draft) {
  const { shown, status } = turn;
  if (turn.merged_into && (status === "answered" || !isFinal(turn))) {
    const words = isFinal(turn) ? inWords("Answered together with your message above.") : inWords("It is answered together with your message above.");
    return make("p", { className: "remark answer", data: { signal: "none" } }, words);
  }
  if (!isFinal(turn)) return unfinished(turn, context, draft);
  // A stopped turn is acknowledged by the answer to the command.
  if (status === "cancelled" && !isFarewell(turn)) return null;
  if (status === "undeliverable") return box("none", "stand-in", null, make("p", { className: "words" }, WORDS[status]), make("p", { className: "meta" }, again(turn, context)));
  if ((status !== "answered" && status !== "cancelled") || !shown) return make("p", { className: "remark answer", data: { signal: "none" } }, WORDS[status] ?? "");
  const voice = voiceOf(shown);
  const meta = (...buttons) => buttons.some(Boolean) && make("p", { className: "meta" }, ...buttons);
  if (shown.signal === "reaction" && isUnasked(turn)) return box("reaction", voice, shown, make("p", { className: "words" }, shown.text));
  if (shown.signal === "reaction") {
    // The reaction itself is on the message.
    if (voice !== "stand-in") return null;
    return box("none", voice, shown, make("p", { className: "words" }, inWords("There is no answer, so it reacted to your message.")), meta(again(turn, context)));
  }
  const words = make("div", { className: "words markup" });
  showMarkup(words, shown.html ?? "");
  const copy = voice !== "stand-in" && shown.text && make("button", { type: "button", className: "quiet-button", data: { copy: "answer" } }, inWords("Copy"));
  return box("reply", voice, shown, words, files(shown.files, context.media), choices(turn, context), meta(copy, again(turn, context)));
}

/** What a voice says. `shown` is the signal; null if there is none yet. */
function box(signal, voice, shown, ...children) {
  return make("div", { className: "answer", data: { signal, voice }, attributes: { role: "group", "aria-label": VOICES[voice].label } }, speaker(voice, shown), ...children);
}

/** A heading for who speaks, with the time. */
function speaker(voice, shown) {
  // To be told to wait is nothing to be alarmed about.
  const isTrouble = voice === "stand-in" && shown?.signal !== "deferral";
  const name = voice === "agent" ? shown.agent : VOICES[voice].name;
  const heading = make("h2", { className: "voice" }, isTrouble && icon("gateway"), make("bdi", {}, name));
  return make("div", { className: "speaker" }, heading, shown?.at && time(shown.at, inWords("Answered")));
}

function unfinished(turn, context, draft) {
  const { shown } = turn;
  const { activity, draft: markup, agent } = context;
  // What was written before a question is said with the answer.
  const written = markup === undefined || isAsking(turn) ? null : (draft ?? make("div", { className: "words markup draft" }));
  const isDeferred = shown?.signal === "deferral";
  // The agent writes: what stood in its place is gone.
  if (written) return box(isDeferred ? "deferral" : "draft", "agent", { agent }, written, isDeferred && waiting(turn));
  if (isDeferred) {
    const words = make("div", { className: "words markup" });
    showMarkup(words, shown.html ?? "");
    const said = { ...shown, agent: shown.agent ?? agent };
    return box("deferral", voiceOf(shown), said, words, choices(turn, context), !isAsking(turn) && waiting(turn));
  }
  if (activity === "writing") {
    const dots = make("span", { className: "dots", attributes: { "aria-hidden": "true" } }, make("i"), make("i"), make("i"));
    return box("typing", "agent", { agent }, dots, make("span", { className: "unseen" }, inWords("An answer is being written")));
  }
  return activity === "waiting" ? make("p", { className: "remark" }, inWords("Waiting in line")) : null;
}

/** How long the person has waited, and the time that the agent promised. */
function waiting({ at, shown }) {
  const spinner = make("span", { className: "spinner", attributes: { "aria-hidden": "true" } });
  return make("p", { className: "working" }, spinner, make("span", { className: "wait", data: { since: at, ...(shown.due && { due: shown.due }) } }, waitingWords(at, shown.due)));
}

function waitingWords(since, due) {
  const time = due && promised(due);
  const promise = due && (isPast(due) ? inWords("was promised for {time}", { time }) : inWords("promised for {time}", { time }));
  return [inWords("Waiting for {length}", { length: lengthSince(since) }), promise].filter(Boolean).join(" · ");
}

/** Brings every wait in `list` up to date. */
export function tick(list) {
  for (const wait of list.querySelectorAll(".wait")) {
    const words = waitingWords(wait.dataset.since, wait.dataset.due);
    if (wait.textContent !== words) wait.textContent = words;
  }
}

/** The offer to ask the same again. A question is itself the way on. */
function again(turn, { isLast, isSaidAgain }) {
  if (isUnasked(turn) || turn.shown?.choices?.length) return null;
  if (isLast && isUnanswered(turn)) return act("retry", inWords("Try again"), inWords("Asks the same again. This version can still be read."));
  if (isLast && turn.shown?.agent) return act("retry", inWords("Answer again"), inWords("Asks the same again. This version can still be read."));
  const isOffered = !isSaidAgain && isUnanswered(turn) && turn.text.trim() !== "";
  return isOffered && act("again", inWords("Try again"), inWords("Sends the same words again, as a new message"));
}

function act(name, label, title) {
  return make("button", { type: "button", className: "quiet-button", title, data: { act: name } }, label);
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
  // It was answered with words of the person's own.
  if (buttons.length === 0) return null;
  return make("div", { className: "choices", attributes: { role: "group", "aria-label": inWords("Choices") } }, ...buttons);
}

/** The types of files that the gateway lets a browser show. */
const SHOWN = /^(image\/(png|jpeg|gif|webp)|audio\/.*|video\/.*|text\/plain)(;|$)/i;

/** The names of files, with what is to be seen and heard of them. `media` are the players and pictures that are there already. */
function files(all, media = new Map()) {
  if (!all?.length) return null;
  addStyles("files.css");
  const link = ({ name, type, url }) => {
    if (!url) return name;
    // What the gateway has and a browser does not show is saved, and never opened.
    if (url.startsWith("/") && !SHOWN.test(type)) return make("a", { href: url, download: name, className: "save" }, icon("save"), inWords("Save {name}", { name }));
    return make("a", { href: url, target: "_blank", rel: "noopener noreferrer nofollow" }, name);
  };
  const item = (file, index) => {
    const shown = medium(file, index, media);
    return make("li", { className: shown ? "has-medium" : "" }, shown, shown?.matches("a") ? null : link(file));
  };
  return make("ul", { className: "files", attributes: { "aria-label": inWords("Files") } }, ...all.map(item));
}

/** A picture, or a player, of a file that the gateway has; `null` of anything else. */
function medium({ name, type, url }, index, media) {
  const kind = url?.startsWith("/") && SHOWN.test(type) ? type.split("/")[0] : "text";
  if (kind === "text") return null;
  // A link to a file has a new key each time.
  const key = `${index}:${url.split("?")[0]}`;
  const there = media.get(key);
  media.delete(key);
  if (there) return there;
  const data = { media: key };
  if (kind === "image") return make("a", { href: url, target: "_blank", rel: "noopener noreferrer nofollow", data }, make("img", { src: url, alt: name, loading: "lazy", decoding: "async" }));
  return make(kind, { src: url, controls: true, preload: "metadata", data, attributes: { "aria-label": name } });
}

/** Makes `item` show a message that the server has not accepted yet. */
export function showUnsent(item, entry, isOnline) {
  const state = entry.problem ? "failed" : isOnline ? "sending" : "waiting";
  const key = JSON.stringify([entry.problem, state]);
  if (item.turnKey === key) return;
  item.turnKey = key;
  item.className = "turn";
  Object.assign(item.dataset, { unsent: entry.id, status: state });
  const words = { failed: inWords("Not sent. {problem}", { problem: entry.problem }), sending: inWords("Sending…"), waiting: inWords("Will be sent when the connection is back") };
  const button = (act, label) => make("button", { type: "button", className: "quiet-button", data: { unsentAct: act } }, label);
  const acts = entry.problem ? [button("retry", inWords("Try again")), button("edit", inWords("Edit")), button("discard", inWords("Discard"))] : [];
  item.replaceChildren(
    make(
      "div",
      { className: "said", attributes: { role: "group", "aria-label": inWords("You") } },
      entry.text.trim() !== "" && make("p", { className: "words", dir: "auto" }, entry.text),
      files(entry.files),
      entry.files && state === "sending" && make("progress", { max: 1, value: 0, attributes: { "aria-label": inWords("Sending…") } }),
      make("p", { className: "meta" }, words[state], ...acts),
    ),
  );
}
