// Files that the person attaches: chosen, dropped, pasted or taken with the camera. They stand over the input until they are sent.

const $ = (id) => document.getElementById(id);

export class Attachments {
  /** How many files a message may have, and how many bytes these may have together. */
  limits = { count: Infinity, bytes: Infinity };
  #files = [];
  #place = "";
  /** The files that are attached in other conversations. */
  #elsewhere = new Map();
  #onChange;
  #notice;

  /** `onChange()` is called when files were added or removed, `refuse(words)` when some cannot be sent. */
  constructor({ onChange, refuse }) {
    this.#onChange = onChange;
    this.#notice = refuse;
    $("attach").addEventListener("click", () => $("attach-input").click());
    $("camera").addEventListener("click", () => $("camera-input").click());
    for (const input of [$("attach-input"), $("camera-input")]) {
      input.addEventListener("change", () => {
        this.add([...input.files]);
        // The same file can be chosen again.
        input.value = "";
      });
    }
    $("attached").addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (button) this.#remove([...$("attached").children].indexOf(button.closest("li")));
    });
    this.#takeDropped();
    addEventListener("paste", (event) => {
      const files = filesOf(event.clipboardData);
      // What is copied from a document is a picture too, and has its words.
      if (files.length === 0 || event.clipboardData.getData("text/plain") || isDialogOpen()) return;
      event.preventDefault();
      this.add(files);
    });
  }

  get isEmpty() {
    return this.#files.length === 0;
  }

  /** Shows what is attached in a conversation. */
  open(place) {
    if (this.#files.length > 0) this.#elsewhere.set(this.#place, this.#files);
    this.#place = place;
    this.#files = this.#elsewhere.get(place) ?? [];
    this.#elsewhere.delete(place);
    this.#show();
  }

  /** Adds files, as far as the limits allow it. */
  add(files) {
    const { count, bytes } = this.limits;
    let used = this.#files.reduce((sum, file) => sum + file.size, 0);
    for (const file of files) {
      if (this.#files.length >= count) {
        this.#refuse("tooMany", count);
        break;
      }
      if (used + file.size > bytes) {
        this.#refuse("tooLarge", file.name, bytes);
        continue;
      }
      used += file.size;
      this.#files.push(file);
    }
    this.#show();
  }

  /** Takes the files away. */
  take() {
    const files = this.#files;
    this.#files = [];
    this.#show();
    return files;
  }

  async #remove(index) {
    this.#files.splice(index, 1);
    await this.#show();
    const buttons = $("attached").querySelectorAll("button");
    (buttons[Math.min(index, buttons.length - 1)] ?? $("text")).focus();
  }

  /** Shows what is attached. The script for that is loaded when something is. */
  async #show() {
    this.#onChange();
    if (this.isEmpty && $("attached").hidden) return;
    const loaded = await import("./attached.js").catch(() => null);
    loaded?.show(this.#files);
  }

  /** Says why not all is attached. */
  async #refuse(problem, ...about) {
    const loaded = await import("./attached.js").catch(() => null);
    if (loaded) this.#notice(loaded[problem](...about));
  }

  /** A file that is dropped must not open in place of the page, wherever it is dropped. */
  #takeDropped() {
    for (const type of ["dragenter", "dragover", "dragleave", "drop"]) {
      addEventListener(type, (event) => {
        const hasFiles = [...(event.dataTransfer?.types ?? [])].includes("Files");
        const isOver = hasFiles && !isDialogOpen() && (type === "dragenter" || type === "dragover");
        document.body.classList.toggle("is-dropping", isOver);
        if (type === "dragleave" || (!hasFiles && event.target.matches?.("textarea, input"))) return;
        event.preventDefault();
        if (event.dataTransfer) event.dataTransfer.dropEffect = isOver ? "copy" : "none";
        if (type === "drop" && hasFiles && !isDialogOpen()) this.add(filesOf(event.dataTransfer));
      });
    }
  }
}

const isDialogOpen = () => document.querySelector("dialog[open]:not(.drawer)") !== null;

/** The files of what is dropped or pasted: no folders. */
function filesOf(transfer) {
  const items = [...(transfer?.items ?? [])].filter((item) => item.kind === "file" && !item.webkitGetAsEntry?.()?.isDirectory);
  return items.map((item) => item.getAsFile()).filter(Boolean);
}
