// Times as text, in the way of the person's browser.

import { make } from "./dom.js";
import { locale, inWords } from "./words.js";

const CLOCK = new Intl.DateTimeFormat(locale, { hour: "2-digit", minute: "2-digit" });
const FULL = new Intl.DateTimeFormat(locale, { dateStyle: "full", timeStyle: "short" });
const DAY = new Intl.DateTimeFormat(locale, { weekday: "long", day: "numeric", month: "long" });
const DAY_AND_YEAR = new Intl.DateTimeFormat(locale, { dateStyle: "long" });
const DAY_AND_CLOCK = new Intl.DateTimeFormat(locale, { weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });

const SHORT_DAY = new Intl.DateTimeFormat(locale, { day: "numeric", month: "short" });
const SHORT_DAY_AND_YEAR = new Intl.DateTimeFormat(locale, { day: "numeric", month: "short", year: "numeric" });

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY_LONG = 24 * HOUR;

/** By how much (ms) the server's clock is ahead of this device's. */
let ahead = 0;

/** Notes the server's time, so that no wait is counted with two clocks. */
export function setServerTime(at) {
  ahead = Date.parse(at) - Date.now();
}

/** The server's time now, in ms. */
export function serverTime() {
  return Date.now() + ahead;
}

/** A `<time>` that shows the time of day. `what` is said before it to those who do not see where it stands. */
export function time(at, what) {
  const label = make("span", { className: "unseen" }, `${what} `);
  return make("time", { dateTime: at, title: FULL.format(new Date(at)) }, label, CLOCK.format(new Date(at)));
}

/** The day of `at` as text. */
export function dayOf(at) {
  const day = new Date(at);
  const today = new Date();
  const yesterday = new Date(today.getFullYear(), today.getMonth(), today.getDate() - 1);
  if (day.toDateString() === today.toDateString()) return inWords("Today");
  if (day.toDateString() === yesterday.toDateString()) return inWords("Yesterday");
  return (day.getFullYear() === today.getFullYear() ? DAY : DAY_AND_YEAR).format(day);
}

/** A `<time>` for a list: the time of day, or the day unless that is today. */
export function shortTime(at) {
  const [day, today] = [new Date(at), new Date()];
  const isThisYear = day.getFullYear() === today.getFullYear();
  const format = day.toDateString() === today.toDateString() ? CLOCK : isThisYear ? SHORT_DAY : SHORT_DAY_AND_YEAR;
  return make("time", { dateTime: day.toISOString(), title: FULL.format(day) }, format.format(day));
}

/** How long it has been since `at`: `40 s`, `3 min`, `1 h 5 min`, `2 d 4 h`. */
export function lengthSince(at) {
  const seconds = Math.max(0, Math.floor((serverTime() - Date.parse(at)) / 1_000));
  const [hours, minutes] = [Math.floor(seconds / HOUR), Math.floor((seconds % HOUR) / MINUTE)];
  if (seconds < MINUTE) return `${seconds} s`;
  if (seconds < HOUR) return `${minutes} min`;
  if (seconds < DAY_LONG) return minutes ? `${hours} h ${minutes} min` : `${hours} h`;
  return hours % 24 ? `${Math.floor(hours / 24)} d ${hours % 24} h` : `${hours / 24} d`;
}

/** A promised time: the time of day, with its day unless that is today. */
export function promised(at) {
  const day = new Date(at);
  return (day.toDateString() === new Date().toDateString() ? CLOCK : DAY_AND_CLOCK).format(day);
}

/** Whether `at` has passed. */
export function isPast(at) {
  return Date.parse(at) <= serverTime();
}
