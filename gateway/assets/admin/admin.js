// The frame of the page: the session, the sections, the address, and the connection.

import { access } from "./access.js";
import { get, onSignedOut, session as readSession, signIn, signOut } from "./api.js";
import { approvals } from "./approvals.js";
import { channels } from "./channels.js";
import { conversation, conversations } from "./conversations.js";
import { deadLetters } from "./deadletters.js";
import { deliveries } from "./deliveries.js";
import { field } from "./dialog.js";
import { docs } from "./docs.js";
import { $, announce, icon, link, make, show } from "./dom.js";
import { feed, forget } from "./feed.js";
import { install } from "./install.js";
import { onConnection, start, stop } from "./live.js";
import { logs } from "./logs.js";
import { overview } from "./overview.js";
import { heading } from "./parts.js";
import { people } from "./people.js";
import { schedule, schedules } from "./schedules.js";
import { siri } from "./siri.js";
import { switchTheme } from "./theme-button.js";
import { turn } from "./turn.js";
import { turns } from "./turns.js";

/** A connection that is lost for less than this (ms) is not reported. */
const UNNOTICED = 1_500;
/** How long a page that begins without a connection waits for the next try (ms). */
const RETRY = 5_000;

/** The sections, by the first part of their address. `in`: the section that the menu shows it under. */
const SECTIONS = {
  "": { title: "Overview", icon: "overview", list: overview },
  turns: { title: "Turns", icon: "turns", list: turns, one: turn },
  deliveries: { title: "Deliveries", icon: "deliveries", list: deliveries },
  "dead-letters": { title: "Dead letters", in: "deliveries", list: deadLetters },
  conversations: { title: "Conversations", icon: "conversations", list: conversations, one: conversation },
  people: { title: "People", icon: "people", list: people },
  approvals: { title: "Approvals", icon: "approvals", list: approvals },
  schedules: { title: "Schedules", icon: "schedules", list: schedules, one: schedule },
  channels: { title: "Channels and agents", short: "Channels", icon: "channels", list: channels },
  siri: { title: "Set up Siri", in: "channels", one: siri },
  live: { title: "Live", icon: "live", list: feed },
  logs: { title: "Errors and logs", short: "Logs", icon: "logs", list: logs },
  access: { title: "Access", icon: "access", list: access, isForAdmin: true },
  docs: { title: "The HTTP API", in: "access", list: docs },
};

/** The sections that a phone shows without "More". */
const FIRST = ["", "turns", "deliveries", "conversations"];

let session = null;
let channelNames = [];
let leaving = null;

// --- The address ---

function route() {
  const [name = "", id] = location.pathname.replace(/^\/admin\/?/, "").split("/");
  return { name, id: id || null, section: SECTIONS[name] };
}

const isAdmin = () => session.role === "admin" && !session.channels;

/** Shows the section that the address names. */
function open({ isFirst = false } = {}) {
  leaving?.abort();
  leaving = new AbortController();
  const { name, id, section } = route();
  const view = {
    id,
    session,
    signal: leaving.signal,
    params: new URLSearchParams(location.search),
    mayChange: session.role !== "viewer",
    isAdmin: isAdmin(),
    channels: () => channelNames,
    go,
    main: $("main"),
    setTitle: (title) => (document.title = `${title} · Rejoinder`),
    setParams(params) {
      view.params = params;
      const query = params.toString();
      history.replaceState(null, "", location.pathname + (query ? `?${query}` : ""));
    },
  };
  const render = (section && (!section.isForAdmin || view.isAdmin) && (id ? section.one : section.list)) || unknown;
  view.setTitle(render === unknown ? "Not found" : section.title);
  showNav(section?.in ?? name);
  // Nothing of the section before is reused.
  $("main").replaceChildren();
  render(view);
  if (isFirst) return;
  scrollTo(0, 0);
  $("main").querySelector("h1")?.focus({ preventScroll: true });
}

function unknown(view) {
  show(view.main, heading("There is no such page"), make("p", {}, link("/admin", "Go to the overview")));
}

/** Goes to an address of this page. */
function go(href) {
  history.pushState(null, "", href);
  open();
}

addEventListener("popstate", () => {
  // A link with a code, opened where the page is open already.
  if (location.hash.startsWith("#code=")) begin();
  else if (session) open();
});

