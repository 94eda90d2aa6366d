// The page: connects the conversation, the socket and the person's input.

import { Composer } from "./composer.js";
import { Connection } from "./connection.js";
import { isCommand, isFinal, isUnasked, versionsOf, voiceOf } from "./conversation.js";
import { Conversations } from "./conversations.js";
import { Deletions } from "./deletions.js";
import { addStyles, arrange, make } from "./dom.js";
import { Attachments } from "./files.js";
import { install } from "./install.js";
import { shortcut } from "./keys.js";
import { ConversationList } from "./list.js";
import { Outbox } from "./outbox.js";
import { FILES, changedName, forgetAll, forgetTab, isForgotten, newId, recall, remember, SHARED, tabStorage } from "./storage.js";
import { switchTheme } from "./theme-button.js";
import { dayOf, serverTime, setServerTime } from "./time.js";
import { showTurn, showUnsent, tick } from "./turns.js";
import { translate, inWords } from "./words.js";

const $ = (id) => document.getElementById(id);
/** A connection that is lost for less than this (ms) is not reported. */
const UNNOTICED = 1_500;
/** The scripts that are used without a connection as well, though not at first: they are loaded once there is one. */
const LATER = ["attached", "copy", "dialogs", "menu"];

/** What is known of the conversation that is open. */
let conversation;
const items = new Map();
let agent = "";
let missedFrom = null;
let lostAt = null;
let isStopping = false;
let isLoadingOlder = false;
/** What earlier turns are loaded for: until `isThere()`, or all; then `act()` is called. */
let sought = null;
let commands = [];
/** The versions of questions, and which of them are looked at if not the last: by the ids of the first. */
let versions = new Map();
const lookedAt = new Map();
let unreadCount = 0;
const title = document.title;

const path = location.pathname.replace(/\/+$/, "");
const tokenHere = () => recall("token") ?? recall("token", tabStorage());
/** Who is signed in, where people sign in. */
let account = null;
/** The code of a link with which the person makes a passkey. It does not stay in the address. */
let invitation = new URLSearchParams(location.hash.slice(1)).get("invitation");
if (invitation) history.replaceState(null, "", location.pathname);
/** The files of messages of this tab that are not sent yet. */
const held = new Map();

const connection = new Connection({
  url: `${location.origin.replace(/^http/, "ws")}${path}/ws`,
  hello: () => {
    const token = tokenHere();
    return { type: "hello", protocol: 1, conversation: conversations.current, language: navigator.language, ...(token && { token }) };
  },
  onFrame: (frame) => hear[frame.type]?.(frame),
  onState: showState,
});
const outbox = new Outbox({ send: (frame) => connection.send(frame), upload: sendWithFiles, holdFiles, dropFiles, onChange: showWithList });
const deletions = new Deletions({ send: (frame) => connection.send(frame) });
const composer = new Composer({ onSend: (words, instead_of) => say(words, attachments.take(), undefined, { instead_of }), onUnfinished: begin, hasFiles: () => !attachments.isEmpty, announce: speak });
const attachments = new Attachments({ onChange: showAttached, refuse: (words) => composer.notice(words) });
const conversations = new Conversations({ onChange: () => list.show(), onGone: leaveGone, isWaiting: (id) => outbox.counts.has(id) });
const list = new ConversationList(conversations, { open: visit, remove: erase, unsent: () => outbox.counts, loss: lossOf, waits: () => !connection.isOnline && deletions.count > 0, announce: speak });

// --- Server frames ---

