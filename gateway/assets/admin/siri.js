// How a phone is set up to ask through a hook: its address, its token, the steps in the app Shortcuts, and what arrived.

import { get, post } from "./api.js";
import { field } from "./dialog.js";
import { announce, badge, button, facts, link, make, show, time } from "./dom.js";
import { revealed } from "./format.js";
import { keepFresh } from "./live.js";
import { buttons, empty, heading, part } from "./parts.js";
import { LANGUAGES, preferred, speaker } from "./siri-words.js";

/** How often the shortcut asks for the answer, and how long it waits for it each time (s). */
const TIMES = 6;
const WAIT = 25;

/** How many calls are shown. */
const SHOWN = 5;

const isFinal = (turn) => ["answered", "silent", "cancelled", "undeliverable"].includes(turn.status);

export function siri(view) {
  const name = view.id;
  const path = `hooks/${encodeURIComponent(name)}`;
  const turns = new Map();
  const asked = view.params.get("language");
  let language = asked in LANGUAGES ? asked : preferred();
  let secret = null;
  let newest = null;

  const all = part(view, {
    title: `webhook.${name}`,
    async load() {
      const hook = await get(path, {}, view.signal);
      const opened = hook.calls.slice(0, SHOWN).map(({ turn_id: turn }) => turn).filter((turn) => turn && !isFinal(turns.get(turn) ?? {}));
      await Promise.all(opened.map(async (turn) => turns.set(turn, await get(`turns/${turn}`, {}, view.signal))));
      return hook;
    },
    render(hook) {
      const say = speaker(language);
      if (hook.takes === "events") return empty(say("This hook takes events, which are not answered: a shortcut would have nothing to say."));
      if (!hook.has_token) return empty(say("This hook has no token, and shortcuts cannot sign: set its token in the configuration."));
      const at = hook.calls[0]?.at ?? "";
      if (newest !== null && at !== newest) announce(say("Something has arrived."));
      newest = at;
      const url = new URL(hook.url, location.origin).href;
      return [needs({ say, url, secret, reveal: view.isAdmin && reveal }), steps({ say, language, url, secret, wait: hook.wait_ms / 1_000 }), calls({ say, hook, turns })];
    },
  });

  async function reveal() {
    try {
      secret = await post(`${path}/token`);
      announce(speaker(language)("Shown. The audit says that you have seen it."));
      await all.refresh();
    } catch (problem) {
      announce(problem.message);
    }
  }

  const head = make("div");
  const frame = make("div", { className: "siri" }, head, all.element);
  function draw() {
    const say = speaker(language);
    frame.lang = language;
    view.setTitle(say("Set up Siri"));
    const picker = field({ name: "language", label: say("Language"), kind: "select", options: Object.entries(LANGUAGES), value: language });
    show(head, heading(say("Set up Siri")), picker);
    head.querySelector("select").onchange = (event) => {
      language = event.target.value;
      view.setParams(new URLSearchParams({ language }));
      draw();
      all.refresh();
    };
  }
  draw();
  show(view.main, make("p", { className: "back" }, link("/admin/channels", "All channels and agents")), frame);
  keepFresh(all.refresh, { signal: view.signal, topics: ["turn.", "delivery."], every: 2_000 });
}

const card = (title, ...content) => make("article", { className: "card" }, make("h3", {}, title), ...content);

/** A value, with a button that copies it; `what` names it. */
function pasted(say, what, value) {
  const code = make("code", {}, value);
  const copy = button(say("Copy"), async (event) => {
    const shown = event.target.previousSibling;
    try {
      await navigator.clipboard.writeText(shown.textContent);
      announce(say("Copied."));
    } catch {
      // Without TLS there is no clipboard: what is marked can be copied by hand.
      getSelection().selectAllChildren(shown);
    }
  }, "quiet-button");
  copy.setAttribute("aria-label", say("Copy {what}", { what }));
  return [what, make("span", { className: "pasted" }, code, copy)];
}

const HIDDEN = "Bearer …";

/** The header with the token; the token itself once it was asked for. */
function authorization(say, secret) {
  const what = say("Header {name}", { name: "Authorization" });
  return secret ? pasted(say, what, secret.authorization) : [what, make("code", {}, HIDDEN)];
}