document.addEventListener("click", (event) => {
  const anchor = event.target.closest?.("a[href]");
  const isOurs = anchor && anchor.origin === location.origin && /^\/admin(\/|$)/.test(anchor.pathname) && !anchor.target;
  if (!isOurs || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  if (/^\/admin\/(assets|api)(\/|$)/.test(anchor.pathname)) return;
  event.preventDefault();
  // Such a link leads to another place of what is shown.
  if (anchor.getAttribute("href").startsWith("#")) return document.querySelector(anchor.hash)?.focus();
  if (session) go(anchor.href);
});

// --- The menu ---

function showNav(current) {
  const item = ([name, { title, short, icon: picture, in: other, isForAdmin }]) => {
    if (other || (isForAdmin && !isAdmin())) return null;
    const anchor = link(name ? `/admin/${name}` : "/admin", icon(picture), make("span", {}, short ?? title));
    if (name === current) anchor.setAttribute("aria-current", "page");
    return make("li", { className: FIRST.includes(name) ? "" : "extra" }, anchor);
  };
  const isExtra = current !== undefined && !FIRST.includes(current);
  const more = make("button", { type: "button", className: isExtra ? "current" : "", attributes: { "aria-expanded": "false" } }, icon("more"), make("span", {}, "More"));
  more.onclick = () => {
    const isOpen = $("nav").classList.toggle("open");
    more.setAttribute("aria-expanded", String(isOpen));
  };
  $("nav").classList.remove("open");
  $("nav").replaceChildren(make("ul", {}, Object.entries(SECTIONS).map(item), make("li", { className: "more" }, more)));
}

addEventListener("keydown", (event) => {
  if (event.key === "Escape" && $("nav").classList.contains("open")) $("nav").querySelector(".more button").click();
});

// --- The session ---

async function begin() {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code) {
    history.replaceState(null, "", location.pathname + location.search);
  }
  let words;
  try {
    if (code) return welcome(await signIn({ code }));
  } catch (problem) {
    words = problem.isLost ? problem.message : "This link was used already, or is too old. Make a new one.";
  }
  try {
    const known = await readSession();
    known ? welcome(known) : showSignIn(words);
  } catch (problem) {
    showSignIn(problem.message);
    // The browser shows this page also while the gateway is away.
    if (problem.isLost) setTimeout(() => session || $("main").querySelector("input")?.value || begin(), RETRY);
  }
}

function welcome(known) {
  session = known;
  show($("who"), `${session.name} (${session.role})`);
  for (const id of ["who", "leave", "nav"]) $(id).hidden = false;
  start({ as: [session.name, session.role, ...(session.channels ?? [])].join(" "), onSignedOut: signedOut });
  get("channels")
    .then(({ items }) => (channelNames = items.map(({ channel }) => channel)))
    .catch(() => {})
    .finally(() => session && $("main").querySelector("select[name=channel]") && fillChannels());
  open({ isFirst: true });
}

/** Filters that were shown before the channels were known. */
function fillChannels() {
  for (const select of $("main").querySelectorAll("select[name=channel]")) {
    const known = [...select.options].map(({ value }) => value);
    select.append(...channelNames.filter((name) => !known.includes(name)).map((name) => new Option(name)));
  }
}

/** The address stays: after signing in, the operator is where they were. */
function signedOut() {
  if (!session) return;
  showSignIn("You are signed out: the session has ended.");
}

function showSignIn(words) {
  session = null;
  channelNames = [];
  stop();
  forget();
  leaving?.abort();
  document.querySelectorAll("dialog").forEach((dialog) => dialog.close());
  for (const id of ["who", "leave", "nav", "connection", "banner"]) $(id).hidden = true;
  document.title = "Sign in · Rejoinder";
  const note = make("p", { className: "note", hidden: !words, attributes: { role: "alert" } }, words ?? "");
  const form = make(
    "form",
    {},
    field({ name: "token", label: "Or paste a token", kind: "password", required: true, spellcheck: false }),
    make("div", { className: "buttons" }, make("button", { type: "submit", className: "button primary" }, "Sign in")),
  );
  form.onsubmit = async (event) => {
    event.preventDefault();
    const input = form.elements.token;
    const token = input.value.trim();
    input.value = "";
    try {
      welcome(await signIn({ token }));
      announce("Signed in.");
    } catch (problem) {
      show(note, problem.isSignedOut ? "This token is not right." : problem.message);
      note.hidden = false;
      input.focus();
    }
  };
  $("main").replaceChildren(
    make(
      "section",
      { className: "sign-in" },
      make("img", { src: "/admin/assets/icon.svg", alt: "", width: 48, height: 48 }),
      make("h1", { tabIndex: -1 }, "Sign in"),
      make("p", {}, "Run ", make("code", {}, "rejoinder dashboard"), " on the gateway's machine: it prints a link that opens this page."),
      note,
      form,
    ),
  );
}

$("leave").addEventListener("click", async () => {
  try {
    await signOut();
    showSignIn("You are signed out.");
  } catch (problem) {
    if (problem.isSignedOut) showSignIn("You are signed out.");
    else announce(problem.message);
  }
});

onSignedOut(signedOut);

// --- The connection ---

let lost = 0;

onConnection((isOnline) => {
  clearTimeout(lost);
  lost = 0;
  if (!session) return;
  if (isOnline) {
    if (!$("banner").hidden) announce("The connection is back.");
    $("banner").hidden = true;
    showConnection("online", "Connected");
    return;
  }
  lost = setTimeout(() => {
    if (!session) return;
    show($("banner"), "The gateway cannot be reached. What you see may be old. This page tries again by itself.");
    $("banner").hidden = false;
    showConnection("offline", "Not connected");
  }, $("banner").hidden ? UNNOTICED : 0);
});

function showConnection(state, words) {
  document.documentElement.dataset.connection = state;
  show($("connection"), words);
  $("connection").hidden = false;
}

switchTheme($("theme"), (isDark) => `Switch to ${isDark ? "light" : "dark"} theme`, () => dispatchEvent(new Event("theme")));
install("/admin");
begin();
