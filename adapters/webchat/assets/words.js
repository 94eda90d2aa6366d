// The page's own words, in the language of the browser. What agents and the gateway say comes in theirs.

/** Each text in English, and in German and Spanish. `{…}` is filled in. */
export const WORDS = {
  // The frame
  "Conversations": ["Unterhaltungen", "Conversaciones"],
  "Conversation": ["Unterhaltung", "Conversación"],
  "Connecting…": ["Verbindet …", "Conectando…"],
  "Connected": ["Verbunden", "Conectado"],
  "Reconnecting…": ["Verbindet wieder …", "Reconectando…"],
  "Offline": ["Offline", "Sin conexión"],
  "Not connected": ["Nicht verbunden", "No conectado"],
  "Switch to dark theme": ["Zum dunklen Design wechseln", "Cambiar al tema oscuro"],
  "Switch to light theme": ["Zum hellen Design wechseln", "Cambiar al tema claro"],
  "New conversation": ["Neue Unterhaltung", "Nueva conversación"],
  "The connection was lost. What you write is kept and will be sent.": ["Die Verbindung ist unterbrochen. Was du schreibst, wird aufgehoben und gesendet.", "Se perdió la conexión. Lo que escribas se guarda y se enviará."],
  "You are offline. What you write is kept and will be sent.": ["Du bist offline. Was du schreibst, wird aufgehoben und gesendet.", "No tienes conexión. Lo que escribas se guarda y se enviará."],
  "Try now": ["Jetzt versuchen", "Intentar ahora"],
  "Load again": ["Neu laden", "Volver a cargar"],
  "More": ["Mehr", "Más"],
  "Cancel": ["Abbrechen", "Cancelar"],

  // The list
  "Close the list": ["Liste schließen", "Cerrar la lista"],
  "Search conversations": ["Unterhaltungen durchsuchen", "Buscar conversaciones"],
  "Search": ["Suchen", "Buscar"],
  "No conversation has these words.": ["Keine Unterhaltung enthält diese Wörter.", "Ninguna conversación contiene estas palabras."],
  "Pin": ["Anheften", "Fijar"],
  "Unpin": ["Nicht mehr anheften", "No fijar más"],
  "Pin “{title}”": ["„{title}“ anheften", "Fijar «{title}»"],
  "“{title}” is pinned": ["„{title}“ ist angeheftet", "«{title}» está fijada"],
  "“{title}” is not pinned any more": ["„{title}“ ist nicht mehr angeheftet", "«{title}» ya no está fijada"],
  "1 conversation found": ["1 Unterhaltung gefunden", "1 conversación encontrada"],
  "{count} conversations found": ["{count} Unterhaltungen gefunden", "{count} conversaciones encontradas"],
  "No conversations found": ["Keine Unterhaltungen gefunden", "No se encontraron conversaciones"],
  "Deleted here. The gateway is told when the connection is back.": ["Hier gelöscht. Das Gateway erfährt es, sobald die Verbindung wieder da ist.", "Borrada aquí. La pasarela lo sabrá cuando vuelva la conexión."],
  "The list holds {most} conversations. A new one takes the place of the one used longest ago; those that you have named stay longest.": ["Die Liste fasst {most} Unterhaltungen. Eine neue ersetzt die, die am längsten nicht benutzt wurde; die von dir benannten bleiben am längsten.", "La lista contiene {most} conversaciones. Una nueva sustituye a la que lleva más tiempo sin usarse; las que has nombrado son las que más se conservan."],
  "Unnamed conversation": ["Unterhaltung ohne Namen", "Conversación sin nombre"],
  "1 message not sent": ["1 Nachricht nicht gesendet", "1 mensaje sin enviar"],
  "{count} messages not sent": ["{count} Nachrichten nicht gesendet", "{count} mensajes sin enviar"],
  "Rename": ["Umbenennen", "Renombrar"],
  "Rename “{title}”": ["„{title}“ umbenennen", "Renombrar «{title}»"],
  "Name of “{title}”": ["Name von „{title}“", "Nombre de «{title}»"],
  "Delete": ["Löschen", "Borrar"],
  "Delete “{title}”": ["„{title}“ löschen", "Borrar «{title}»"],
  "“{title}” is deleted": ["„{title}“ ist gelöscht", "«{title}» se ha borrado"],
  "Delete this conversation?": ["Diese Unterhaltung löschen?", "¿Borrar esta conversación?"],
  "“{title}” is removed from this browser, and cannot be opened here again. The agent is not shown it any more, and no search finds it.": ["„{title}“ wird aus diesem Browser entfernt und lässt sich hier nicht wieder öffnen. Dem Agenten wird sie nicht mehr gezeigt, und keine Suche findet sie.", "«{title}» se quita de este navegador y no se puede volver a abrir aquí. Ya no se muestra al agente, y ninguna búsqueda la encuentra."],
  "The gateway's operator still has what was said, for as long as they have chosen.": ["Wer das Gateway betreibt, hat das Gesagte noch, so lange es dort eingestellt ist.", "Quien administra la pasarela conserva lo dicho durante el tiempo que haya elegido."],
  "One message in it was not sent, and is lost.": ["Eine Nachricht darin wurde nicht gesendet und geht verloren.", "Un mensaje en ella no se envió y se pierde."],
  "{count} messages in it were not sent, and are lost.": ["{count} Nachrichten darin wurden nicht gesendet und gehen verloren.", "{count} mensajes en ella no se enviaron y se pierden."],
  "What is being worked on is stopped.": ["Woran gerade gearbeitet wird, wird abgebrochen.", "Se detiene lo que está en curso."],
  "A conversation could not be deleted at the gateway. {problem}": ["Eine Unterhaltung konnte beim Gateway nicht gelöscht werden. {problem}", "No se pudo borrar una conversación en la pasarela. {problem}"],
  "That conversation was removed in another tab.": ["Diese Unterhaltung wurde in einem anderen Tab entfernt.", "Esa conversación se quitó en otra pestaña."],
  "What you were writing is kept here.": ["Was du gerade geschrieben hast, ist hier aufgehoben.", "Lo que estabas escribiendo se conserva aquí."],
  "Conversation: {title}": ["Unterhaltung: {title}", "Conversación: {title}"],
  "Forget this device": ["Dieses Gerät vergessen", "Olvidar este dispositivo"],
  "Forget this device?": ["Dieses Gerät vergessen?", "¿Olvidar este dispositivo?"],
  "This browser no longer shows any of these conversations, and they cannot be opened here again. The list, the access token, and what was written but not sent are removed from it. The gateway keeps what was said for as long as its operator has chosen.": ["Dieser Browser zeigt keine dieser Unterhaltungen mehr, und sie lassen sich hier nicht wieder öffnen. Die Liste, das Zugangstoken und was geschrieben, aber nicht gesendet wurde, werden daraus entfernt. Das Gateway behält das Gesagte so lange, wie es dort eingestellt ist.", "Este navegador ya no muestra ninguna de estas conversaciones, y no se pueden volver a abrir aquí. Se quitan de él la lista, la clave de acceso y lo que se escribió sin enviar. La pasarela conserva lo dicho durante el tiempo que haya elegido quien la administra."],
  "Forget": ["Vergessen", "Olvidar"],

  // Notifications
  "Notify me of answers": ["Bei Antworten benachrichtigen", "Avisarme de las respuestas"],
  "Stop notifying me": ["Nicht mehr benachrichtigen", "No avisarme más"],
  "The browser does not let this page notify you.": ["Der Browser lässt diese Seite dich nicht benachrichtigen.", "El navegador no permite a esta página avisarte."],
  "This browser cannot be notified.": ["Dieser Browser lässt sich nicht benachrichtigen.", "No se puede avisar a este navegador."],

  // Access
  "Access token": ["Zugangstoken", "Clave de acceso"],
  "This chat is private. Enter the token that you were given.": ["Dieser Chat ist privat. Gib das Token ein, das du bekommen hast.", "Este chat es privado. Introduce la clave que te dieron."],
  "This chat is private.": ["Dieser Chat ist privat.", "Este chat es privado."],
  "Sign in": ["Anmelden", "Iniciar sesión"],
  "You are not signed in.": ["Du bist nicht angemeldet.", "No has iniciado sesión."],
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
  "Enter the token": ["Token eingeben", "Introducir la clave"],
  "Token": ["Token", "Clave"],
  "Keep it on this device": ["Auf diesem Gerät merken", "Guardarla en este dispositivo"],
  "Open the chat": ["Chat öffnen", "Abrir el chat"],

  // What was said
  "Earlier messages": ["Frühere Nachrichten", "Mensajes anteriores"],
  "What was said here is no longer kept.": ["Was hier gesagt wurde, ist nicht mehr gespeichert.", "Lo que se dijo aquí ya no se conserva."],
  "Jump to the latest message": ["Zur neuesten Nachricht springen", "Ir al último mensaje"],
  "Today": ["Heute", "Hoy"],
  "Yesterday": ["Gestern", "Ayer"],
  "While you were away": ["Während du weg warst", "Mientras no estabas"],
  "You": ["Du", "Tú"],
  "Sent": ["Gesendet", "Enviado"],
  "Stopped": ["Abgebrochen", "Detenido"],
  "Seen": ["Gesehen", "Visto"],
  "Answered": ["Beantwortet", "Respondido"],
  "Answer": ["Antwort", "Respuesta"],
  "Message of the agent": ["Nachricht des Agenten", "Mensaje del agente"],
  "In place of an answer": ["Statt einer Antwort", "En lugar de una respuesta"],
  "In place of a message": ["Statt einer Nachricht", "En lugar de un mensaje"],
  "The gateway, not the agent": ["Das Gateway, nicht der Agent", "La pasarela, no el agente"],
  "Answer of the gateway": ["Antwort des Gateways", "Respuesta de la pasarela"],
  "Message of the gateway": ["Nachricht des Gateways", "Mensaje de la pasarela"],
  "The gateway": ["Das Gateway", "La pasarela"],
  "This could not be answered.": ["Das konnte nicht beantwortet werden.", "Esto no se pudo responder."],
  "There is no answer, so it reacted to your message.": ["Es gibt keine Antwort, daher hat es auf deine Nachricht reagiert.", "No hay respuesta, así que reaccionó a tu mensaje."],
  "Answered together with your message above.": ["Zusammen mit deiner Nachricht darüber beantwortet.", "Respondido junto con tu mensaje de arriba."],
  "It is answered together with your message above.": ["Wird zusammen mit deiner Nachricht darüber beantwortet.", "Se responde junto con tu mensaje de arriba."],
  "Reaction: {text}": ["Reaktion: {text}", "Reacción: {text}"],
  "An answer is being written": ["Eine Antwort wird geschrieben", "Se está escribiendo una respuesta"],
  "Waiting in line": ["Wartet", "En espera"],
  "Waiting for {length}": ["Wartet seit {length}", "Esperando desde hace {length}"],
  "promised for {time}": ["zugesagt für {time}", "prometido para {time}"],
  "was promised for {time}": ["war zugesagt für {time}", "se prometió para {time}"],
  "Try again": ["Nochmals versuchen", "Intentar de nuevo"],
  "Sends the same words again, as a new message": ["Sendet dieselben Worte noch einmal, als neue Nachricht", "Envía las mismas palabras otra vez, como mensaje nuevo"],
  "Edit": ["Bearbeiten", "Editar"],
  "Puts these words into the input": ["Übernimmt diese Worte in die Eingabe", "Pone estas palabras en el campo"],
  "Answer again": ["Neu beantworten", "Responder de nuevo"],
  "Asks the same again. This version can still be read.": ["Fragt dasselbe noch einmal. Diese Fassung bleibt lesbar.", "Pregunta lo mismo otra vez. Esta versión se puede seguir leyendo."],
  "Versions": ["Fassungen", "Versiones"],
  "Previous version": ["Vorige Fassung", "Versión anterior"],
  "Next version": ["Nächste Fassung", "Versión siguiente"],
  "{number} of {count}": ["{number} von {count}", "{number} de {count}"],
  "An earlier version. The agent goes on from the last one.": ["Eine frühere Fassung. Der Agent macht mit der letzten weiter.", "Una versión anterior. El agente sigue desde la última."],
  "Discard": ["Verwerfen", "Descartar"],
  "Copy": ["Kopieren", "Copiar"],
  "Copied": ["Kopiert", "Copiado"],
  "Not copied": ["Nicht kopiert", "No copiado"],
  "Choices": ["Auswahl", "Opciones"],
  "Choices: {choices}.": ["Auswahl: {choices}.", "Opciones: {choices}."],
  "Files": ["Dateien", "Archivos"],
  "Save {name}": ["{name} sichern", "Guardar {name}"],
  "Not sent. {problem}": ["Nicht gesendet. {problem}", "No enviado. {problem}"],
  "Sending…": ["Wird gesendet …", "Enviando…"],
  "Will be sent when the connection is back": ["Wird gesendet, sobald die Verbindung wieder da ist", "Se enviará cuando vuelva la conexión"],

  // The input
  "Message": ["Nachricht", "Mensaje"],
  "Commands": ["Befehle", "Órdenes"],
  "1 command": ["1 Befehl", "1 orden"],
  "{count} commands": ["{count} Befehle", "{count} órdenes"],
  "Stop": ["Abbrechen", "Detener"],
  "Send": ["Senden", "Enviar"],
  "Send message": ["Nachricht senden", "Enviar mensaje"],
  "That is too long for one message. Please send it in parts.": ["Das ist zu lang für eine Nachricht. Bitte sende es in Teilen.", "Es demasiado largo para un solo mensaje. Envíalo por partes."],
  "You edit your message. The new version takes its place, and the old one can still be read.": ["Du bearbeitest deine Nachricht. Die neue Fassung tritt an ihre Stelle, und die alte bleibt lesbar.", "Estás editando tu mensaje. La nueva versión ocupa su lugar, y la anterior se puede seguir leyendo."],
  "You edit a copy. It is sent as a new message, and the old one stays.": ["Du bearbeitest eine Kopie. Sie wird als neue Nachricht gesendet, und die alte bleibt.", "Estás editando una copia. Se envía como mensaje nuevo, y el anterior se queda."],
  "Attach files": ["Dateien anhängen", "Adjuntar archivos"],
  "Take a picture": ["Foto aufnehmen", "Hacer una foto"],
  "Files to send": ["Dateien zum Senden", "Archivos para enviar"],
  "Remove {name}": ["{name} entfernen", "Quitar {name}"],
  "A message may have {count} files. Send the others in another one.": ["Eine Nachricht kann {count} Dateien haben. Sende die anderen in einer weiteren.", "Un mensaje puede tener {count} archivos. Envía los demás en otro."],
  "“{name}” is too large: the files of a message may have {size} together.": ["„{name}“ ist zu groß: Die Dateien einer Nachricht dürfen zusammen {size} haben.", "«{name}» es demasiado grande: los archivos de un mensaje pueden tener {size} en total."],
  "The files are too large.": ["Die Dateien sind zu groß.", "Los archivos son demasiado grandes."],
  "The files did not arrive.": ["Die Dateien sind nicht angekommen.", "Los archivos no llegaron."],
  "Its files are not here any more. Attach them again.": ["Die Dateien sind nicht mehr hier. Hänge sie noch einmal an.", "Sus archivos ya no están aquí. Adjúntalos de nuevo."],
  "Voice note": ["Sprachnachricht", "Nota de voz"],
  "Record a voice note": ["Sprachnachricht aufnehmen", "Grabar una nota de voz"],
  "Recording…": ["Nimmt auf …", "Grabando…"],
  "Stop recording": ["Aufnahme beenden", "Terminar la grabación"],
  "Send voice note": ["Sprachnachricht senden", "Enviar la nota de voz"],
  "The browser does not let this page use the microphone.": ["Der Browser lässt diese Seite das Mikrofon nicht benutzen.", "El navegador no permite a esta página usar el micrófono."],
  "There is no microphone.": ["Es gibt kein Mikrofon.", "No hay micrófono."],
  "sends,": ["sendet,", "envía,"],
  "starts a new line,": ["beginnt eine neue Zeile,", "empieza una línea nueva,"],
  "lists the commands": ["zeigt die Befehle", "muestra las órdenes"],
};

