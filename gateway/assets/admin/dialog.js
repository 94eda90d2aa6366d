// Dialogs: they ask before something is changed, and say what came of it.

import { post } from "./api.js";
import { announce, make, show } from "./dom.js";

let count = 0;

/** `field({name, label, kind?, options?, value?, hint?, isWide?, …})`: a label with its control, which has the other properties. */
export function field({ name, label, kind = "text", options, value = "", hint, isWide = false, ...properties }) {
  const id = `field-${(count += 1)}`;
  const hintId = hint ? `${id}-hint` : null;
  const shared = { id, name, attributes: { "aria-describedby": hintId }, ...properties };
  const control = controls[kind]?.({ label, value, options, shared }) ?? make("input", { type: kind, value, autocomplete: "off", ...shared });
  return make("div", { className: isWide ? "field wide" : "field" }, kind === "choices" ? make("p", {}, label) : make("label", { htmlFor: id }, label), control, hint && make("p", { id: hintId, className: "hint" }, hint));
}

const controls = {
  textarea: ({ value, shared }) => make("textarea", { rows: 4, value, ...shared }),
  select: ({ value, options, shared }) =>
    make("select", shared, options.map(([key, word]) => make("option", { value: key, defaultSelected: key === value }, word))),
  /** Several of `options`; none means all. */
  choices: ({ label, options, shared: { name } }) =>
    make("div", { className: "choices", attributes: { role: "group", "aria-label": label } }, options.map(([value, word]) => make("label", { className: "check" }, make("input", { type: "checkbox", name, value }), word))),
};

/** The values of a form: text is trimmed, and empty text is left out; checkboxes are a list. */
function values(form) {
  const found = {};
  for (const control of form.elements) {
    if (!control.name || !control.value.trim()) continue;
    if (control.type !== "checkbox") found[control.name] = control.value.trim();
    else if (control.checked) (found[control.name] ??= []).push(control.value);
  }
  return found;
}

/**
 * Asks, and does it: `perform(values)` runs when the person agrees, and a problem is shown in the dialog. Gives what
 * `perform` gives, or null if the person does not agree. Without `action` it only shows `content`.
 */
export function ask({ title, text, content, fields = [], action, isDanger = false, perform }) {
  return new Promise((resolve) => {
    const id = `dialog-${(count += 1)}`;
    const note = make("p", { className: "note", hidden: true, attributes: { role: "alert" } });
    const submit = action && make("button", { type: "submit", className: isDanger ? "button danger" : "button primary" }, action);
    const cancel = make("button", { type: "button", className: "button", onclick: () => dialog.close() }, action ? "Cancel" : "Close");
    const form = make("form", {}, make("h2", { id }, title), text && make("p", {}, text), content, fields.map(field), note, make("div", { className: "buttons" }, cancel, submit));
    const dialog = make("dialog", { className: "dialog", attributes: { "aria-labelledby": id } }, form);
    let result = null;
    form.onsubmit = async (event) => {
      event.preventDefault();
      submit.disabled = true;
      note.hidden = true;
      try {
        result = (await perform(values(form))) ?? true;
        dialog.close();
      } catch (problem) {
        show(note, problem.message);
        note.hidden = false;
        submit.disabled = false;
        if (problem.isSignedOut) dialog.close();
      }
    };
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(result);
    });
    document.body.append(dialog);
    dialog.showModal();
    // A dangerous action is not one Enter away.
    (form.querySelector("input, textarea, select") ?? (isDanger ? cancel : submit) ?? cancel).focus();
  });
}

export const REASON = { name: "reason", label: "Why? (for the audit)", maxLength: 1000 };

/** Asks, posts what was entered to `path`, changed by `entered`, and announces `done`. Gives null if the person does not agree. */
export async function operate({ path, body = {}, done, entered: change = (entered) => entered, ...question }) {
  const result = await ask({ fields: [REASON], perform: (entered) => post(path, { ...body, ...change(entered) }), ...question });
  if (result !== null) announce(done);
  return result;
}
