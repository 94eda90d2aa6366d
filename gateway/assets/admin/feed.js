// Live: the log as it comes.

import { button, link, make, show } from "./dom.js";
import { clock, full, logSentence, plural } from "./format.js";
import { listen } from "./live.js";
import { buttons, channelField, empty, filters, heading } from "./parts.js";

/** The most entries that are kept. */
const KEPT = 500;

const KINDS = [["", "All"], ["turn.", "Turns"], ["delivery.", "Deliveries"], ["channel.", "Channels"], ["agent.", "Agents"], ["operator.", "Operators"]];

/** Entries that came while the page was open, newest first; they outlive a look at another section. */
let entries = [];
listen((entry) => {
  entries.unshift(entry);
  if (entries.length > 2 * KEPT) entries.length = KEPT;
});

export function feed(view) {
  let paused = null;
  let frame = 0;
  const state = make("p", { className: "quiet", attributes: { role: "status" } });
  const items = make("ol", { className: "feed", attributes: { "aria-label": "The log, newest first" } });
  const toggle = button("Pause", () => {
    paused = paused ? null : entries.slice(0, KEPT);
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
    frame = 0;
    const [kind, channel] = [view.params.get("topic") ?? "", view.params.get("channel") ?? ""];
    const all = (paused ?? entries).slice(0, KEPT);
    const found = all.filter(({ topic }) => topic.startsWith(kind)).map(read).filter((entry) => !channel || entry.channel === channel);
    const missed = paused ? entries.findIndex(({ id }) => id === paused[0]?.id) : 0;
    state.textContent = paused ? `Paused. ${missed > 0 ? `${plural(missed, "newer entry", "newer entries")}.` : ""}` : "";
    show(items, found.map(item));
    none.hidden = found.length > 0;
  }
  const soon = () => {
    frame ||= requestAnimationFrame(draw);
  };

  const none = empty("Nothing has happened since you opened this page. New entries appear here by themselves.");
  const fields = [{ name: "topic", label: "About", kind: "select", options: KINDS }, channelField(view)];
  show(view.main, heading("Live", buttons(toggle, clear)), filters(view, fields, draw), state, none, items);
  listen(soon, view.signal);
  view.signal.addEventListener("abort", () => cancelAnimationFrame(frame));
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
