// What the parts of the page share that are loaded when they are used: their words and their looks.

import { addStyles } from "./dom.js";
import { addWords } from "./words.js";

addWords({
  // The search in what was said
  "Messages": ["Nachrichten", "Mensajes"],
  "1 message found": ["1 Nachricht gefunden", "1 mensaje encontrado"],
  "{count} messages found": ["{count} Nachrichten gefunden", "{count} mensajes encontrados"],
  "The last {count} messages with these words": ["Die letzten {count} Nachrichten mit diesen Wörtern", "Los últimos {count} mensajes con estas palabras"],
  "No message has these words.": ["Keine Nachricht enthält diese Wörter.", "Ningún mensaje contiene estas palabras."],
  "Messages can be searched when the connection is back.": ["Nachrichten lassen sich durchsuchen, sobald die Verbindung wieder da ist.", "Los mensajes se podrán buscar cuando vuelva la conexión."],
  "Messages cannot be searched right now.": ["Nachrichten lassen sich gerade nicht durchsuchen.", "Ahora mismo no se pueden buscar mensajes."],
  "That message is not shown any more.": ["Diese Nachricht wird nicht mehr angezeigt.", "Ese mensaje ya no se muestra."],

  // What can be done with a conversation
  "Save as Markdown": ["Als Markdown sichern", "Guardar como Markdown"],
  "Save as JSON": ["Als JSON sichern", "Guardar como JSON"],
  "Print": ["Drucken", "Imprimir"],
  "Agent": ["Agent", "Agente"],
  "Model": ["Modell", "Modelo"],

  // Keys
  "Keyboard shortcuts": ["Tastenkürzel", "Atajos de teclado"],
  "Close": ["Schließen", "Cerrar"],
  "Start a new line": ["Eine neue Zeile beginnen", "Empezar una línea nueva"],
  "Search conversations and messages": ["Unterhaltungen und Nachrichten durchsuchen", "Buscar conversaciones y mensajes"],
  "Previous conversation": ["Vorige Unterhaltung", "Conversación anterior"],
  "Next conversation": ["Nächste Unterhaltung", "Conversación siguiente"],
  "Edit what you said last, if nothing is written": ["Bearbeiten, was du zuletzt gesagt hast, wenn nichts geschrieben ist", "Editar lo último que dijiste, si no hay nada escrito"],
  "Outside of the input: list the commands": ["Außerhalb der Eingabe: die Befehle zeigen", "Fuera del campo: mostrar las órdenes"],
  "Outside of the input: show this card": ["Außerhalb der Eingabe: diese Karte zeigen", "Fuera del campo: mostrar esta tarjeta"],
  "Show this card": ["Diese Karte zeigen", "Mostrar esta tarjeta"],
  "In the list: pin, rename, delete": ["In der Liste: anheften, umbenennen, löschen", "En la lista: fijar, renombrar, borrar"],
  "Keys without Ctrl or Alt work outside of the input": ["Tasten ohne Strg oder Alt wirken außerhalb der Eingabe", "Las teclas sin Ctrl ni Alt funcionan fuera del campo"],
});

await addStyles("more.css");
