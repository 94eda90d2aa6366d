// Files cannot be sent here yet: one that is dropped must not open in place of the page, and the person is told.

/** Keeps the browser from opening what is dropped, and calls `refuse()` for files that are dragged, dropped or pasted. */
export function refuseFiles(refuse) {
  for (const type of ["dragenter", "dragover", "drop"]) {
    addEventListener(type, (event) => {
      const isText = !hasFiles(event.dataTransfer) && event.target.matches?.("textarea, input");
      if (isText) return;
      event.preventDefault();
      if (event.dataTransfer) event.dataTransfer.dropEffect = "none";
      if (hasFiles(event.dataTransfer)) refuse();
    });
  }
  addEventListener("paste", (event) => {
    // What is copied from a document is a picture too, and has its words.
    if (!hasFiles(event.clipboardData) || event.clipboardData.getData("text/plain")) return;
    event.preventDefault();
    refuse();
  });
}

function hasFiles(transfer) {
  return [...(transfer?.types ?? [])].includes("Files");
}