const hear = {
  welcome(frame) {
    setServerTime(frame.now);
    agent = frame.agent;
    if (frame.account && !welcomes(frame.account)) return;
    composer.maxTextBytes = frame.max_text_bytes;
    attachments.limits = { count: frame.max_files, bytes: frame.max_file_bytes };
    composer.commands = commands = frame.commands;
    $("title").textContent = frame.title;
    $("greeting-text").textContent = frame.greeting;
    const wasHere = conversation.turns.length > 0;
    const isWorthAWord = lostAt !== null && Date.now() - lostAt > UNNOTICED;
    lostAt = null;
    const news = conversation.sync(frame.turns, frame.more);
    if (wasHere && isWorthAWord) missedFrom = news[0] ?? null;
    $("conversation").setAttribute("aria-busy", "false");
    isLoadingOlder = false;
    note();
    if (wasHere) announce(...news);
    outbox.restart();
    deletions.restart();
    search?.then((search) => search.restart());
    seek();
    pushKey = frame.push_key ?? null;
    follow();
    for (const name of LATER) import(`./${name}.js`).catch(() => {});
    addStyles("print.css");
  },
  conversations(frame) {
    conversations.merge(frame.conversations);
    list.show();
  },
  sync(frame) {
    const news = conversation.sync(frame.turns, frame.more);
    note();
    announce(...news);
  },
  history(frame) {
    const view = $("conversation");
    const below = view.scrollHeight - view.scrollTop;
    conversation.putOlder(frame.turns, frame.more);
    isLoadingOlder = false;
    show();
    view.scrollTop = view.scrollHeight - below;
    seek();
  },
  found(frame) {
    search?.then((search) => search.found(frame));
  },
  accepted({ id, turn_id }) {
    if (deletions.accepted(id)) return list.show();
    const entry = outbox.entries.find((entry) => entry.id === id);
    if (entry && turn_id && !conversation.turn(turn_id)) {
      const at = new Date(serverTime()).toISOString();
      conversation.put({ turn_id, at, text: entry.text, files: entry.files, instead_of: entry.instead_of, status: "accepted", shown: null, isOurs: true });
      adopt(id, turn_id);
    }
    // A pick that opened a turn was the first one.
    if (entry?.turn_id && turn_id) conversation.putPick(entry.turn_id, entry.text, entry.asked);
    outbox.accepted(id);
    if (turn_id) follow();
  },
  turn({ turn }) {
    const wasShown = conversation.turn(turn.turn_id)?.shown;
    if (!conversation.put(turn)) return;
    if (isFinal(turn)) isStopping = false;
    note();
    // A pick alone is not announced: only a new signal is.
    if (turn.shown?.at !== wasShown?.at) announce(turn.turn_id);
  },
  draft({ turn_id, html, steps }) {
    const before = conversation.draft(turn_id);
    conversation.putDraft(turn_id, html, steps);
    const draft = conversation.draft(turn_id);
    const turn = conversation.turn(turn_id);
    const item = items.get(turn_id);
    if (!turn || !item) return;
    if (before === undefined && draft !== undefined) show();
    else keepingPlace(() => showTurn(item, turn, item.context = { ...item.context, draft, steps: conversation.steps(turn_id) }));
  },
  typing({ turn_id, on }) {
    conversation.putTyping(turn_id, on);
    show();
  },
  error({ id, code, message, retry }) {
    if (id && deletions.refused(id, retry)) return retry || composer.notice(inWords("A conversation could not be deleted at the gateway. {problem}", { problem: message }));
    if (code === "token_required" || code === "token_wrong") return askForToken(code === "token_wrong" ? message : "");
    if (code === "sign_in_required") return askToSignIn();
    if (code === "bad_subscription") return composer.notice(inWords("This browser cannot be notified."));
    if (code === "bad_conversation") return remove(conversations.current);
    if (code === "unsupported_protocol") {
      connection.close();
      return showBanner(message, inWords("Load again"), () => location.reload());
    }
    if (id) search?.then((search) => search.refused(id, retry));
    if (id) return outbox.refused(id, message, retry);
    isLoadingOlder = false;
    sought = null;
    isStopping = false;
    show();
  },
};

