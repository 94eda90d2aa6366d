// Small charts of the last 24 hours. Each has a sentence that says the same.

import { make } from "./dom.js";
import { CAUSES, minute, number, plural, span } from "./format.js";

const QUARTER = 15 * 60;
const HEIGHT = 140;

/** A colour of the page as a canvas understands it. */
function color(name) {
  const probe = document.getElementById("announcer");
  probe.style.outlineColor = `var(${name})`;
  return getComputedStyle(probe).outlineColor;
}

/** The charts; `put(overview)` shows what is new in them. */
export function charts(view) {
  const all = [turnsChart, waitsChart, fallbacksChart].map((describe) => chart(view, describe));
  const element = make("div", { className: "charts", data: { own: "" } }, all.map(({ element }) => element));
  return { element, put: (overview) => all.forEach(({ put }) => put(overview)) };
}

function turnsChart({ day, intervals }) {
  const rows = (interval) => [interval?.turns ?? 0];
  const top = highest(intervals, ({ turns }) => turns);
  const words = day.turns ? `${plural(day.turns, "turn")} in 24 hours. The busiest quarter of an hour began at ${minute(top.at)}, with ${plural(top.turns, "turn")}.` : "There were no turns.";
  return { title: "Turns", words, rows, series: [{ color: "--accent", isBar: true }], read: ([turns]) => plural(turns, "turn") };
}

/** The interval with the largest value. */
const highest = (intervals, value) => intervals.reduce((top, one) => (!top || (value(one) ?? 0) > (value(top) ?? 0) ? one : top), null);

function waitsChart({ day, intervals }) {
  const rows = (interval) => [seconds(interval?.p50_ms), seconds(interval?.p95_ms)];
  const top = highest(intervals, ({ p95_ms: p95 }) => p95);
  const words = day.signals
    ? `Half of the people waited ${span(day.p50_ms)} at most, 95 in 100 waited ${span(day.p95_ms)} at most. It took longest after ${minute(top.at)}: ${span(top.p95_ms)}.`
    : "Nobody waited for a signal.";
  const read = ([p50, p95]) => (p50 === null ? "no signals" : `half ${span(p50 * 1000)}, 95 % ${span(p95 * 1000)}`);
  const unit = (value) => (value >= 3_600 ? `${tenths(value / 3_600)} h` : value >= 60 ? `${tenths(value / 60)} min` : `${value} s`);
  return { title: "Time to the first signal", words, rows, series: [{ color: "--accent" }, { color: "--second" }], read, unit };
}

const tenths = (value) => Number(value.toFixed(1));

const seconds = (ms) => (ms === null || ms === undefined ? null : ms / 1000);

const COLORS = { silent: "--accent", error: "--danger", unreachable: "--danger", timeout: "--warning", refused: "--second", unreadable: "--muted", unheard: "--muted", budget: "--second" };

function fallbacksChart({ day }) {
  const causes = Object.keys(COLORS).filter((cause) => day.fallbacks[cause]);
  const shown = causes.length ? causes : ["silent"];
  // Bars stand on each other: each is drawn from the ground, the highest first.
  const rows = (interval) => shown.map((_, index) => shown.slice(index).reduce((sum, cause) => sum + (interval?.fallbacks?.[cause] ?? 0), 0));
  const total = causes.reduce((sum, cause) => sum + day.fallbacks[cause], 0);
  const words = total ? `The ladder answered ${plural(total, "turn")}:` : "The ladder answered no turn.";
  const series = shown.map((cause) => ({ color: COLORS[cause], isBar: true }));
  return { title: "Fallbacks", words, rows, series, read: ([sum]) => plural(sum, "fallback"), legend: causes.map((cause) => [`${CAUSES[cause]}: ${number(day.fallbacks[cause])}`, COLORS[cause]]) };
}