const LANGUAGES = ["en", "de", "es"];

/** The page's language. */
export const language = LANGUAGES.find((one) => navigator.language.toLowerCase().split("-")[0] === one) ?? "en";

/** How times are written: as the browser says, if that is in the page's language. */
export const locale = navigator.language.toLowerCase().startsWith(language) ? navigator.language : language;

/** A text of the table in the page's language. */
export function inWords(text, values = {}) {
  const found = WORDS[text]?.[LANGUAGES.indexOf(language) - 1] ?? text;
  return found.replace(/\{(\w+)\}/g, (_, name) => values[name]);
}

/** `words` as they are compared: without case and accents. */
export function folded(words) {
  return words.normalize("NFKD").replace(/\p{Mn}/gu, "").toLowerCase();
}

/** Puts the words of `index.html` into the page's language. */
export function translate(page) {
  page.documentElement.lang = language;
  if (language === "en") return;
  for (const element of page.querySelectorAll("[aria-label], [title], [placeholder]")) {
    for (const name of ["aria-label", "title", "placeholder"]) {
      if (element.hasAttribute(name)) element.setAttribute(name, inWords(element.getAttribute(name)));
    }
  }
  const texts = page.createTreeWalker(page.body, NodeFilter.SHOW_TEXT);
  for (let node = texts.nextNode(); node; node = texts.nextNode()) {
    const text = node.data.trim();
    if (text && !node.parentElement.closest("#title")) node.data = node.data.replace(text, () => inWords(text));
  }
}
