// Signing in with a passkey, and what a person who is signed in may do. Loaded where people sign in.

import { make } from "./dom.js";
import { addWords, inWords } from "./words.js";

addWords({
  "This chat is for people who were invited.": ["Dieser Chat ist für Menschen, die eingeladen wurden.", "Este chat es para quienes fueron invitados."],
  "Sign in with a passkey": ["Mit einem Passkey anmelden", "Iniciar sesión con una llave de acceso"],
  "Make a passkey": ["Passkey anlegen", "Crear una llave de acceso"],
  "Make a passkey for this chat. It takes the place of a password: this device keeps it, and asks for your finger, face or PIN.": ["Leg einen Passkey für diesen Chat an. Er ersetzt ein Passwort: Dieses Gerät bewahrt ihn auf und fragt nach Finger, Gesicht oder PIN.", "Crea una llave de acceso para este chat. Sustituye a una contraseña: este dispositivo la guarda y pide tu huella, tu cara o un PIN."],
  "No passkey was used. Try again.": ["Es wurde kein Passkey verwendet. Versuch es noch einmal.", "No se usó ninguna llave de acceso. Inténtalo de nuevo."],
  "Passkeys work at {origin} only.": ["Passkeys gelten nur unter {origin}.", "Las llaves de acceso solo sirven en {origin}."],
  "This browser has no passkeys here. They need a page with https.": ["Dieser Browser hat hier keine Passkeys. Sie brauchen eine Seite mit https.", "Este navegador no tiene llaves de acceso aquí. Necesitan una página con https."],
  "This device has a passkey of this chat already. Sign in with it.": ["Dieses Gerät hat schon einen Passkey dieses Chats. Melde dich damit an.", "Este dispositivo ya tiene una llave de acceso de este chat. Inicia sesión con ella."],
  "The gateway cannot be reached. Try again.": ["Das Gateway ist nicht erreichbar. Versuch es noch einmal.", "No se puede acceder a la pasarela. Inténtalo de nuevo."],
  "Signed in as {name}": ["Angemeldet als {name}", "Sesión iniciada como {name}"],
  "Sign out": ["Abmelden", "Cerrar sesión"],
  "Add a device": ["Gerät hinzufügen", "Añadir un dispositivo"],
  "Link": ["Link", "Enlace"],
  "Close": ["Schließen", "Cerrar"],
  "Open this link on the other device within ten minutes. Who opens it is signed in as you: show it to nobody else.": ["Öffne diesen Link innerhalb von zehn Minuten auf dem anderen Gerät. Wer ihn öffnet, ist als du angemeldet: Zeig ihn sonst niemandem.", "Abre este enlace en el otro dispositivo antes de diez minutos. Quien lo abra entra como tú: no se lo enseñes a nadie más."],
});

/** How long a person may take (ms). The gateway's challenge counts a little longer. */
const PATIENCE = 240_000;

const path = location.pathname.replace(/\/+$/, "");
let dialog = null;

/**
 * Asks the person to sign in, or to make a passkey if there is an `invitation`, and then calls `onDone()`. `problem` is why they are
 * not signed in, `onLeft(askAgain)` is called when they close the dialog.
 */
export function askToSignIn({ invitation, problem, onDone, onLeft }) {
  dialog?.remove();
  const note = make("p", { className: "note", hidden: !problem, attributes: { role: "alert" } }, problem ?? "");
  const act = make("button", { type: "submit", className: "button primary" }, invitation ? inWords("Make a passkey") : inWords("Sign in with a passkey"));
  const words = invitation
    ? inWords("Make a passkey for this chat. It takes the place of a password: this device keeps it, and asks for your finger, face or PIN.")
    : inWords("This chat is for people who were invited.");
  const form = make("form", {}, make("h2", { id: "sign-in-title" }, inWords("Sign in")), make("p", {}, words), note, make("div", { className: "buttons" }, act));
  const own = (dialog = make("dialog", { id: "sign-in", className: "dialog", attributes: { "aria-labelledby": "sign-in-title" } }, form));
  let isDone = false;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    act.disabled = true;
    note.hidden = true;
    try {
      await (invitation ? register(invitation) : signIn());
      isDone = true;
      own.close();
      onDone();
    } catch (error) {
      note.textContent = said(error);
      note.hidden = false;
    }
    act.disabled = false;
  });
  own.addEventListener("close", () => {
    own.remove();
    if (!isDone) onLeft(() => askToSignIn({ invitation, onDone, onLeft }));
  });
  document.body.append(own);
  own.showModal();
  act.focus();
}

