// Dead letters: look, send again, send elsewhere, give up; one by one, or many.

import { post } from "./api.js";
import { ask, operate, REASON } from "./dialog.js";
import { announce, button, facts, link, make, show, time } from "./dom.js";
import { address, person, plural } from "./format.js";
import { keepFresh } from "./live.js";
import { buttons, channelField, filters, heading, list } from "./parts.js";

export const tabs = (current) =>
  make(
    "nav",
    { className: "tabs", attributes: { "aria-label": "Deliveries" } },
    [["deliveries", "Deliveries"], ["dead-letters", "Dead letters"]].map(([name, words]) => {
      const anchor = link(`/admin/${name}`, words);
      if (name === current) anchor.setAttribute("aria-current", "page");
      return anchor;
    }),
  );

export function deadLetters(view) {
  const found = list(view, {
    title: "Dead letters",
    className: "bare",
    path: "dead-letters",
    params: () => Object.fromEntries(view.params),
    render: (items) => make("div", { className: "letters" }, items.map((letter) => card(view, letter, () => found.refresh()))),
    none: () => (view.params.size ? "There are no dead letters on this channel." : "There are no dead letters. Everything could be delivered."),
    what: "dead letter",
  });
  const many = view.mayChange && buttons(
    button("Retry many…", async () => (await selectAnd(view, false)) && found.refresh()),
    button("Discard many…", async () => (await selectAnd(view, true)) && found.refresh()),
  );
  show(view.main, heading("Dead letters", many), tabs("dead-letters"), filters(view, [channelField(view)], found.restart), found.element);
  keepFresh(found.refresh, { signal: view.signal, topics: ["turn.undeliverable", "turn.settled", "delivery.dead", "delivery.retried", "delivery.discarded", "operator."], pause: 1_000, every: 30_000 });
}

const KINDS = {
  answer: "The agent's answer",
  fallback: "What the ladder said",
  callback: "A copy for a hook's callback",
  nothing: "There is nothing to send: the agent gave no answer",
};

function card(view, letter, refresh) {
  const act = (label, perform, className) => button(label, async () => (await perform(letter.id, letter)) && refresh(), className);
  return make(
    "article",
    { className: "card", data: { key: letter.id } },
    make("h3", {}, link(`/admin/turns/${letter.turn_id}`, `${person(letter)}: ${letter.question || "(no text)"}`)),
    letter.text && make("blockquote", { className: "words" }, letter.text),
    facts([
      ["What", KINDS[letter.kind] ?? letter.kind],
      ["Why", letter.reason],
      ["Last error", letter.error !== letter.reason && letter.error],
      ["Attempts", letter.attempts > 0 && String(letter.attempts)],
      ["Where", link(`/admin/conversations/${letter.conversation_id}`, address(letter))],
      ["Given up", time(letter.ended_at)],
      ["Accepted", time(letter.accepted_at)],
    ]),
    view.mayChange && buttons(act("Retry", retry, "button primary"), !["nothing", "callback"].includes(letter.kind) && act("Redirect", redirect), act("Discard", discard)),
  );
}

export const retry = (id, { kind } = {}) =>
  operate({
    title: "Retry?",
    text: kind === "nothing" ? "The agent is run again." : "What is left of the message is sent again, as the same delivery. If there is nothing to send, the agent is run again.",
    action: "Retry",
    path: `dead-letters/${id}/retry`,
    done: "It is sent again now.",
  });

export const redirect = (id) =>
  operate({
    title: "Redirect",
    text: "The text is sent to another conversation, in which somebody has written before. When it is acknowledged there, the turn is settled.",
    action: "Send it there",
    path: `dead-letters/${id}/redirect`,
    done: "It is sent there now.",
    fields: [{ name: "to", label: "Conversation", placeholder: "CHANNEL/CHAT", hint: "For example telegram.main/42, or telegram.main/42/7 for a thread.", required: true, spellcheck: false }, REASON],
  });

export const discard = (id) =>
  operate({
    title: "Discard?",
    text: "The turn is settled without an answer: the person gets none.",
    action: "Give it up",
    isDanger: true,
    path: `dead-letters/${id}/discard`,
    done: "It is given up.",
    fields: [{ ...REASON, label: "Why? (needed, for the audit)", required: true }],
  });

/** Asks which ones, and then changes them. */
async function selectAnd(view, isDiscard) {
  const all = { ...channelField(view), hint: "All channels, if you name none." };
  const selection = await ask({
    title: isDiscard ? "Discard many" : "Retry many",
    text: "Which ones? You see their number before anything happens.",
    fields: [all, { name: "error", label: "Reason or error contains", placeholder: "blocked", hint: "All, if it is empty." }, isDiscard ? { ...REASON, label: "Why? (needed, for the audit)", required: true } : REASON],
    action: "Count them",
    perform: async (values) => ({ ...values, found: await post(`dead-letters/${isDiscard ? "discard" : "retry"}`, { ...values, dry_run: true }) }),
  });
  if (!selection) return null;
  const { found, ...which } = selection;
  return changeMany(which, found, isDiscard);
}

/** Sends all of `which` again; says first how many they are. */
export async function retryMany(which) {
  try {
    return await changeMany(which, await post("dead-letters/retry", { ...which, dry_run: true }), false);
  } catch (problem) {
    announce(problem.message);
    return null;
  }
}

async function changeMany(which, { ids, more }, isDiscard) {
  if (!ids.length) {
    announce("No dead letter matches: nothing was changed.");
    return null;
  }
  const verb = isDiscard ? "given up" : "sent again";
  const changed = await ask({
    title: isDiscard ? "Discard them?" : "Retry them?",
    text: `${plural(ids.length, "dead letter")} will be ${verb}.${more ? " There are more: repeat this afterwards." : ""}`,
    action: isDiscard ? `Give up ${ids.length}` : `Retry ${ids.length}`,
    isDanger: isDiscard,
    perform: () => post(`dead-letters/${isDiscard ? "discard" : "retry"}`, which),
  });
  if (!changed) return null;
  const failed = changed.failed.length ? ` ${plural(changed.failed.length, "one", "ones")} could not be changed: ${changed.failed[0].detail}.` : "";
  announce(`${plural(changed.ids.length, "dead letter is", "dead letters are")} ${verb}.${failed}`);
  return changed;
}
