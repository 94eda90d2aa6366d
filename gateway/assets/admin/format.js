// Times, numbers and names, in words.

const CLOCK = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const EXACT = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3, hourCycle: "h23" });
const SHORT = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const DAY = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const FULL = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "medium" });
const NUMBER = new Intl.NumberFormat("en");

/** A number with commas between its thousands. */
export const number = (value) => NUMBER.format(value);

/** `plural(2, "turn")` is "2 turns". */
export const plural = (count, one, many = `${one}s`) => `${number(count)} ${count === 1 ? one : many}`;

/** The time of day, to the second. */
export const clock = (at) => CLOCK.format(new Date(at));

/** The time of day, to the millisecond: steps of a turn have the same second. */
export const exactClock = (at) => EXACT.format(new Date(at));

/** The time of day, to the minute. */
export const minute = (at) => SHORT.format(new Date(at));

/** The day, and the time of day. */
export const moment = (at) => `${DAY.format(new Date(at))}, ${clock(at)}`;

/** The time of day to the minute, with the day if it is not today's. */
export function sinceWhen(at) {
  const then = new Date(at);
  return then.toDateString() === new Date().toDateString() ? minute(at) : `${DAY.format(then)}, ${minute(at)}`;
}

/** The full local time. */
export const full = (at) => FULL.format(new Date(at));

/** How long ago a time is, or how far ahead: "4 min ago", "in 2 h". */
export function ago(at, now = Date.now()) {
  const past = (now - Date.parse(at)) / 1000;
  const seconds = Math.abs(past);
  const words = (text) => (past < 0 ? `in ${text}` : `${text} ago`);
  if (seconds < 10) return past < 0 ? "in a moment" : "just now";
  if (seconds < 60) return words(`${Math.round(seconds)} s`);
  if (seconds < 3_600) return words(`${Math.round(seconds / 60)} min`);
  if (seconds < 86_400) return words(`${Math.round(seconds / 3_600)} h`);
  if (seconds < 30 * 86_400) return words(plural(Math.round(seconds / 86_400), "day"));
  return new Intl.DateTimeFormat(undefined, { dateStyle: "medium" }).format(new Date(at));
}