/** The unsent message's bubble becomes that of its turn, so that nothing jumps. */
function adopt(unsentId, turnId) {
  const item = items.get(unsentId);
  if (!item) return;
  items.delete(unsentId);
  delete item.dataset.unsent;
  items.set(turnId, item);
}

// --- Rendering ---

function show() {
  keepingPlace(() => {
    const turns = inTheirVersions(conversation.seen);
    const unfinished = conversation.unfinished;
    const last = turns.findLast((turn) => !isCommand(turn) && !isUnasked(turn) && !turn.merged_into);
    // A turn that arrives before its "accepted" is the same message: it is shown once.
    const unsent = outbox.entries.filter((entry) => !(entry.wasSent && turns.some((turn) => isSame(turn, entry))));
    const wanted = [];
    turns.forEach((turn, index) => {
      const day = dayOf(turn.at);
      const next = turns.slice(index + 1).find((other) => other.merged_into !== turn.turn_id && !isUnasked(other)) ?? unsent[0];
      const isWriting = conversation.isTyping(turn.turn_id) || turn === unfinished[0];
      // A run that waits for the answer may ask again: what was said since is no answer to that.
      const sent = outbox.entries.find((entry) => entry.turn_id === turn.turn_id && entry.asked === turn.shown?.at && !entry.problem);
      const guessed = isFinal(turn) && turn.shown?.choices?.includes(next?.text) ? next.text : null;
      const item = itemOf(turn.turn_id);
      item.context = {
        day: index === 0 || day !== dayOf(turns[index - 1].at) ? day : null,
        isMissed: turn.turn_id === missedFrom,
        draft: conversation.draft(turn.turn_id),
        steps: conversation.steps(turn.turn_id),
        activity: isFinal(turn) ? null : isWriting ? "writing" : "waiting",
        hasDraft: conversation.draft(turn.turn_id) !== undefined,
        canPick: isFinal(turn) ? !next : !sent,
        isLast: turn === last && unsent.length === 0,
        isSaidAgain: [...turns.slice(index + 1), ...unsent].some(({ text }) => text === turn.text),
        agent,
        version: versionOf(turn.turn_id),
        picked: turn.picked ?? sent?.text ?? guessed,
      };
      showTurn(item, turn, item.context);
      wanted.push(item);
    });
    for (const entry of unsent) {
      const item = itemOf(entry.id);
      showUnsent(item, entry, connection.isOnline);
      wanted.push(item);
    }
    const kept = new Set(wanted);
    for (const [id, item] of items) if (!kept.has(item)) items.delete(id);
    arrange($("turns"), wanted);
    $("older").hidden = !conversation.hasOlder;
    $("older").disabled = isLoadingOlder || !connection.isOnline;
    $("greeting").hidden = wanted.length > 0 || $("conversation").getAttribute("aria-busy") === "true";
    $("stop").hidden = unfinished.length === 0;
    $("stop").disabled = isStopping || !connection.isOnline;
    $("greeting-gone").hidden = !conversations.get(conversations.current).last;
    $("greeting-text").hidden = !$("greeting-gone").hidden;
  });
}

/** The turns, of each question that was asked more than once only the version that is looked at. */
function inTheirVersions(turns) {
  versions = versionsOf(turns);
  const replaced = new Set(outbox.entries.filter(({ problem }) => !problem).map(({ instead_of }) => instead_of));
  const isShown = (id) => {
    const list = versions.get(id);
    return !replaced.has(id) && (!list || id === (lookedAt.get(list[0]) ?? list.at(-1)));
  };
  return turns.filter(({ turn_id, merged_into }) => isShown(turn_id) && (!merged_into || isShown(merged_into)));
}

function versionOf(id) {
  const list = versions.get(id);
  return list && { number: list.indexOf(id) + 1, count: list.length };
}

