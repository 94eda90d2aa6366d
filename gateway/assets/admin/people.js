// People: who asks to be let in, and who is known.

import { get } from "./api.js";
import { operate, REASON } from "./dialog.js";
import { button, facts, link, make, show, table, time } from "./dom.js";
import { keepFresh } from "./live.js";
import { buttons, empty, heading, part } from "./parts.js";

export function people(view) {
  const requests = part(view, {
    title: "Requests",
    load: () => get("pairings", {}, view.signal),
    render: ({ items }) =>
      items.length
        ? [
            make("p", { className: "quiet" }, "Anybody can choose a name. Ask the person for the code that they were given, and compare it."),
            make("div", { className: "cards" }, items.map((request) => card(view, request, refresh))),
          ]
        : empty("Nobody asks to be let in. Somebody who is not known and writes in a direct chat gets a code, and is shown here."),
  });
  const known = part(view, {
    title: "Who is known",
    load: () => get("people", {}, view.signal),
    render: ({ items }) => (items.length ? peopleTable(view, items, refresh) : empty("Nobody is known yet. You let people in who ask, or name them in the configuration.")),
  });
  const refresh = () => Promise.all([requests.refresh(), known.refresh()]);
  show(view.main, heading("People"), requests.element, known.element);
  // No entry says that a code has expired, and only admins who are not limited to channels get those about what operators and
  // owners decide.
  keepFresh(refresh, { signal: view.signal, topics: ["person.", "operator."], every: 15_000 });
}

const ROLES = { guest: "Guest: talks to the agent, with limits of guests", member: "Member: talks to the agent", owner: "Owner: also lets others in" };

/** Which request a dialog is about: names can be the same. */
const whichOf = ({ code, channel, id }) => `Code ${code}, ${channel}/${id}.`;

/** What somebody who asks is called. */
const nameOf = ({ name, username, id }) => name || (username ? `@${username}` : id);

function card(view, request, refresh) {
  const { channel, id, username, code, conversation } = request;
  const act = (label, perform, className) => button(label, async () => (await perform(view, request)) && refresh(), className);
  return make(
    "article",
    { className: "card", data: { key: code } },
    make("h3", {}, nameOf(request)),
    facts([
      ["Code", make("code", {}, code)],
      ["Channel", channel],
      ["User name", username && `@${username}`],
      ["Id", make("code", {}, id)],
      ["Conversation", conversation !== `${channel}/${id}` && conversation],
      ["Asked", time(request.asked_at)],
      ["Expires", time(request.expires_at)],
    ]),
    view.mayChange && buttons(act("Approve", approve, "button primary"), act("Decline", decline)),
  );
}

const pathOf = ({ code }, verb) => `pairings/${encodeURIComponent(code)}/${verb}`;

const approve = (view, request) =>
  operate({
    title: `Let ${nameOf(request)} in?`,
    text: `${whichOf(request)} They are told, and may write from now on. What they wrote before is not answered.`,
    action: "Approve",
    path: pathOf(request, "approve"),
    done: `${nameOf(request)} is let in.`,
    fields: [
      { name: "name", label: "Name", value: request.name || request.username || "", hint: "What operators call them.", maxLength: 100 },
      { name: "role", label: "Role", kind: "select", value: "member", options: Object.entries(ROLES).filter(([role]) => view.isAdmin || role !== "owner") },
      REASON,
    ].filter(Boolean),
  });

const decline = (view, request) =>
  operate({
    title: `Decline the request of ${nameOf(request)}?`,
    text: `${whichOf(request)} They are told nothing, and cannot ask again for 7 days.`,
    action: "Decline",
    isDanger: true,
    path: pathOf(request, "decline"),
    done: `The request of ${nameOf(request)} is declined.`,
  });

/** Who is known; each of their identities is a row. */
const peopleTable = (view, items, refresh) =>
  table(
    "Who is known",
    [
      { name: "Person", className: "main-cell", cell: (row) => [make("strong", {}, row.person.name), make("span", { className: "words" }, ROLES[row.person.role] ?? row.person.role), of(row)] },
      { name: "Known as", cell: (row) => [make("code", {}, identityOf(row)), row.is_home ? " (home)" : ""] },
      { name: "Let in", cell: ({ added_at: at, added_by: by }) => [time(at), isConfigured(by) ? " by the configuration" : ` by ${by}`] },
      ...(view.mayChange ? [{ name: "Change", cell: (row) => button("Revoke", async () => (await revoke(row)) && refresh()) }] : []),
    ],
    items.flatMap((person) => person.identities.map((identity) => ({ ...identity, person }))),
    identityOf,
  );

const identityOf = ({ channel, id }) => `${channel}/${id}`;

/** What somebody wrote and got. */
function of(row) {
  const query = encodeURIComponent(identityOf(row));
  return make("span", { className: "links" }, link(`/admin/turns?person=${query}`, "Turns"), " ", link(`/admin/conversations?text=${query}`, "Conversations"), " ", link(`/admin/deliveries?person=${query}`, "Deliveries"));
}

const isConfigured = (by) => by === "configuration";

function revoke(row) {
  const identity = identityOf(row);
  const again = isConfigured(row.added_by) ? " The configuration names them: take them out there too, or they are known again after a restart." : "";
  return operate({
    title: `Revoke ${identity}?`,
    text: `${row.person.name} is not known there any more, and may write only if the channel's own list or policy allows it.${again}`,
    action: "Revoke",
    isDanger: true,
    path: "people/revoke",
    body: { person: identity },
    done: `${identity} is not known any more.`,
  });
}
