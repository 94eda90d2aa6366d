// What an agent does and thinks for an answer, folded. Loaded with the first turn that has it.

import { addStyles, make } from "./dom.js";
import { addWords, inWords } from "./words.js";

addWords({
  "1 step": ["1 Schritt", "1 paso"],
  "{count} steps": ["{count} Schritte", "{count} pasos"],
  "Thinks …": ["Denkt nach …", "Piensa…"],
  "Thought": ["Gedanke", "Pensamiento"],
  "failed": ["fehlgeschlagen", "falló"],
});

addStyles("work.css");

/** Shows in `item`, under the name of who speaks, the steps for its answer. What the person has opened stays open. */
export function showWork(item, steps, isDone) {
  const speaker = item.querySelector(".answer > .speaker");
  if (!speaker) return;
  item.work ??= make("details", { className: "work" }, make("summary", { data: { work: "" } }), make("ol", { attributes: { role: "list" } }));
  if (speaker.nextElementSibling !== item.work) speaker.after(item.work);
  const [summary, list] = item.work.children;
  const title = isDone ? counted(steps.length) : current(steps);
  if (summary.textContent !== title) summary.textContent = title;
  summary.classList.toggle("works", !isDone);
  steps.forEach((told, index) => {
    // The end of the last one may not have been told before the answer came.
    const step = isDone && told.state === "working" ? { ...told, state: "done" } : told;
    const key = JSON.stringify(step);
    const there = list.children[index];
    if (there?.key === key) return;
    const shown = Object.assign(stepOf(step), { key });
    if (there) there.replaceWith(shown);
    else list.append(shown);
  });
  while (list.children.length > steps.length) list.lastChild.remove();
}

/** What goes on now. */
function current(steps) {
  const last = steps.findLast(({ state }) => state === "working") ?? steps.at(-1);
  return last.state ? last.text : inWords("Thinks …");
}

function counted(count) {
  return count === 1 ? inWords("1 step") : inWords("{count} steps", { count });
}

function stepOf({ text, state }) {
  if (!state) return make("li", { className: "thought", dir: "auto" }, make("span", { className: "unseen" }, `${inWords("Thought")}: `), text.trim());
  return make("li", { dir: "auto", data: { state } }, text, state === "failed" && make("span", { className: "failed" }, ` · ${inWords("failed")}`));
}