/** Shows the version of a question that comes before or after that of a turn. */
function lookAt(id, act) {
  const list = versions.get(id);
  const other = list[list.indexOf(id) + (act === "before" ? -1 : 1)];
  lookedAt.set(list[0], other);
  readsTheEnd = false;
  show();
  $("latest").hidden = readsTheEnd = isAtTheEnd();
  const buttons = [...items.get(other).querySelectorAll(".versions button:enabled")];
  (buttons.find(({ dataset }) => dataset.act === act) ?? buttons[0]).focus({ preventScroll: true });
}

function showWithList() {
  show();
  list.show();
}

/** Something was said in the conversation that is open. */
function note() {
  conversations.note();
  showWithList();
}

/** Whether a turn is what came of an entry. The same words may have been said before. */
function isSame(turn, entry) {
  return turn.text === entry.text && turn.seq > (entry.after ?? -1) && Date.parse(turn.at) > entry.at - 60_000 && !turn.isOurs;
}

function itemOf(id) {
  if (!items.has(id)) items.set(id, make("li"));
  return items.get(id);
}

/** Whether the view stays at its end when the content changes. If the person has scrolled up, it does not move. */
let readsTheEnd = true;

function keepingPlace(change) {
  change();
  if (readsTheEnd) toTheEnd();
  else $("latest").hidden = false;
}

function toTheEnd() {
  const view = $("conversation");
  view.scrollTop = view.scrollHeight;
  readsTheEnd = true;
  $("latest").hidden = true;
}

function isAtTheEnd() {
  const { scrollHeight, scrollTop, clientHeight } = $("conversation");
  return scrollHeight - scrollTop - clientHeight < 60;
}

let heightOfView = 0;

$("conversation").addEventListener("scroll", () => {
  const view = $("conversation");
  // If the view's height changed, the person did not scroll: the composer grew, or a keyboard appeared.
  if (view.clientHeight !== heightOfView) return;
  readsTheEnd = isAtTheEnd();
  if (readsTheEnd) $("latest").hidden = true;
}, { passive: true });
new ResizeObserver(() => {
  heightOfView = $("conversation").clientHeight;
  if (readsTheEnd) toTheEnd();
}).observe($("conversation"));
$("latest").addEventListener("click", toTheEnd);

/** Announces the new answers of turns to screen readers, and counts them in the title while the tab is hidden. */
function announce(...turnIds) {
  const turns = turnIds.map((id) => conversation.turn(id)).filter((turn) => turn?.shown);
  if (turns.length === 0) return;
  speak(turns.map(spoken).join("\n"));
  if (document.hidden && turns.some(isFinal)) document.title = `(${(unreadCount += turns.filter(isFinal).length)}) ${title}`;
}

function spoken({ turn_id, shown }) {
  const item = items.get(turn_id);
  const words = (item?.querySelector(".answer .words") ?? item?.querySelector(".remark.answer"))?.innerText ?? "";
  const choices = shown.choices?.length ? ` ${inWords("Choices: {choices}.", { choices: shown.choices.join(", ") })}` : "";
  const voice = { agent: shown.agent ?? agent, "stand-in": inWords("The gateway, not the agent"), gateway: inWords("The gateway") }[voiceOf(shown)];
  const said = shown.signal === "reaction" ? inWords("Reaction: {text}", { text: shown.text }) : words;
  return `${voice}: ${said.slice(0, 1_000)}${choices}`;
}

/** Says `words` to those who do not see the page. */
function speak(words) {
  $("announcer").textContent = words;
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) return;
  unreadCount = 0;
  document.title = title;
  renewList();
});

// --- The connection ---

let bannerTimer = 0;