/** Shows who is signed in at the end of the list, in place of what forgets the device. `onOut()` is called once they are signed out. */
export function showAccount({ name, by_proxy }, { onOut, notice }) {
  const forget = document.getElementById("forget");
  forget.hidden = true;
  document.getElementById("account")?.remove();
  const out = make("button", { type: "button", className: "small-button" }, inWords("Sign out"));
  const add = make("button", { type: "button", className: "small-button" }, inWords("Add a device"));
  out.addEventListener("click", () => ask("session", {}, "DELETE").then(onOut, (error) => notice(said(error))));
  add.addEventListener("click", () => ask("session/invitation", {}).then(({ code }) => showLink(code), (error) => notice(said(error))));
  const words = make("p", { className: "list-note" }, inWords("Signed in as {name}", { name }));
  // Who is signed in at a proxy signs out there.
  forget.before(make("div", { id: "account", className: "account" }, words, add, !by_proxy && out));
}

function showLink(code) {
  const url = `${location.origin}${path}#invitation=${code}`;
  const link = make("input", { id: "device-link", className: "search", readOnly: true, value: url, attributes: { "aria-label": inWords("Link") } });
  const close = make("button", { type: "submit", className: "button primary" }, inWords("Close"));
  const words = inWords("Open this link on the other device within ten minutes. Who opens it is signed in as you: show it to nobody else.");
  const form = make("form", { method: "dialog" }, make("h2", { id: "device-title" }, inWords("Add a device")), make("p", {}, words), link, make("div", { className: "buttons" }, close));
  const own = make("dialog", { id: "device", className: "dialog", attributes: { "aria-labelledby": "device-title" } }, form);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    own.close();
  });
  own.addEventListener("close", () => own.remove());
  document.body.append(own);
  own.showModal();
  link.select();
}

async function signIn() {
  const { challenge, party } = await challengeFor({});
  const credential = await navigator.credentials.get({
    publicKey: { challenge: bytes(challenge), rpId: party, userVerification: "preferred", timeout: PATIENCE },
  });
  const { clientDataJSON, authenticatorData, signature, userHandle } = credential.response;
  await ask("session", {
    id: text(credential.rawId),
    client_data: text(clientDataJSON),
    authenticator_data: text(authenticatorData),
    signature: text(signature),
    ...(userHandle && { user: text(userHandle) }),
  });
}

async function register(invitation) {
  const { challenge, party, new: wanted } = await challengeFor({ invitation });
  const { response } = await navigator.credentials.create({
    publicKey: {
      challenge: bytes(challenge),
      rp: { id: party, name: document.title },
      user: { id: bytes(wanted.user), name: wanted.name, displayName: wanted.name },
      pubKeyCredParams: wanted.algorithms.map((alg) => ({ type: "public-key", alg })),
      excludeCredentials: wanted.known.map((id) => ({ type: "public-key", id: bytes(id) })),
      authenticatorSelection: { residentKey: "required", userVerification: "preferred" },
      attestation: "none",
      timeout: PATIENCE,
    },
  });
  await ask("session/passkey", {
    invitation,
    client_data: text(response.clientDataJSON),
    authenticator_data: text(response.getAuthenticatorData()),
    public_key: text(response.getPublicKey()),
    algorithm: response.getPublicKeyAlgorithm(),
  });
}

/** A challenge of the gateway, if this page is where passkeys work. */
async function challengeFor(wanted) {
  const challenge = await ask("session/challenge", wanted);
  if (challenge.origin !== location.origin) throw new Problem(inWords("Passkeys work at {origin} only.", { origin: challenge.origin }));
  if (!globalThis.PublicKeyCredential) throw new Problem(inWords("This browser has no passkeys here. They need a page with https."));
  return challenge;
}

/** What the person can be told. */
class Problem extends Error {}

function said(error) {
  if (error instanceof Problem) return error.message;
  if (error.name === "InvalidStateError") return inWords("This device has a passkey of this chat already. Sign in with it.");
  return inWords("No passkey was used. Try again.");
}

async function ask(what, body, method = "POST") {
  let response;
  try {
    response = await fetch(`${path}/${what}`, { method, headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  } catch {
    throw new Problem(inWords("The gateway cannot be reached. Try again."));
  }
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Problem(answer.detail ?? inWords("The gateway cannot be reached. Try again."));
  return answer;
}

/** Bytes in the base64 of URLs. */
function text(buffer) {
  const letters = Array.from(new Uint8Array(buffer), (byte) => String.fromCharCode(byte)).join("");
  return btoa(letters).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

function bytes(encoded) {
  const letters = atob(encoded.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
}