function needs({ say, url, secret, reveal }) {
  const { protocol, hostname } = new URL(url);
  const isLocal = /^(localhost|127\.[\d.]+|\[::1\])$/.test(hostname);
  const warning = isLocal
    ? "No phone reaches this address: it names this machine. Put a TLS proxy in front, and set server.public_url."
    : protocol === "http:" && "The address begins with http://: the token can be read on the way.";
  return card(
    say("Address and token"),
    warning && make("p", { className: "problem" }, say(warning)),
    facts([pasted(say, say("Address"), url), authorization(say, secret)]),
    secret && make("img", { className: "qr", alt: say("QR code of the value of Authorization"), src: secret.qr }),
    make("p", { className: "quiet" }, say(secret ? "Scan it with the code scanner of the phone, in its Control Centre, and copy the text. Or open this page on the phone, and copy it there." : reveal ? "Anybody with the token can ask the agent." : "Somebody with the role admin can show the token.")),
    !secret && reveal && buttons(button(say("Show the token"), reveal, "button primary")),
  );
}

function steps({ say, language, url, secret, wait }) {
  // The app may be in another language than this text: the action is then found by its English name.
  const action = (text) => [make("strong", {}, say(text)), language !== "en" && [" (", make("span", { lang: "en" }, text), ")"]];
  const header = (name, value) => pasted(say, say("Header {name}", { name }), value);
  const step = (text, ...content) => make("li", {}, make("p", {}, action(text)), ...content);
  const seconds = Math.round(TIMES * Math.min(WAIT, wait));
  return card(
    say("The five steps"),
    make("p", { className: "quiet" }, say("In the app Shortcuts, make a new shortcut with these actions:")),
    make(
      "ol",
      { className: "steps" },
      step("Dictate Text"),
      step(
        "Get Contents of URL",
        facts([
          pasted(say, "URL", url),
          [say("Method"), "POST"],
          authorization(say, secret),
          header("Prefer", "wait=0"),
          [say("Request Body"), "JSON"],
          [say("Text field {name}", { name: "message" }), say("The dictated text")],
        ]),
      ),
      step(
        "Repeat",
        facts([[say("How often"), String(TIMES)]]),
        make("p", {}, say("Inside it: {action}", { action: say("Get Contents of URL") })),
        facts([
          ["URL", say("result_url of the result of step 2: choose the variable, tap it, choose Dictionary and enter the key")],
          pasted(say, say("Key"), "result_url"),
          [say("Method"), "GET"],
          authorization(say, secret),
          header("Accept", "text/plain"),
          header("Prefer", `wait=${WAIT}`),
        ]),
      ),
      step("Get Item from List", facts([[say("Of"), say("The last item of the results of the repetition")]])),
      step("Speak Text", facts([[say("Text"), say("The item from the list")]])),
    ),
    make("p", {}, say("Name it “Ask the agent”, and say that to Siri. The shortcut waits for {seconds} seconds; a slower answer is promised and kept.", { seconds })),
  );
}

/** What a caller can do about a refusal, by its status. */
const REFUSALS = {
  401: "The token is missing or wrong: compare the header Authorization.",
  415: "The body is not what a hook reads: choose JSON, with the text field message.",
  422: "The body is not what a hook reads: choose JSON, with the text field message.",
  429: "Too many wrong tokens came from there: wait a little.",
};

function calls({ say, hook, turns }) {
  const shown = hook.calls.slice(0, SHOWN).map((call) => callItem(say, call, turns.get(call.turn_id)));
  return card(
    say("Try it"),
    make("p", {}, say("Run the shortcut now. What arrives appears here by itself.")),
    shown.length ? make("ol", { className: "calls", attributes: { "aria-label": say("Try it") } }, shown) : empty(say("Nothing has arrived since the gateway started.")),
  );
}

function callItem(say, call, turn) {
  const { at, refused, problem } = call;
  const state = refused ? [say("Refused ({status})", { status: refused }), "bad"] : [say("Arrived"), "good"];
  const files = turn?.event.attachments?.map(({ name, media_type: type }) => [name, type].filter(Boolean).join(", "));
  return make(
    "li",
    { data: { key: [at, call.turn_id, refused].join() } },
    make("p", {}, time(at, { isExact: true }), " ", badge(state)),
    REFUSALS[refused] && make("p", { className: "problem" }, say(REFUSALS[refused])),
    facts([
      [say("The gateway says"), problem && make("q", { lang: "en" }, revealed(problem))],
      [say("It said"), turn && make("span", { className: "words" }, revealed(turn.event.text) || say("Without text"))],
      [say("Files"), files?.join("; ")],
      [say("Answer"), turn && make("span", { className: "words" }, revealed(turn.deliveries.at(-1)?.text ?? say("Not yet")))],
      [say("Sent as"), call.content_type && revealed(call.content_type)],
      [say("Wants"), call.accept && revealed(call.accept)],
      [say("From"), call.user_agent && revealed(call.user_agent)],
    ]),
    turn && make("p", { className: "links" }, link(`/admin/turns/${turn.turn_id}`, say("The whole turn"))),
  );
}