function showState(state) {
  const words = { connecting: inWords("Connecting…"), online: inWords("Connected"), waiting: inWords("Reconnecting…"), offline: inWords("Offline"), closed: inWords("Not connected") };
  // An attempt to reconnect does not change the text, nor does the way to another conversation.
  const isUnnoticed = state === "connecting" && (lostAt !== null || document.documentElement.dataset.connection === "online");
  if (!isUnnoticed) {
    $("connection").textContent = words[state];
    document.documentElement.dataset.connection = state;
  }
  if (state === "online") {
    clearTimeout(bannerTimer);
    bannerTimer = 0;
    $("banner").hidden = true;
  } else if (state === "waiting" || state === "offline") {
    lostAt ??= Date.now();
    isLoadingOlder = false;
    sought = null;
    conversation.silence();
    const banner = () =>
      navigator.onLine
        ? showBanner(inWords("The connection was lost. What you write is kept and will be sent."), inWords("Try now"), () => connection.tryNow())
        : showBanner(inWords("You are offline. What you write is kept and will be sent."), inWords("Try now"), () => connection.tryNow());
    if (!$("banner").hidden) banner();
    else bannerTimer ||= setTimeout(banner, UNNOTICED);
  }
  queueMicrotask(showWithList);
}

function showBanner(words, label, act) {
  if ($("banner-text").textContent !== words) $("banner-text").textContent = words;
  $("banner").hidden = false;
  $("banner-action").textContent = label;
  $("banner-action").hidden = false;
  $("banner-action").onclick = act;
}

// --- Input ---

function say(words, files = [], voice = undefined, more = {}) {
  missedFrom = null;
  lookedAt.clear();
  readsTheEnd = true;
  conversations.said(words.trim() ? words : files.map(({ name }) => name).join(", "));
  outbox.say(words, conversation.lastPlace, files, voice, more);
}

/** A conversation is in the list once something is written in it. */
function begin(words) {
  if (!words.trim() || conversations.has(conversations.current)) return;
  conversations.begun();
  list.show();
}

// --- Files and voice notes ---

function showAttached() {
  composer.fit();
  if (!attachments.isEmpty) begin(inWords("Files"));
}

function holdFiles(id, files) {
  held.set(id, files);
  // For when the page is left before they are sent.
  import("./kept-files.js").then(({ keep }) => held.has(id) && keep(id, files)).catch(() => {});
}

function dropFiles(id) {
  held.delete(id);
  import("./kept-files.js").then(({ drop }) => drop(id)).catch(() => {});
}

/** Sends an entry with files, if the gateway can be reached. */
function sendWithFiles(entry) {
  if (!connection.isOnline) return false;
  const { id } = entry;
  uploaded(entry).then(
    ({ turn_id, problem, retry, code }) => (problem ? hear.error({ id, code, message: problem, retry }) : hear.accepted({ id, turn_id })),
    () => outbox.refused(id, "", true),
  );
  return true;
}

async function uploaded(entry) {
  const files = held.get(entry.id) ?? (await (await import("./kept-files.js")).kept(entry.id));
  if (!files) return { problem: inWords("Its files are not here any more. Attach them again."), retry: false };
  const { upload } = await import("./upload.js");
  const onProgress = (share) => {
    const bar = items.get(entry.id)?.querySelector("progress");
    if (bar) bar.value = share;
  };
  return upload({ url: `${path}/messages`, token: tokenHere(), entry, files, onProgress });
}

const canRecord = Boolean(navigator.mediaDevices?.getUserMedia && globalThis.MediaRecorder);
$("voice").hidden = !canRecord;
$("voice").addEventListener("click", async () => {
  const end = () => {
    $("voice").disabled = false;
    composer.focus();
  };
  const place = conversations.current;
  $("voice").disabled = true;
  try {
    const { record } = await import("./recorder.js");
    const onSend = (file, seconds) => {
      if (conversations.current !== place) visit(place);
      say("", [file], seconds);
    };
    await record($("recording"), { onSend, onEnd: end, refuse: (words) => composer.notice(words) });
  } catch {
    end();
  }
});

// A picture that has come is higher than its place was.
for (const type of ["load", "loadedmetadata"]) $("turns").addEventListener(type, () => readsTheEnd && toTheEnd(), true);

$("stop").addEventListener("click", () => {
  isStopping = connection.send({ type: "stop" });
  show();
  composer.focus();
});

