// Live: the log as it comes.

import { button, link, make, show } from "./dom.js";
import { clock, full, logSentence, number, plural } from "./format.js";
import { listen } from "./live.js";
import { buttons, channelField, empty, filters, heading } from "./parts.js";

/** The most entries that are kept. */
const KEPT = 500;

/** New entries are shown together after this time (ms). */
const PAUSE = 200;

const KINDS = [["", "All"], ["turn.", "Turns"], ["delivery.", "Deliveries"], ["channel.", "Channels"], ["agent.", "Agents"], ["person.", "People"], ["approval.", "Approvals"], ["operator.", "Operators"]];

/** Entries that came while the page was open, newest first; they outlive a look at another section. */
let entries = [];
listen((entry) => {
  entries.unshift(entry);
  if (entries.length > KEPT) entries.length = KEPT;
});

/** Whoever signs in next may see less. */
export function forget() {
  entries = [];
}

export function feed(view) {
  let paused = null;
  let timer = 0;
  const state = make("p", { className: "quiet", attributes: { role: "status" } });
  const items = make("ol", { className: "feed", attributes: { "aria-label": "The log, newest first" } });
  const toggle = button("Pause", () => {
    paused = paused ? null : [...entries];
    toggle.textContent = paused ? "Go on" : "Pause";
    toggle.setAttribute("aria-pressed", String(Boolean(paused)));
    draw();
  });
  const clear = button("Clear", () => {
    entries = [];
    if (paused) paused = [];
    draw();
  });

  function draw() {
    timer = 0;
    const [kind, channel] = [view.params.get("topic") ?? "", view.params.get("channel") ?? ""];
    const found = (paused ?? entries).filter(({ topic }) => topic.startsWith(kind)).map(read).filter((entry) => !channel || entry.channel === channel);
    state.textContent = paused ? `Paused. ${newer()}` : "";
    show(items, found.map(item));
    none.hidden = found.length > 0;
  }
  const newer = () => {
    const count = entries.findIndex(({ id }) => id === paused[0]?.id);
    if (count === 0 || !entries.length) return "";
    return count < 0 ? `${number(entries.length)} newer entries or more.` : `${plural(count, "newer entry", "newer entries")}.`;
  };
  const soon = () => {
    timer ||= setTimeout(draw, PAUSE);
  };

  const none = empty("Nothing has happened since you opened this page. New entries appear here by themselves.");
  const fields = [{ name: "topic", label: "About", kind: "select", options: KINDS }, channelField(view)];
  show(view.main, heading("Live", buttons(toggle, clear)), filters(view, fields, draw), state, none, items);
  listen(soon, view.signal);
  view.signal.addEventListener("abort", () => clearTimeout(timer));
  draw();
}

/** The fields of an entry, read once. */
function read(entry) {
  entry.read ??= JSON.parse(entry.data);
  return entry.read;
}

function item(entry) {
  const { seq, at, topic, channel, turn_id: turn } = entry;
  return make(
    "li",
    { data: { key: String(seq), kind: topic.split(".")[0] } },
    make("time", { title: full(at), attributes: { datetime: at } }, clock(at)),
    make("code", {}, topic),
    make("p", {}, logSentence(entry)),
    make("p", { className: "links" }, channel && make("span", {}, channel), turn && link(`/admin/turns/${turn}`, "Turn")),
  );
}
