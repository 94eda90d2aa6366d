// Access: the tokens of operators, and what operators did.

import { change, get, post } from "./api.js";
import { ask, REASON } from "./dialog.js";
import { announce, badge, button, link, make, show, table, time } from "./dom.js";
import { operation } from "./format.js";
import { keepFresh } from "./live.js";
import { buttons, empty, heading, list, part } from "./parts.js";

export function access(view) {
  const tokens = part(view, {
    title: "Tokens",
    load: () => get("tokens", {}, view.signal),
    render: ({ items }) => [
      make("p", { className: "quiet" }, "The token of the configuration may do everything. It is not in this list."),
      items.length ? tokenTable(items, () => tokens.refresh()) : empty("There are no other tokens."),
      buttons(button("Make a token", async () => (await create(view)) && tokens.refresh(), "button primary")),
    ],
  });
  const sessions = part(view, {
    title: "Sessions",
    load: () => get("sessions", {}, view.signal),
    render: ({ items }) => (items.length ? [sessionTable(items, () => sessions.refresh())] : [empty("Nobody is signed in to this page.")]),
  });
  const audit = list(view, {
    title: "Audit",
    path: "audit",
    columns: [
      { name: "What", className: "main-cell", cell: (entry) => make("span", { className: "words" }, operation(entry)) },
      { name: "About", cell: ({ turn_id: turn, channel, target }) => (turn ? [link(`/admin/turns/${turn}`, "Turn"), channel ? ` on ${channel}` : ""] : (channel && !target.startsWith(`${channel}/`) ? channel : make("code", {}, target))) },
      { name: "When", cell: ({ at }) => time(at) },
    ],
    key: ({ id }) => String(id),
    none: () => "No operator has changed anything yet.",
  });
  const api = make("section", { className: "part", attributes: { "aria-labelledby": "api" } }, make("h2", { id: "api" }, "The API"), make("p", { className: "links" }, "Programs can do what this page does. ", link("/admin/docs", "Read how")));
  const reload = part(view, {
    title: "Configuration",
    load: async () => null,
    render: () => [
      make("p", { className: "quiet" }, "People, access lists, alerts, schedules, approvals, prompts and prices change without a restart."),
      buttons(button("Read it again", () => readAgain())),
    ],
  });
  show(view.main, heading("Access"), tokens.element, sessions.element, reload.element, audit.element, api);
  keepFresh(() => Promise.all([tokens.refresh(), sessions.refresh(), audit.refresh()]), { signal: view.signal, topics: ["operator."] });
}

const ROLES = { viewer: "Viewer: reads", operator: "Operator: also mends", admin: "Admin: also manages tokens" };

const tokenTable = (items, refresh) =>
  table(
    "Tokens",
    [
      { name: "Name", cell: ({ name }) => make("strong", {}, name) },
      { name: "Role", cell: ({ role }) => ROLES[role] ?? role },
      { name: "Channels", cell: ({ channels }) => channels?.join(", ") ?? "All" },
      { name: "Expires", cell: ({ expires_at: at }) => (at ? (Date.parse(at) > Date.now() ? time(at) : badge(["Expired", "quiet"])) : "Never") },
      { name: "Made", cell: ({ created_at: at, created_by: by }) => [time(at), ` by ${by}`] },
      { name: "Change", cell: (token) => button("Revoke", async () => (await revoke(token)) && refresh()) },
    ],
    items,
    ({ id }) => id,
  );

const sessionTable = (items, refresh) =>
  table(
    "Sessions",
    [
      { name: "Token", cell: ({ name, current }) => [make("strong", {}, name), current ? " (this one)" : ""] },
      { name: "Role", cell: ({ role }) => ROLES[role] ?? role },
      { name: "Browser", cell: ({ browser }) => make("span", { className: "words" }, browser || "Unknown") },
      { name: "Opened", cell: ({ opened_at: at }) => time(at) },
      { name: "Ends", cell: ({ expires_at: at }) => time(at) },
      { name: "Change", cell: (session) => (session.current ? "" : button("End", async () => (await end(session)) && refresh())) },
    ],
    items,
    ({ id }) => id,
  );

async function end({ id, name }) {
  const done = await ask({
    title: `End a session of ${name}?`,
    text: "Whoever uses it is signed out at once.",
    action: "End it",
    isDanger: true,
    fields: [REASON],
    perform: (values) => change("DELETE", `sessions/${id}`, values),
  });
  if (done) announce("The session is over.");
  return done;
}

async function readAgain() {
  const done = await ask({
    title: "Read the configuration again?",
    text: "If it is wrong, nothing changes.",
    action: "Read it",
    fields: [REASON],
    perform: (values) => post("configuration/reload", values),
  });
  if (!done) return;
  const said = [
    ["Waits for a restart", done.at_restart],
    ["Let in", done.let_in],
    ["No longer configured, and known until revoked", done.still_known],
    ["Schedules replaced by those of the configuration", done.replaced_schedules],
  ];
  const { changed } = done;
  const texts = [changed.length ? `Changed: ${changed.join(", ")}.` : "Nothing has changed that holds at once.", ...said.filter(([, list]) => list.length).map(([words, list]) => `${words}: ${list.join(", ")}.`)];
  await ask({ title: "The configuration was read", text: texts.join(" ") });
}

async function create(view) {
  const made = await ask({
    title: "Make a token",
    fields: [
      { name: "name", label: "Name", hint: "The audit shows it.", required: true, maxLength: 100 },
      { name: "role", label: "Role", kind: "select", options: Object.entries(ROLES) },
      ...(view.channels().length ? [{ name: "channels", label: "Only these channels", kind: "choices", options: view.channels().map((name) => [name, name]), hint: "All, if you choose none. An admin cannot be limited." }] : []),
      { name: "expires_at", label: "Expires", kind: "datetime-local", hint: "Never, if it is empty." },
      REASON,
    ],
    action: "Make it",
    perform: ({ expires_at: at, ...values }) => post("tokens", { ...values, ...(at && { expires_at: new Date(at).toISOString() }) }),
  });
  if (!made) return null;
  const secret = make("input", { id: "secret", type: "text", readOnly: true, value: made.token, onfocus: (event) => event.target.select() });
  const copy = button("Copy", async () => {
    try {
      await navigator.clipboard.writeText(made.token);
      announce("The token is copied.");
    } catch {
      secret.focus();
    }
  });
  await ask({
    title: `The token of ${made.name}`,
    text: "Copy it now: it is shown only once.",
    content: make("div", { className: "secret" }, make("label", { htmlFor: "secret" }, "Token"), make("div", {}, secret, copy)),
  });
  return made;
}

async function revoke({ id, name }) {
  const done = await ask({
    title: `Revoke the token ${name}?`,
    text: "It opens nothing any more, from now on.",
    action: "Revoke",
    isDanger: true,
    fields: [REASON],
    perform: (values) => change("DELETE", `tokens/${id}`, values),
  });
  if (done) announce(`The token ${name} is revoked.`);
  return done;
}