$("older").addEventListener("click", loadOlder);

function loadOlder() {
  const first = conversation.turns[0];
  isLoadingOlder = Boolean(first) && connection.send({ type: "older", before: first.turn_id });
  show();
}

/** Loads earlier turns until `isThere()`, or all. Given up if the conversation is left, or the connection is lost. */
function loadUntil(isThere) {
  return new Promise((act) => {
    sought = { isThere, act };
    seek();
  });
}

function seek() {
  if (!sought || !connection.isOnline || isLoadingOlder) return;
  if (conversation.hasOlder && !sought.isThere()) return loadOlder();
  const { act } = sought;
  sought = null;
  act();
}

$("turns").addEventListener("click", (event) => {
  const button = event.target.closest("button");
  const item = button?.closest("li[data-turn-id], li[data-unsent]");
  if (!button || !item) return;
  const { act, copy, choice, unsentAct } = button.dataset;
  if (copy) copyWords(button, copy === "code" ? button.closest(".code").querySelector("code").textContent : conversation.turn(item.dataset.turnId).shown.text);
  else if (choice !== undefined) pick(item.dataset.turnId, Number(choice));
  else if (act === "before" || act === "after") lookAt(item.dataset.turnId, act);
  else if (act) repeat(conversation.turn(item.dataset.turnId), act);
  else if (unsentAct === "retry") outbox.retry(item.dataset.unsent);
  else if (unsentAct) takeBack(item.dataset.unsent, unsentAct === "edit");
});

function pick(turnId, choice) {
  const { choices, at } = conversation.turn(turnId).shown;
  readsTheEnd = true;
  outbox.choose(turnId, choice, choices[choice], conversation.lastPlace, at);
  composer.focus();
}

/** Says what a turn says once more: as a new message, in its place, or in its place after an edit. */
function repeat(turn, act) {
  const instead_of = isFinal(turn) ? (versions.get(turn.turn_id)?.at(-1) ?? turn.turn_id) : undefined;
  if (act === "edit") return composer.edit(turn.text, instead_of);
  say(turn.text, [], undefined, act === "retry" ? { instead_of, sent: "/retry" } : {});
  composer.focus();
}

function takeBack(id, isEdited) {
  const files = held.get(id) ?? [];
  const entry = outbox.discard(id);
  if (isEdited && entry) {
    composer.putBack(entry.text);
    attachments.add(files);
  }
  composer.focus();
}

async function copyWords(button, words) {
  const { copy } = await import("./copy.js");
  copy(button, words);
}

// --- Conversations ---

/** Shows a conversation. What is not sent or not finished stays with the one before. */
function open(id) {
  const before = conversations.current;
  const isEmpty = before && isUnwritten();
  conversation?.silence();
  conversation = conversations.open(id);
  if (isEmpty && before !== id) conversations.remove(before);
  outbox.open(id);
  composer.open(id);
  attachments.open(id);
  missedFrom = null;
  isStopping = false;
  isLoadingOlder = false;
  sought = null;
  readsTheEnd = true;
  $("conversation").setAttribute("aria-busy", String(conversation.turns.length === 0));
  connection.open();
  showWithList();
}

/** Whether nothing was ever said or begun in the conversation that is open. */
function isUnwritten() {
  return conversations.isUnwritten(conversations.current) && outbox.entries.length === 0 && composer.isEmpty && attachments.isEmpty;
}

/** Shows the conversation that the person chose. */
function visit(id) {
  if (id !== conversations.current) {
    open(id);
    speak(inWords("Conversation: {title}", { title: conversations.get(id).title }));
  }
  focusForKeys();
}

$("new").addEventListener("click", () => {
  if (!isUnwritten()) {
    open(newId());
    speak(inWords("New conversation"));
  }
  composer.focus();
});

