// The socket: opens it, sends hello, keeps it alive, and opens it again when it closes.

const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 15_000;
const OPENED_WITHIN = 10_000;
/** The server pings every 25 s: two pings and some more. */
const SILENT_FOR = 60_000;
const PONG_WITHIN = 5_000;

export class Connection {
  #url;
  #hello;
  #onFrame;
  #onState;
  #socket = null;
  #state = "connecting";
  #failures = 0;
  #heardAt = 0;
  #timers = new Map();

  /**
   * `hello()` returns the first frame, `onFrame(frame)` gets each frame of the server except pings and pongs, and
   * `onState(state)` gets `connecting`, `online`, `waiting` (for the next try), `offline` (the device has no network)
   * or `closed` (by `close()`).
   */
  constructor({ url, hello, onFrame, onState }) {
    this.#url = url;
    this.#hello = hello;
    this.#onFrame = onFrame;
    this.#onState = onState;
    addEventListener("online", () => this.tryNow());
    addEventListener("offline", () => this.#drop());
    // A page in the back/forward cache holds no socket.
    addEventListener("pagehide", () => this.#rest());
    addEventListener("pageshow", (event) => event.persisted && this.tryNow());
    document.addEventListener("visibilitychange", () => !document.hidden && this.#check());
    setInterval(() => this.#watch(), 10_000);
  }

  get isOnline() {
    return this.#state === "online";
  }

  open() {
    // A socket that is not open yet will send the hello of the conversation that is then open.
    if (this.#socket?.readyState === WebSocket.CONNECTING) return;
    this.#forget();
    this.#set("connecting");
    const socket = new WebSocket(this.#url);
    this.#socket = socket;
    this.#after("open", OPENED_WITHIN, () => this.#drop());
    socket.onopen = () => socket.send(JSON.stringify(this.#hello()));
    socket.onmessage = (event) => this.#hear(socket, event.data);
    socket.onclose = () => this.#drop();
  }

  /** Closes the socket for good. */
  close() {
    this.#forget(true);
    this.#set("closed");
  }

  /** Returns whether the frame was given to the socket, not whether it arrived. */
  send(frame) {
    if (!this.isOnline || this.#socket.readyState !== WebSocket.OPEN) return false;
    this.#socket.send(JSON.stringify(frame));
    return true;
  }

  tryNow() {
    if (this.#state === "waiting" || this.#state === "offline") {
      this.#failures = 0;
      this.open();
    } else {
      this.#check();
    }
  }

  #hear(socket, text) {
    if (socket !== this.#socket) return;
    this.#heardAt = Date.now();
    this.#cancel("pong");
    const frame = JSON.parse(text);
    if (frame.type === "ping") return void this.send({ type: "pong" });
    if (frame.type === "pong") return;
    if (frame.type === "welcome") {
      this.#cancel("open");
      this.#failures = 0;
      this.#set("online");
    }
    this.#onFrame(frame);
  }

  /** Checks the socket: after sleep, a device does not notice that it is gone. */
  #check() {
    if (this.#state === "waiting" || this.#state === "offline") return this.open();
    if (this.send({ type: "ping" })) this.#after("pong", PONG_WITHIN, () => this.#drop());
  }

  #watch() {
    if (this.isOnline && Date.now() - this.#heardAt > SILENT_FOR) this.#drop();
  }

  #drop() {
    if (this.#state === "closed") return;
    this.#forget();
    const pause = Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** this.#failures) * (0.5 + Math.random());
    this.#failures += 1;
    // Retry even if the device reports no network: a gateway on this machine can still be reached.
    this.#set(navigator.onLine ? "waiting" : "offline");
    this.#after("retry", pause, () => this.open());
  }

  /** Closes the socket until the page is shown again. */
  #rest() {
    if (this.#state === "closed") return;
    this.#forget();
    this.#set("waiting");
  }

  /** `waits`: a socket that is not open yet is closed once it is. Browsers complain otherwise. */
  #forget(waits = false) {
    for (const name of [...this.#timers.keys()]) this.#cancel(name);
    const socket = this.#socket;
    this.#socket = null;
    if (!socket) return;
    socket.onopen = socket.onmessage = socket.onclose = null;
    if (waits && socket.readyState === WebSocket.CONNECTING) socket.onopen = () => socket.close();
    else socket.close();
  }

  #set(state) {
    this.#state = state;
    this.#onState(state);
  }

  #after(name, pause, act) {
    this.#cancel(name);
    this.#timers.set(name, setTimeout(act, pause));
  }

  #cancel(name) {
    clearTimeout(this.#timers.get(name));
    this.#timers.delete(name);
  }
}
