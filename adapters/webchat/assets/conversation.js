// The state of the conversation. No DOM here.

const RANK = { accepted: 0, deferred: 1 };
const FINAL = 2;
/** The server renews a typing notice every 10 s. */
const TYPING_LASTS = 25_000;
const COMMANDS = new Set(["/stop", "/cancel", "/new", "/reset"]);

export class Conversation {
  #turns = new Map();
  #drafts = new Map();
  #steps = new Map();
  #typing = new Map();
  /** Whether the server has turns before the first one. */
  hasOlder = false;

  /** The turns, oldest first. Those of which only the acceptance is known come last, in the order in which they were sent. */
  get turns() {
    const place = (turn) => turn.seq ?? Infinity;
    return [...this.#turns.values()].sort((a, b) => (place(a) === place(b) ? 0 : place(a) - place(b)));
  }

  /** The turns of which there is something to see. One that the gateway begins by itself may come to nothing. */
  get seen() {
    const isSeen = (turn) => !isUnasked(turn) || turn.shown || this.draft(turn.turn_id) !== undefined || this.isTyping(turn.turn_id);
    return this.turns.filter(isSeen);
  }

  turn(id) {
    return this.#turns.get(id);
  }

  draft(id) {
    return this.#drafts.get(id);
  }

  /** What the agent did for a turn: as it was seen, or as the server has it. */
  steps(id) {
    return this.#steps.get(id) ?? this.#turns.get(id)?.steps;
  }

  isTyping(id) {
    return Date.now() - (this.#typing.get(id) ?? -Infinity) < TYPING_LASTS;
  }

  /** The place of the last turn that the server has placed; -1 if there is none. */
  get lastPlace() {
    return Math.max(-1, ...[...this.#turns.values()].map((turn) => turn.seq ?? -1));
  }

  /** The turns that run or wait for a run. */
  get unfinished() {
    return this.seen.filter((turn) => !isFinal(turn) && !isCommand(turn));
  }

  /** Stores a turn unless the known state is newer. Returns whether it was stored. */
  put(turn) {
    const known = this.#turns.get(turn.turn_id);
    if (known && !isNewer(turn, known)) return false;
    this.#turns.set(turn.turn_id, turn);
    // Read from the store, where all of them are.
    if (turn.steps) this.#steps.delete(turn.turn_id);
    if (isFinal(turn)) this.#forgetPassing(turn.turn_id);
    return true;
  }

  /** Notes that `words` was picked from the choices of a turn's signal, which was shown at `asked`. */
  putPick(id, words, asked) {
    const turn = this.#turns.get(id);
    if (turn && turn.picked === undefined && turn.shown?.at === asked) this.#turns.set(id, { ...turn, picked: words });
  }

  /** Merges the server's last turns. Returns the ids of those that changed. */
  sync(turns, more) {
    this.#drafts.clear();
    this.#typing.clear();
    const first = turns[0]?.turn_id;
    const meets = !more || (first && this.#turns.has(first));
    // The new turns do not connect to the known ones: drop these, they can be requested again.
    if (!meets) this.#turns.clear();
    if (this.#turns.size === 0 || !meets) this.hasOlder = more;
    return turns.filter((turn) => this.put(turn)).map((turn) => turn.turn_id);
  }

  putOlder(turns, more) {
    for (const turn of turns) this.put(turn);
    this.hasOlder = more;
  }

  /** Stores a draft and the steps so far, unless the turn has ended. Before there are words, there may be steps alone. */
  putDraft(id, html, steps) {
    const turn = this.#turns.get(id);
    if (turn && isFinal(turn)) return;
    if (html) this.#drafts.set(id, html);
    if (steps) this.#steps.set(id, steps);
  }

  putTyping(id, on) {
    if (on) this.#typing.set(id, Date.now());
    else this.#typing.delete(id);
  }

  /** The connection is lost: typing notices no longer hold. */
  silence() {
    this.#typing.clear();
  }

  #forgetPassing(id) {
    this.#drafts.delete(id);
    this.#typing.delete(id);
  }
}

/** The versions of each question that was asked more than once, by the ids of their turns: lists of ids from the first to the last. */
export function versionsOf(turns) {
  const lists = new Map();
  const known = new Set();
  for (const { turn_id, instead_of } of turns) {
    known.add(turn_id);
    if (!known.has(instead_of)) continue;
    const list = lists.get(instead_of) ?? [instead_of];
    list.push(turn_id);
    for (const id of list) lists.set(id, list);
  }
  return lists;
}

export function isFinal(turn) {
  return !(turn.status in RANK);
}

/** Whether a run of the turn waits until the person picks. */
export function isAsking(turn) {
  return !isFinal(turn) && turn.picked === undefined && Boolean(turn.shown?.choices?.length);
}

/** Whether the person has said nothing: the gateway began the turn by itself. */
export function isUnasked(turn) {
  return turn.text.trim() === "" && !turn.files?.length;
}

/** Whether a turn is a command of the gateway. Its answer is shown as a single line. */
export function isCommand(turn) {
  return COMMANDS.has(turn.text.trim());
}

/**
 * Who speaks in a signal: `agent`, also when it asks before it answers; `stand-in`, the gateway while or because the agent gives no
 * answer; or `gateway`, which answers a command.
 */
export function voiceOf(shown) {
  if (shown.agent || (shown.signal === "deferral" && shown.choices?.length)) return "agent";
  return shown.fallback || shown.signal === "deferral" ? "stand-in" : "gateway";
}

/** Whether a turn has ended without the agent's answer, so that the same words may be worth another try. */
export function isUnanswered(turn) {
  if (!isFinal(turn)) return false;
  return turn.status === "undeliverable" || (turn.status === "answered" && turn.shown?.fallback === true);
}

function isNewer(turn, known) {
  const rank = (turn) => RANK[turn.status] ?? FINAL;
  if (rank(turn) !== rank(known)) return rank(turn) > rank(known);
  const shownAt = (turn) => (turn.shown ? Date.parse(turn.shown.at) : 0);
  if (shownAt(turn) !== shownAt(known)) return known.isOurs || shownAt(turn) > shownAt(known);
  // The words of a voice note come when they are written down.
  const isHeard = known.text === "" && turn.text !== "";
  return known.isOurs || isHeard || (turn.picked !== undefined && known.picked === undefined);
}