/** What is lost when a conversation is deleted: how many messages wait to be sent, and whether an answer is awaited. */
function lossOf(id) {
  return { unsent: outbox.counts.get(id) ?? 0, isAwaited: id === conversations.current && conversation.unfinished.length > 0 };
}

/** Deletes a conversation in this browser, and at the gateway what agents are shown of it and what is found in it. */
function erase(id) {
  remove(id);
  deletions.add(id);
  list.show();
}

/** Removes a conversation from this browser. */
function remove(id) {
  if (id === conversations.current) open(newId());
  outbox.clear(id);
  conversations.remove(id);
  list.show();
}

/** Another tab has removed the conversation that is open here. */
function leaveGone() {
  const gone = conversations.current;
  const isSeen = !isUnwritten();
  const words = composer.clear();
  const files = attachments.take();
  open(newId());
  // What this tab has stored of it meanwhile.
  outbox.clear(gone);
  conversations.remove(gone);
  if (words.trim()) composer.putBack(words);
  attachments.add(files);
  if (isSeen) composer.notice([inWords("That conversation was removed in another tab."), words.trim() && inWords("What you were writing is kept here.")].filter(Boolean).join(" "));
}

addEventListener("storage", (event) => {
  const [what, id] = changedName(event)?.split(":") ?? [];
  if (what !== "unsent") return;
  if (event.newValue === null) outbox.drop(id);
  list.show();
});

// --- Search, the menu of the conversation, and keys. What they need more is loaded when it is used. ---

/** The search in what was said. */
let search = null;

$("search").addEventListener("input", async () => {
  const acts = {
    send: (frame) => connection.send(frame),
    ids: () => conversations.ids,
    titleOf: (id) => conversations.get(id).title,
    has: (turn) => Boolean(conversation.turn(turn)),
    refuse: (words) => composer.notice(words),
    loadUntil,
    bring(turn) {
      const list = versions.get(turn);
      if (list) lookedAt.set(list[0], turn);
      show();
    },
    open(id) {
      list.close();
      visit(id);
    },
  };
  search ??= import("./found.js").then(({ Found }) => new Found(acts));
  (await search).look($("search").value);
});

$("more").addEventListener("click", async () => {
  const { openActions } = await import("./actions.js");
  const loadAll = () => (connection.isOnline ? loadUntil(() => false) : null);
  openActions($("more"), { commands, say, loadAll, help: keys.help });
});

const go = (step) => {
  const id = list.neighbour(step);
  if (id) visit(id);
};
const keys = {
  help: async () => (await import("./help.js")).showKeys(),
  begin: () => $("new").click(),
  commands: () => $("slash").click(),
  edit: () => [...$("turns").querySelectorAll("[data-act=edit]")].at(-1)?.click(),
  previous: () => go(-1),
  next: () => go(1),
  search() {
    if ($("list-open").offsetParent && !$("drawer").open) $("list-open").click();
    $("search").focus();
    $("search").select();
  },
};

addEventListener("keydown", (event) => {
  const act = shortcut(event, !composer.isEmpty);
  if (!act) return;
  event.preventDefault();
  keys[act]();
});

// --- Leaving a device that others use ---

$("forget").addEventListener("click", async () => {
  const { askToForget } = await import("./dialogs.js");
  if (await askToForget()) leave(forgetAll);
});
// The tab that forgets the device begins a conversation of its own, which stays.
addEventListener("storage", (event) => {
  if (isForgotten(event)) leave(forgetTab);
});

function leave(forget) {
  const ended = recall("notify") === null ? null : loadApp().then((app) => app.forget());
  connection.close();
  outbox.clear(conversations.current);
  conversations.remove(conversations.current);
  // A browser restores the fields of a page that it loads again.
  composer.clear();
  forget();
  globalThis.indexedDB?.deleteDatabase(FILES);
  Promise.resolve(ended).catch(() => {}).then(() => location.reload());
}

// --- The token ---

