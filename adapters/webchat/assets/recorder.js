// Records a voice note, and plays it back before it is sent. Loaded when the first one is recorded.

import { addStyles, make } from "./dom.js";
import { addWords, inWords } from "./words.js";

addWords({
  "Recording…": ["Nimmt auf …", "Grabando…"],
  "Stop recording": ["Aufnahme beenden", "Terminar la grabación"],
  "Send voice note": ["Sprachnachricht senden", "Enviar la nota de voz"],
  "The browser does not let this page use the microphone.": ["Der Browser lässt diese Seite das Mikrofon nicht benutzen.", "El navegador no permite a esta página usar el micrófono."],
  "There is no microphone.": ["Es gibt kein Mikrofon.", "No hay micrófono."],
});

await addStyles("files.css");

/** What is recorded, first what most servers hear, and how its file ends. */
const TYPES = [["audio/ogg;codecs=opus", "ogg"], ["audio/webm;codecs=opus", "webm"], ["audio/mp4", "m4a"]];
/** A recording ends by itself after this (ms). */
const LONGEST = 600_000;

/**
 * Records in `place`. `onSend(file, seconds)` gets the note, `onEnd()` is called when there is nothing to record or to send any more, and
 * `refuse(words)` when nothing can be recorded.
 */
export async function record(place, { onSend, onEnd, refuse }) {
  let stream;
  try {
    stream = await navigator.mediaDevices.getUserMedia({ audio: true });
  } catch (error) {
    const isDenied = error.name === "NotAllowedError" || error.name === "SecurityError";
    refuse(isDenied ? inWords("The browser does not let this page use the microphone.") : inWords("There is no microphone."));
    return onEnd();
  }
  const [mimeType, ending] = TYPES.find(([type]) => MediaRecorder.isTypeSupported(type)) ?? [];
  const recorder = new MediaRecorder(stream, mimeType ? { mimeType } : {});
  const parts = [];
  const began = Date.now();
  let isDiscarded = false;
  let seconds = 0;
  const close = () => {
    place.hidden = true;
    place.replaceChildren();
    onEnd();
  };
  const button = (words, act, className = "small-button") => {
    const one = make("button", { type: "button", className }, words);
    one.addEventListener("click", act);
    return one;
  };
  const length = make("span", { attributes: { "aria-hidden": "true" } }, "0:00");
  const timer = setInterval(() => {
    seconds = Math.round((Date.now() - began) / 1_000);
    length.textContent = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
    if (Date.now() - began > LONGEST) recorder.stop();
  }, 250);
  recorder.ondataavailable = ({ data }) => data.size > 0 && parts.push(data);
  recorder.onstop = () => {
    clearInterval(timer);
    for (const track of stream.getTracks()) track.stop();
    if (isDiscarded || parts.length === 0) return close();
    const type = (recorder.mimeType || mimeType || "audio/webm").split(";")[0];
    const file = new File(parts, `${inWords("Voice note")}.${ending ?? "webm"}`, { type });
    const url = URL.createObjectURL(file);
    const leave = (act) => () => {
      URL.revokeObjectURL(url);
      close();
      act?.();
    };
    const send = button(inWords("Send voice note"), leave(() => onSend(file, Math.max(1, seconds))));
    place.replaceChildren(
      make("audio", { src: url, controls: true, attributes: { "aria-label": inWords("Voice note") } }),
      button(inWords("Discard"), leave()),
      send,
    );
    send.focus();
  };
  recorder.start();
  const discard = () => {
    isDiscarded = true;
    recorder.stop();
  };
  const stop = button(inWords("Stop recording"), () => recorder.stop());
  place.replaceChildren(make("p", { attributes: { role: "status" } }, inWords("Recording…"), " ", length), button(inWords("Discard"), discard), stop);
  place.hidden = false;
  stop.focus();
}
