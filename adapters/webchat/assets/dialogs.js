// The dialogs that ask for the token, and before something is deleted or forgotten.

import { make } from "./dom.js";
import { addWords, inWords } from "./words.js";

addWords({
  "Access token": ["Zugangstoken", "Clave de acceso"],
  "This chat is private. Enter the token that you were given.": ["Dieser Chat ist privat. Gib das Token ein, das du bekommen hast.", "Este chat es privado. Introduce la clave que te dieron."],
  "Token": ["Token", "Clave"],
  "Keep it on this device": ["Auf diesem Gerät merken", "Guardarla en este dispositivo"],
  "Open the chat": ["Chat öffnen", "Abrir el chat"],
  "Delete this conversation?": ["Diese Unterhaltung löschen?", "¿Borrar esta conversación?"],
  "“{title}” is removed from this browser, and cannot be opened here again. The agent is not shown it any more, and no search finds it.": ["„{title}“ wird aus diesem Browser entfernt und lässt sich hier nicht wieder öffnen. Dem Agenten wird sie nicht mehr gezeigt, und keine Suche findet sie.", "«{title}» se quita de este navegador y no se puede volver a abrir aquí. Ya no se muestra al agente, y ninguna búsqueda la encuentra."],
  "The gateway's operator still has what was said, for as long as they have chosen.": ["Wer das Gateway betreibt, hat das Gesagte noch, so lange es dort eingestellt ist.", "Quien administra la pasarela conserva lo dicho durante el tiempo que haya elegido."],
  "One message in it was not sent, and is lost.": ["Eine Nachricht darin wurde nicht gesendet und geht verloren.", "Un mensaje en ella no se envió y se pierde."],
  "{count} messages in it were not sent, and are lost.": ["{count} Nachrichten darin wurden nicht gesendet und gehen verloren.", "{count} mensajes en ella no se enviaron y se pierden."],
  "What is being worked on is stopped.": ["Woran gerade gearbeitet wird, wird abgebrochen.", "Se detiene lo que está en curso."],
  "Forget this device?": ["Dieses Gerät vergessen?", "¿Olvidar este dispositivo?"],
  "This browser no longer shows any of these conversations, and they cannot be opened here again. The list, the access token, and what was written but not sent are removed from it. The gateway keeps what was said for as long as its operator has chosen.": ["Dieser Browser zeigt keine dieser Unterhaltungen mehr, und sie lassen sich hier nicht wieder öffnen. Die Liste, das Zugangstoken und was geschrieben, aber nicht gesendet wurde, werden daraus entfernt. Das Gateway behält das Gesagte so lange, wie es dort eingestellt ist.", "Este navegador ya no muestra ninguna de estas conversaciones, y no se pueden volver a abrir aquí. Se quitan de él la lista, la clave de acceso y lo que se escribió sin enviar. La pasarela conserva lo dicho durante el tiempo que haya elegido quien la administra."],
  "Forget": ["Vergessen", "Olvidar"],
});

/** Where something else stands in a text. */
const GAP = "\u0000";

/** Opens a dialog. `buttons`: its buttons; the last one submits it. Returns whether it was submitted once it is closed. */
function ask(id, title, content, ...buttons) {
  const form = make("form", {}, make("h2", { id: `${id}-title` }, title), ...content, make("div", { className: "buttons" }, ...buttons));
  const about = content[0].id && { "aria-describedby": content[0].id };
  const dialog = make("dialog", { id: `${id}-dialog`, className: "dialog", attributes: { "aria-labelledby": `${id}-title`, ...about } }, form);
  return new Promise((done) => {
    const end = (isDone) => {
      dialog.remove();
      done(isDone);
    };
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      dialog.close();
      end(true);
    });
    dialog.addEventListener("close", () => end(false));
    buttons.at(-2)?.addEventListener("click", () => dialog.close());
    document.body.append(dialog);
    dialog.showModal();
  });
}

const submit = (className, words) => make("button", { type: "submit", className: `button ${className}` }, words);
const cancel = () => make("button", { type: "button", className: "button" }, inWords("Cancel"));

/** Asks for the token; `problem` says what was wrong with the last one. Returns `{token, isKept}`; `null` if the person enters none. */
export async function askForToken(problem) {
  const token = make("input", { id: "token", type: "password", autocomplete: "current-password", spellcheck: false, required: true, autofocus: true, attributes: { "aria-describedby": "token-note" } });
  const note = make("p", { id: "token-note", className: "note", hidden: !problem, attributes: { role: "alert" } }, problem);
  const kept = make("input", { type: "checkbox" });
  const content = [
    make("p", {}, inWords("This chat is private. Enter the token that you were given.")),
    make("label", { htmlFor: "token" }, inWords("Token")),
    token,
    note,
    make("label", { className: "check" }, kept, ` ${inWords("Keep it on this device")}`),
  ];
  const isEntered = await ask("token", inWords("Access token"), content, submit("primary", inWords("Open the chat")));
  return isEntered ? { token: token.value.trim(), isKept: kept.checked } : null;
}

/** Asks whether the conversation with this title is to be deleted, in which so many messages wait to be sent, and maybe an answer is awaited. */
export function askToDelete(title, { unsent, isAwaited }) {
  const [before, after] = inWords("“{title}” is removed from this browser, and cannot be opened here again. The agent is not shown it any more, and no search finds it.", { title: GAP }).split(GAP);
  const more = [
    unsent === 1 && inWords("One message in it was not sent, and is lost."),
    unsent > 1 && inWords("{count} messages in it were not sent, and are lost.", { count: unsent }),
    isAwaited && inWords("What is being worked on is stopped."),
    inWords("The gateway's operator still has what was said, for as long as they have chosen."),
  ].filter(Boolean).join(" ");
  const about = make("p", { id: "delete-text" }, before, make("bdi", {}, title), `${after} ${more}`);
  return ask("delete", inWords("Delete this conversation?"), [about], cancel(), submit("danger", inWords("Delete")));
}

/** Asks whether this device is to be forgotten. */
export function askToForget() {
  const about = inWords("This browser no longer shows any of these conversations, and they cannot be opened here again. The list, the access token, and what was written but not sent are removed from it. The gateway keeps what was said for as long as its operator has chosen.");
  return ask("forget", inWords("Forget this device?"), [make("p", { id: "forget-text" }, about)], cancel(), submit("primary", inWords("Forget")));
}