async function askForToken(problem) {
  connection.close();
  remember("token", null);
  remember("token", null, tabStorage());
  const dialogs = await import("./dialogs.js").catch(() => null);
  const entered = await dialogs?.askForToken(problem);
  if (!entered) return showBanner(inWords("This chat is private."), inWords("Enter the token"), () => askForToken(""));
  remember("token", entered.token, entered.isKept ? undefined : tabStorage());
  $("banner").hidden = true;
  connection.open();
}

// --- Signing in ---

/** Takes over what is known of who is signed in. Returns whether that is who was here before: otherwise nothing of theirs stays. */
function welcomes(who) {
  if ((recall("account") ?? who.id) !== who.id) return leave(forgetAll);
  remember("account", who.id);
  account = who;
  conversations.merge(who.conversations);
  const notice = (words) => composer.notice(words);
  import("./sign-in.js").then(({ showAccount }) => showAccount(who, { onOut: () => leave(forgetAll), notice })).catch(() => {});
  return true;
}

async function askToSignIn() {
  connection.close();
  app?.then((app) => app.restart()).catch(() => {});
  const banner = (again) => showBanner(inWords("You are not signed in."), inWords("Sign in"), again);
  const onDone = () => {
    invitation = null;
    $("banner").hidden = true;
    connection.open();
  };
  try {
    (await import("./sign-in.js")).askToSignIn({ invitation, onDone, onLeft: banner });
  } catch {
    banner(askToSignIn);
  }
}

/** On another device, the person may have begun or deleted conversations. */
function renewList() {
  if (account) connection.send({ type: "list" });
}

$("list-open").addEventListener("click", renewList);
// A link with an invitation was opened in this tab.
addEventListener("hashchange", () => location.hash.startsWith("#invitation=") && location.reload());

// --- The app ---

let app = null;
/** The gateway's key at push services; `null`: it tells browsers nothing. */
let pushKey = null;
let hasPushes = false;

function loadApp() {
  const place = () => ({ key: pushKey, id: conversations.current, isKnown: conversation.turns.length > 0 });
  const begin = ({ App }) => new App({ path, send: (frame) => connection.send(frame), notice: (words) => composer.notice(words), place });
  app ??= import("./app.js").then(begin);
  app.catch(() => (app = null));
  return app;
}

/** Has this browser told of answers in the conversation that is open, if the person wants it. */
function follow() {
  $("notify").hidden = !hasPushes || pushKey === null;
  if (!$("notify").hidden && recall("notify") !== null) loadApp().then((app) => app.follow()).catch(() => {});
}

$("notify").addEventListener("click", () => loadApp().then((app) => app.toggle()).catch(() => composer.notice(inWords("This browser cannot be notified."))));

// Browsers have workers on this machine and over TLS.
navigator.serviceWorker?.ready.then(({ pushManager }) => {
  hasPushes = Boolean(pushManager && globalThis.Notification);
  follow();
});

// A notification was clicked.
navigator.serviceWorker?.addEventListener("message", async ({ data }) => {
  const ids = conversations.find("").map(({ id }) => id);
  const id = await (await loadApp()).find(ids, data.conversation);
  if (id !== null) visit(id);
});

async function takeShared() {
  if (!(await globalThis.caches?.has(SHARED))) return;
  const { words, files } = await (await loadApp()).takeShared();
  if (words) composer.putBack(words);
  attachments.add(files);
}

// --- Start ---

/** On a phone, focus would bring up the keyboard. */
function focusForKeys() {
  if (matchMedia("(pointer: fine)").matches) composer.focus();
}

translate(document);
switchTheme($("theme"), (isDark) => (isDark ? inWords("Switch to light theme") : inWords("Switch to dark theme")));
// Typing notices expire, and days change.
setInterval(showWithList, 30_000);
setInterval(() => tick($("turns")), 1_000);
open(conversations.first);
if (invitation) askToSignIn();
focusForKeys();
install("/chat");
takeShared().catch(() => {});