/** A length of time in milliseconds: "812 ms", "1.2 s", "4 min 10 s". */
export function span(ms) {
  if (ms === null || ms === undefined) return "–";
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${(ms / 1_000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3_600)} h ${Math.floor((seconds % 3_600) / 60)} min`;
}

/** The time between two times. */
export const between = (from, to) => span(Date.parse(to) - Date.parse(from));

/** The beginning of a text, in one line. */
export function excerpt(text, length = 140) {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > length ? `${line.slice(0, length - 1).trimEnd()}…` : line;
}

/** With a capital letter. */
export const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** Characters that show nothing, control something or turn the direction of a text, as escapes such as \u{202e}. Lines and tabs stay. */
export const revealed = (text) => text.replace(/(?![\n\t])[\p{C}\p{Zl}\p{Zp}\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\uffa0\ufff9-\ufffb]/gu, (char) => `\\u{${char.codePointAt(0).toString(16)}}`);

/** The address of a conversation: CHANNEL/CHAT or CHANNEL/CHAT/THREAD. */
export const address = ({ channel, chat, thread }) => [channel, chat, thread].filter(Boolean).join("/");

/** Whose turn it is. */
export const person = ({ sender_name, sender_id }) => sender_name || sender_id || "Somebody";

/** What the gateway does by itself: no command that a person writes. */
const OWN = new Set(["asks", "asks_again", "decide", "digest", "dropped", "late_messages", "limited", "limited_soon", "limited_today", "no_choice", "pairing", "pairing_full", "stranger"]);

/** Who answers a turn: an agent, an operator, or the gateway's own command. */
export function handler({ agent, command }) {
  if (agent) return agent;
  if (command === "message") return "an operator";
  if (!command || OWN.has(command)) return "the gateway";
  return command.startsWith("/") ? command : `/${command}`;
}

/** Why there was no answer, as a sentence without its full stop. */
export const CAUSES = {
  silent: "The agent said nothing",
  error: "The agent failed",
  unreachable: "The agent could not be reached",
  timeout: "The agent took too long",
  refused: "The platform refused the answer",
  unreadable: "The message could not be read",
  unheard: "The voice note could not be written down",
  budget: "The agent has used its budget of the day",
};

/** What a rung of the ladder did. */
export function rung(text) {
  const [kind, name] = text.split(":");
  if (kind === "handoff") return `the agent ${name} got it instead`;
  if (kind === "clarify") return `the ladder asked “${name}”`;
  if (kind === "say") return `the ladder said “${name}”`;
  if (kind === "react") return `the ladder reacted with ${name}`;
  return text;
}

/** What the gateway says of a signal that is on its way. */
const SENT = "it is being sent";

/** The state of a turn: `[word, tone]`. Tones: `good`, `wait`, `warn`, `bad`, `quiet`. */
export function turnState(turn) {
  if (turn.unreadable) return ["Unreadable", "bad"];
  if (turn.status === "undeliverable" || turn.state === "undeliverable") return ["Undeliverable", "bad"];
  if (turn.status === "cancelled") return ["Given up", "quiet"];
  if (turn.state === "merged") return ["Merged", "quiet"];
  if (turn.state === "settled" && turn.fallback) return ["Answered by the ladder", "warn"];
  if (turn.state === "settled" && turn.status === "answered") return [turn.signal === "reaction" ? "Answered with a reaction" : "Answered", "good"];
  if (!turn.owed || turn.status === "silent") return ["Nothing owed", "quiet"];
  if (turn.held) return ["Held", "warn"];
  if (turn.state === "deferred") return ["Deferred", "wait"];
  if (turn.state === "claimed") return turn.why && turn.why !== SENT ? ["Waits to be sent", "warn"] : ["Being sent", "wait"];
  return ["Open", "wait"];
}

const DELIVERY_STATES = {
  pending: ["Waiting", "wait"],
  parked: ["Parked", "warn"],
  held: ["Held", "warn"],
  sending: ["Being sent", "wait"],
  delivered: ["Delivered", "good"],
  withdrawn: ["Withdrawn", "quiet"],
  refused: ["Refused", "bad"],
  dead: ["Dead letter", "bad"],
};

/** The state of a delivery: `[word, tone]`. */
export const deliveryState = ({ state }) => DELIVERY_STATES[state] ?? [state, "quiet"];

/** The names of the states of deliveries, for a filter. */
export const deliveryStates = Object.entries(DELIVERY_STATES).map(([state, [word]]) => [state, word]);

/** The state of a channel: `[word, tone]`. */
export function channelState(channel) {
  if (channel.paused) return ["Paused", "warn"];
  if (channel.elsewhere) return ["At another node", "quiet"];
  if (!channel.live) return ["Down", "bad"];
  if (!channel.sends) return ["Cannot send", "bad"];
  if (channel.limited_until && Date.parse(channel.limited_until) > Date.now()) return ["Limited", "warn"];
  return ["Up", "good"];
}

/** The state of an agent: `[word, tone]`. */
export const agentState = ({ up, failing_since }) => (!up ? ["Fails", "bad"] : failing_since ? ["Its last run failed", "warn"] : ["Up", "good"]);

/** The state of a schedule: `[word, tone]`. */
export function scheduleState({ state, failures }) {
  if (state === "paused") return ["Paused", "warn"];
  if (state === "done") return ["Done", "quiet"];
  return failures ? [`${plural(failures, "run")} failed`, "warn"] : ["Active", "good"];
}

const UNITS = { d: "day", h: "hour", m: "minute", s: "second" };
const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const SHORT_DAYS = DAYS.map((name) => name.slice(0, 3).toUpperCase());

/** When a schedule begins something, as words: "every 6 hours", "at 08:00 on Monday to Friday". Null for an unusual pattern. */
export function scheduleTimes({ at, every, cron }) {
  if (at) return "once";
  if (every) return `every ${lengthWords(every)}`;
  return cronWords(cron);
}

/** A length of time such as `1h 30m`, in words: without the "1" of a single unit. */
function lengthWords(text) {
  const parts = [...text.matchAll(/(\d+)\s*([dhms])/g)].map(([, count, unit]) => [Number(count), unit]);
  const whole = parts.length === 1 && parts[0][1] === "h" && parts[0][0] % 24 === 0 ? [[parts[0][0] / 24, "d"]] : parts;
  if (!whole.length) return text;
  const words = whole.map(([count, unit]) => plural(count, UNITS[unit])).join(" and ");
  return whole.length === 1 ? words.replace(/^1 /, "") : words;
}

/** The usual cron patterns in words; null for the others. */
function cronWords(pattern) {
  const known = { "@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0", "@monthly": "0 0 1 * *" };
  const fields = (known[pattern.toLowerCase()] ?? pattern).trim().split(/\s+/);
  if (fields.length !== 5) return null;
  const [minutes, hours, day, month, weekday] = fields;
  const days = dayWords(day, month, weekday);
  if (!days) return null;
  const step = /^\*\/(\d+)$/.exec(minutes);
  if (hours === "*" && days === "every day") {
    if (minutes === "*") return "every minute";
    // Others begin anew with each hour.
    if (step && 60 % step[1] === 0) return `every ${plural(Number(step[1]), "minute").replace(/^1 /, "")}`;
    return /^\d+$/.test(minutes) ? `every hour, at minute ${minutes}` : null;
  }
  if (!/^\d+$/.test(minutes) || !/^\d+(,\d+)*$/.test(hours)) return null;
  const times = hours.split(",").map((hour) => `${hour.padStart(2, "0")}:${minutes.padStart(2, "0")}`);
  return `at ${times.join(" and ")} ${days}`;
}

function dayWords(day, month, weekday) {
  if (month !== "*") return null;
  if (day === "*" && weekday === "*") return "every day";
  if (weekday === "*") return /^L$/i.test(day) ? "on the last day of the month" : /^\d+$/.test(day) ? `on day ${day} of the month` : null;
  if (day !== "*") return null;
  const name = (text) => DAYS[/^[0-7]$/.test(text) ? text % 7 : SHORT_DAYS.indexOf(text.toUpperCase())];
  const parts = weekday.split(",").map((part) => part.split("-").map(name));
  if (parts.some((part) => part.length > 2 || part.includes(undefined))) return null;
  return `on ${parts.map((part) => part.join(" to ")).join(" and ")}`;
}

/** Why a delivery exists. */
export function via(delivery) {
  const known = { answer: "the answer", agent_send: "a message of the agent", late_answer: "a late answer", deferral: "a deferral of the gateway", given_up: "a word that the turn is given up", draft: "a draft" };
  const isAgentsDeferral = delivery.via === "answer" && delivery.signal === "deferral";
  const what = isAgentsDeferral ? "a deferral of the agent" : known[delivery.via] ?? (delivery.via?.includes(":") ? `the ladder (${delivery.via})` : delivery.via ?? "a message");
  return delivery.is_copy ? `${what}, as a copy` : what;
}

/** Where a delivery comes from. */
export const ORIGINS = { turn: "A turn", operator: "An operator" };

/** An entry of the log as a sentence. */
export function logSentence({ topic, data: known }) {
  const data = known ?? {};
  const fallback = data.fallback ? ` ${CAUSES[data.fallback.cause] ?? data.fallback.cause}: ${rung(data.fallback.rung)}.` : "";
  const sentences = {
    "turn.accepted": () => `A message opened a turn for ${handler(data)}${data.owed === false ? "; nothing is owed" : ""}.`,
    "turn.started": () => `Run ${data.run} of ${handler(data)} began.`,
    "turn.claimed": () => `The guard cleared a ${data.signal}.${fallback}`,
    "turn.merged": () => "Another turn answers for it as well.",
    "turn.deferred": () => `The platform acknowledged a deferral after ${span(data.waited_ms)}. The answer is due ${ago(data.due)}.`,
    "turn.settled": () => settled(data) + fallback,
    "turn.undeliverable": () => `The turn could not be answered.${data.cause ? ` ${CAUSES[data.cause] ?? data.cause}.` : ""}`,
    "turn.held": () => "An operator holds the turn.",
    "turn.resumed": () => "An operator resumed the turn.",
    "delivery.attempted": () => `Attempt ${data.attempt} began.`,
    "delivery.delivered": () => "The platform acknowledged the delivery.",
    "delivery.failed": () => `An attempt failed: ${data.error ?? data.result}.`,
    "delivery.parked": () => "The delivery gets nowhere. Later messages do not wait for it.",
    "delivery.dead": () => "The delivery is a dead letter now.",
    "delivery.retried": () => "An operator has the delivery sent again.",
    "delivery.discarded": () => "An operator gave the delivery up.",
    "channel.up": () => "The channel receives and sends again.",
    "channel.down": () => `The channel is down: ${data.problem}.`,
    "agent.up": () => `The agent ${data.agent} answers again.`,
    "agent.down": () => `The agent ${data.agent} fails: ${data.error}.`,
    "schedule.ran": () => {
      if (data.problem) return `The schedule ${data.schedule} could begin nothing: ${data.problem}.`;
      const missed = data.not_reached?.length ? " Somebody was not reached: the audit and the schedule say who, and why." : "";
      return `The time of the schedule ${data.schedule} has come.${missed}`;
    },
    "schedule.missed": () => `The schedule ${data.schedule} was not acted on ${data.times} times: the gateway was down.`,
    "schedule.paused": () => `The schedule ${data.schedule} failed too often and is paused: ${data.why}.`,
    "digest.pressed": () => `Somebody pressed “${data.button}” below a digest.`,
    "approval.asked": () => "An agent asks for an approval.",
    "approval.decided": () => DECISIONS[data.decision] ?? `An approval ended: ${data.decision}.`,
    "alert.raised": () => `People were alerted: ${data.text}`,
    "alert.cleared": () => `People were told that this is over: ${[data.kind, data.about].filter(Boolean).join(" ")}.`,
    "alert.digest": () => "The digest was sent.",
    "person.asked": () => `${data.identity} asks to be let in.`,
    "agents.interrupted": () =>
      `${data.identity} and the agent answered each other without end in ${data.conversation}. It is not heard until ${minute(data.until)}.`,
    "question.picked": () => "A choice of the question was picked.",
    "question.expired": () => "Nobody picked a choice of the question in time.",
    "store.down": () => `The database could not be written from now on: ${data.problem}.`,
    "store.up": () => "The database can be written again.",
  };
  if (topic.startsWith("operator.") && data.by) return operation(data);
  return sentences[topic]?.() ?? topic;
}

const DECISIONS = {
  approved: "What an agent wants to do was approved.",
  declined: "What an agent wants to do was declined.",
  expired: "Nobody decided in time what an agent wants to do. That counts as a no.",
  dropped: "An approval is not waited for any more: its turn ended.",
};

function settled({ signal, waited_ms: waited }) {
  if (signal === "silence") return "Nothing is owed, and nothing was sent.";
  if (signal === "cancelled") return "The turn was given up.";
  if (signal === "merged") return "The turn was answered together with another one.";
  if (waited === undefined) return "The message was sent.";
  return `The person saw a ${signal} after ${span(waited)}.`;
}

const OPERATIONS = {
  retry: "sent a dead letter again",
  redirect: "sent a dead letter to another conversation",
  discard: "gave a dead letter up",
  cancel: "gave a turn up",
  hurry: "had a promised answer asked for now",
  hold: "holds a turn",
  pause: "paused a channel",
  resume: "resumed a turn",
  resume_channel: "resumed a channel",
  message: "sent a message",
  create_token: "made a token",
  revoke_token: "revoked a token",
  show_token: "looked at the token of a hook",
  end_session: "ended a session",
  approve_action: "approved what an agent wants to do",
  decline_action: "declined what an agent wants to do",
  schedule: "made a schedule",
  unschedule: "removed a schedule",
  pause_schedule: "paused a schedule",
  resume_schedule: "resumed a schedule",
  run_schedule: "ran a schedule",
  expire_action: "let the time for an approval pass",
  drop_action: "dropped an approval",
  begin_forget: "began to have a person forgotten",
  forget: "had a person forgotten",
  approve: "let somebody in",
  decline: "declined somebody's request",
  revoke: "revoked somebody's access",
  invite: "invited somebody to a chat page",
  sign_out: "signed somebody out of a chat page",
  link: "is the same person on another channel",
  unlink: "is not the same person on another channel any more",
  reload: "had the configuration read again",
  drain_node: "had a node give its channels back",
  resume_node: "had a node take channels again",
};

/** What an operator did, as a sentence. */
export function operation({ by, action, target, reason }) {
  // The target of a turn is an id, that of a channel is its name.
  const kind = action === "resume" && target.includes(".") ? "resume_channel" : action;
  return `${by} ${OPERATIONS[kind] ?? kind.replaceAll("_", " ")}${reason ? `: ${reason.replace(/\.$/, "")}` : ""}.`;
}