function chart(view, describe) {
  const title = make("h3");
  const words = make("figcaption");
  const box = make("div", { className: "plot", attributes: { "aria-hidden": "true" } });
  const value = make("span", { className: "value", attributes: { "aria-hidden": "true" } });
  const legend = make("ul", { className: "legend" });
  const element = make("figure", { className: "chart" }, make("div", { className: "chart-head" }, title, value), box, words, legend);
  let plot = null;
  let shape = "";
  let current = null;

  const resize = new ResizeObserver(() => plot?.setSize({ width: box.clientWidth, height: HEIGHT }));
  resize.observe(box);
  addEventListener("theme", () => plot?.redraw(), { signal: view.signal });
  view.signal.addEventListener("abort", () => {
    resize.disconnect();
    plot?.destroy();
  });

  function put(overview) {
    current = describe(overview);
    title.textContent = current.title;
    words.textContent = current.words;
    legend.replaceChildren(...(current.legend ?? []).map(([word, name]) => make("li", { data: { color: name.slice(2) } }, word)));
    const data = columns(overview, current);
    const wanted = JSON.stringify(current.series);
    if (plot && shape === wanted) return plot.setData(data);
    plot?.destroy();
    shape = wanted;
    plot = new globalThis.uPlot(options(box.clientWidth || 300, current, (index) => {
      const slot = index === null || index === undefined ? null : plot.data[0][index];
      value.textContent = slot === null ? "" : `${minute(slot * 1000)}: ${current.read(plot.data.slice(1).map((column) => column[index]))}`;
    }), data, box);
  }

  return { element, put };
}

/** One value for each quarter of an hour, also where nothing happened. */
function columns({ at, intervals }, { rows }) {
  const last = Math.floor(Date.parse(at) / 1000 / QUARTER) * QUARTER;
  const slots = Array.from({ length: 96 }, (_, index) => last - (95 - index) * QUARTER);
  const known = new Map(intervals.map((interval) => [Date.parse(interval.at) / 1000, interval]));
  const found = slots.map((slot) => rows(known.get(slot)));
  return [slots, ...found[0].map((_, index) => found.map((row) => row[index]))];
}

const FONT = "12px system-ui, sans-serif";

/** The room that the labels of an axis need. */
function room(values) {
  const context = document.createElement("canvas").getContext("2d");
  context.font = FONT;
  const widths = (values ?? []).map((value) => context.measureText(value).width);
  return Math.ceil(Math.max(32, ...widths)) + 12;
}

/** The steps of an axis of seconds: whole minutes and hours. */
const STEPS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200, 18_000, 36_000, 86_400];

function options(width, { series, unit }, onCursor) {
  const { paths } = globalThis.uPlot;
  const axis = { stroke: () => color("--muted"), font: FONT, grid: { stroke: () => color("--line"), width: 1 }, ticks: { show: false } };
  return {
    width,
    height: HEIGHT,
    padding: [8, 18, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
    scales: { x: { time: true }, y: { range: (_, __, max) => [0, Math.max(unit ? 0.1 : 4, max * 1.1)] } },
    axes: [
      { ...axis, grid: { show: false }, space: 60, size: 28, values: (_, splits) => splits.map((split) => minute(split * 1000)) },
      { ...axis, space: 36, size: (_, values) => room(values), ...(unit && { incrs: STEPS }), values: (_, splits) => splits.map((split) => (unit ? unit(Number(split.toFixed(2))) : Number.isInteger(split) ? number(split) : "")) },
    ],
    series: [
      {},
      ...series.map(({ color: name, isBar }) => ({
        stroke: () => color(name),
        width: isBar ? 0 : 1.75,
        fill: isBar ? () => color(name) : undefined,
        paths: isBar ? paths.bars({ size: [0.8, 12] }) : paths.linear(),
        points: isBar ? { show: false } : { size: 4, fill: () => color(name) },
        spanGaps: !isBar,
      })),
    ],
    hooks: { setCursor: [(plot) => onCursor(plot.cursor.left < 0 ? null : plot.cursor.idx)] },
  };
}
