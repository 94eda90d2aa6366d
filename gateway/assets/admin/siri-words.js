// The words of "Set up Siri". The phone may speak another language than the rest of this page.

/** The languages, each by its own name. */
export const LANGUAGES = { en: "English", de: "Deutsch", es: "Español" };

/** Each text in English, and in German and Spanish. `{…}` is filled in. Actions have the names that Shortcuts gives them. */
export const WORDS = {
  "Set up Siri": ["Siri einrichten", "Configurar Siri"],
  "Language": ["Sprache", "Idioma"],
  "Copy": ["Kopieren", "Copiar"],
  "Copy {what}": ["Kopieren: {what}", "Copiar {what}"],
  "Copied.": ["Kopiert.", "Copiado."],

  // Address and token
  "Address and token": ["Adresse und Token", "Dirección y clave"],
  "Address": ["Adresse", "Dirección"],
  "Show the token": ["Token anzeigen", "Mostrar la clave"],
  "Shown. The audit says that you have seen it.": ["Angezeigt. Das Protokoll der Eingriffe hält fest, dass du es gesehen hast.", "Se muestra. El registro de auditoría indica que la has visto."],
  "Anybody with the token can ask the agent.": ["Mit dem Token kann man den Agenten fragen.", "Con la clave se puede preguntar al agente."],
  "Somebody with the role admin can show the token.": ["Wer die Rolle admin hat, kann das Token anzeigen.", "Quien tiene el rol admin puede mostrar la clave."],
  "QR code of the value of Authorization": ["QR-Code des Werts von Authorization", "Código QR del valor de Authorization"],
  "Scan it with the code scanner of the phone, in its Control Centre, and copy the text. Or open this page on the phone, and copy it there.": ["Scanne ihn mit dem Codescanner im Kontrollzentrum des Telefons und kopiere den Text. Oder öffne diese Seite auf dem Telefon und kopiere ihn dort.", "Escanéalo con el escáner de códigos del centro de control del teléfono y copia el texto. O abre esta página en el teléfono y cópialo allí."],
  "No phone reaches this address: it names this machine. Put a TLS proxy in front, and set server.public_url.": ["Kein Telefon erreicht diese Adresse: Sie meint diesen Rechner. Stelle einen TLS-Proxy davor und setze server.public_url.", "Ningún teléfono llega a esta dirección: nombra esta máquina. Pon delante un proxy TLS y configura server.public_url."],
  "The address begins with http://: the token can be read on the way.": ["Die Adresse beginnt mit http://: Das Token kann unterwegs mitgelesen werden.", "La dirección empieza por http://: la clave se puede leer por el camino."],
  "This hook takes events, which are not answered: a shortcut would have nothing to say.": ["Dieser Hook nimmt Ereignisse an, die nicht beantwortet werden: Ein Kurzbefehl hätte nichts zu sagen.", "Este hook recibe eventos, que no se responden: un atajo no tendría nada que decir."],
  "This hook has no token, and shortcuts cannot sign: set its token in the configuration.": ["Dieser Hook hat kein Token, und Kurzbefehle können nicht signieren: Setze sein token in der Konfiguration.", "Este hook no tiene clave, y los atajos no saben firmar: configura su token."],

  // The five steps
  "The five steps": ["Die fünf Schritte", "Los cinco pasos"],
  "In the app Shortcuts, make a new shortcut with these actions:": ["Lege in der App Kurzbefehle einen neuen Kurzbefehl mit diesen Aktionen an:", "En la app Atajos, crea un atajo nuevo con estas acciones:"],
  "Dictate Text": ["Text diktieren", "Dictar texto"],
  "Get Contents of URL": ["Inhalte von URL abrufen", "Obtener contenido de URL"],
  "Repeat": ["Wiederholen", "Repetir"],
  "Get Item from List": ["Objekt aus Liste abrufen", "Obtener ítem de la lista"],
  "Speak Text": ["Text sprechen", "Leer texto"],
  "Method": ["Methode", "Método"],
  "Header {name}": ["Header {name}", "Cabecera {name}"],
  "Request Body": ["Anfragetext", "Cuerpo de la solicitud"],
  "Text field {name}": ["Textfeld {name}", "Campo de texto {name}"],
  "How often": ["Wie oft", "Cuántas veces"],
  "Inside it: {action}": ["Darin: {action}", "Dentro: {action}"],
  "result_url of the result of step 2: choose the variable, tap it, choose Dictionary and enter the key": ["result_url aus dem Ergebnis von Schritt 2: Wähle die Variable, tippe sie an, wähle Wörterbuch und gib den Schlüssel ein", "result_url del resultado del paso 2: elige la variable, tócala, elige Diccionario e introduce la clave"],
  "Key": ["Schlüssel", "Clave del diccionario"],
  "The dictated text": ["Der diktierte Text", "El texto dictado"],
  "The last item of the results of the repetition": ["Das letzte Objekt der Ergebnisse der Wiederholung", "El último ítem de los resultados de la repetición"],
  "The item from the list": ["Das Objekt aus der Liste", "El ítem de la lista"],
  "Of": ["Welches", "Cuál"],
  "Text": ["Text", "Texto"],
  "Name it “Ask the agent”, and say that to Siri. The shortcut waits for {seconds} seconds; a slower answer is promised and kept.": ["Nenne ihn „Frag den Agenten“ und sag das zu Siri. Der Kurzbefehl wartet {seconds} Sekunden; eine langsamere Antwort wird versprochen und aufgehoben.", "Llámalo «Pregunta al agente» y díselo a Siri. El atajo espera {seconds} segundos; una respuesta más lenta se promete y se guarda."],

  // The test
  "Try it": ["Ausprobieren", "Pruébalo"],
  "Run the shortcut now. What arrives appears here by itself.": ["Führe den Kurzbefehl jetzt aus. Was ankommt, erscheint hier von selbst.", "Ejecuta el atajo ahora. Lo que llega aparece aquí solo."],
  "Nothing has arrived since the gateway started.": ["Seit dem Start des Gateways ist nichts angekommen.", "No ha llegado nada desde que se inició la pasarela."],
  "Something has arrived.": ["Es ist etwas angekommen.", "Ha llegado algo."],
  "Arrived": ["Angekommen", "Ha llegado"],
  "Refused ({status})": ["Abgelehnt ({status})", "Rechazado ({status})"],
  "The token is missing or wrong: compare the header Authorization.": ["Das Token fehlt oder ist falsch: Vergleiche den Header Authorization.", "La clave falta o es incorrecta: compara la cabecera Authorization."],
  "The body is not what a hook reads: choose JSON, with the text field message.": ["Der Anfragetext ist nicht lesbar: Wähle JSON mit dem Textfeld message.", "El cuerpo no se puede leer: elige JSON, con el campo de texto message."],
  "Too many wrong tokens came from there: wait a little.": ["Von dort kamen zu viele falsche Token: Warte ein wenig.", "De ahí llegaron demasiadas claves incorrectas: espera un poco."],
  "The gateway says": ["Das Gateway sagt", "La pasarela dice"],
  "It said": ["Gesagt wurde", "Se dijo"],
  "Files": ["Dateien", "Archivos"],
  "Answer": ["Antwort", "Respuesta"],
  "Not yet": ["Noch keine", "Todavía no"],
  "Sent as": ["Gesendet als", "Enviado como"],
  "Wants": ["Erwartet", "Espera"],
  "From": ["Von", "De"],
  "Without text": ["Ohne Text", "Sin texto"],
  "The whole turn": ["Der ganze Turn", "El turno completo"],
};

/** The first language of the browser that there is. */
export const preferred = () => navigator.languages.map((tag) => tag.split("-")[0]).find((tag) => tag in LANGUAGES) ?? "en";

/** Says texts of the table in a language. */
export function speaker(language) {
  const index = Object.keys(LANGUAGES).indexOf(language) - 1;
  return (text, filled = {}) => (WORDS[text][index] ?? text).replace(/\{(\w+)\}/g, (gap, name) => filled[name] ?? gap);
}
