// The HTTP API, as its own OpenAPI document describes it.

import { get } from "./api.js";
import { field } from "./dialog.js";
import { announce, facts, make, prose, show, table } from "./dom.js";
import { capital, plural } from "./format.js";
import { empty, filters, heading, part } from "./parts.js";

const METHODS = ["get", "post", "put", "patch", "delete"];

export function docs(view) {
  const none = empty("No operation matches.");
  const all = part(view, {
    title: "Operations",
    className: "bare",
    load: () => get("openapi.json", {}, view.signal),
    render(api) {
      const all = operations(api);
      const title = (tag) => api.tags?.find(({ name }) => name === tag)?.description ?? capital(tag);
      const groups = [...new Set(all.map(({ tag }) => tag))].map((tag) => group(title(tag), all.filter((one) => one.tag === tag)));
      requestAnimationFrame(() => {
        filter();
        named()?.scrollIntoView();
      });
      return [make("p", { className: "quiet" }, `${api.info.title} ${api.info.version}. `, make("a", { attributes: { href: "/admin/api/openapi.json" } }, "The same for programs"), ` (OpenAPI ${api.openapi})`), groups, none];
    },
  });
  const group = (title, all) => make("section", { className: "part" }, make("h2", {}, title), all.map((one) => operation(view, one)));
  const filter = () => {
    const words = (view.params.get("text") ?? "").toLowerCase().split(/\s+/);
    let count = 0;
    for (const section of view.main.querySelectorAll(".part .part")) {
      for (const one of section.querySelectorAll(".operation")) {
        one.hidden = !words.every((word) => one.dataset.words.includes(word));
        count += one.hidden ? 0 : 1;
      }
      section.hidden = !section.querySelector(".operation:not([hidden])");
    }
    none.hidden = count > 0;
    return count;
  };
  const changed = () => announce(plural(filter(), "operation"), { isSeen: false });
  const fields = [{ name: "text", label: "Search", kind: "search", placeholder: "A word, or a path", isWide: true }];
  show(view.main, heading("The HTTP API"), filters(view, fields, changed), all.element);
}

/** The operations, each with what it shares with the others. */
function operations({ paths, components }) {
  return Object.entries(paths).flatMap(([path, item]) =>
    METHODS.filter((method) => item[method]).map((method) => {
      const { tags: [tag = "other"] = [], parameters = [], ...rest } = item[method];
      return { ...rest, tag, method, path, components, parameters: [...(item.parameters ?? []), ...parameters] };
    }),
  );
}

/** What is opened is built when it is opened first: a shape may contain itself. */
function opened(properties, summary, build) {
  const body = make("div");
  const details = make("details", properties, make("summary", {}, summary), body);
  const fill = () => body.firstChild || body.append(make("div", {}, build()));
  details.addEventListener("toggle", () => details.open && fill());
  if (details.open) fill();
  return details;
}

const anchor = ({ operationId }) => `operation-${operationId}`;

/** The operation that the address names. */
const named = () => document.getElementById(location.hash.slice(1));

function operation(view, one) {
  const { method, path, summary = "", description = "", operationId } = one;
  const id = anchor(one);
  const words = [method, path, operationId, summary, description].join(" ").toLowerCase();
  const properties = { id, className: "operation", open: location.hash === `#${id}`, data: { words } };
  const title = [make("code", {}, make("strong", {}, method.toUpperCase()), ` ${path}`), " ", make("span", {}, prose(summary))];
  const details = opened(properties, title, () => [
    paragraphs(description),
    needs(one),
    parameters(one),
    body(one),
    make("h3", {}, "Answers"),
    facts(Object.entries(one.responses).map(([status, answer]) => [make("code", {}, status), prose(answer.description), contents(answer, one)])),
    isTryable(one) && opened({}, "Try it", () => attempt(view, one)),
  ]);
  details.addEventListener("toggle", () => details.open && history.replaceState(null, "", `${location.pathname}${location.search}#${id}`));
  return details;
}

const paragraphs = (text) => text.split(/\n\s*\n/).map((one) => one.trim() && make("p", {}, prose(one)));

function needs({ security, components }) {
  const name = (scheme) => components.securitySchemes[scheme]?.description ?? scheme;
  const ways = (security ?? []).map((way) => Object.keys(way).map(name).join(" and ") || "nothing");
  return ways.length > 0 && facts([["Needs", prose(ways.join("; or: "))]]);
}

const PLACES = { path: "in the path", query: "in the query", header: "a header" };

function parameters({ parameters: all, operationId, components }) {
  if (!all.length) return null;
  const columns = [
    { name: "Parameter", cell: ({ name }) => make("code", {}, name) },
    { name: "Where", cell: ({ in: place, required }) => `${PLACES[place] ?? place}${required ? ", needed" : ""}` },
    { name: "Value", cell: ({ schema, example }) => [shape(schema, components), example !== undefined && `, for example ${example}`] },
    { name: "Meaning", className: "main-cell", cell: ({ description }) => prose(description ?? "–") },
  ];
  return [make("h3", {}, "Parameters"), table(`Parameters of ${operationId}`, columns, all, ({ name }) => name)];
}

function body({ requestBody: wanted, components }) {
  if (!wanted) return null;
  return [make("h3", {}, wanted.required ? "Body" : "Body, if any"), paragraphs(wanted.description ?? ""), contents(wanted, { components })];
}

/** The shapes of a body or an answer, by media type. */
function contents({ content = {}, headers = {} }, { components }) {
  return [
    facts(Object.entries(headers).map(([name, { description, schema }]) => [name, shape(schema, components), description && `: ${description}`])),
    Object.entries(content).map(([type, { schema }]) => make("div", {}, make("code", {}, type), " ", schema && shape(schema, components))),
  ];
}

// --- Shapes ---

const NAMES = { string: "text", integer: "whole number", number: "number", boolean: "`true` or `false`", object: "object", array: "list", null: "null" };

/** What a value may be: in words, or as a shape that opens in place. `before` and `after` are words around it. */
function shape(schema, components, before = "", after = "") {
  if (schema === true) return `${before}anything${after}`;
  const nested = (one, ...around) => shape(one, components, ...around);
  if (schema.$ref) return reference(schema.$ref.split("/").pop(), components, before, after);
  const choices = schema.oneOf ?? schema.anyOf;
  if (choices) {
    const some = choices.filter(({ type }) => type !== "null");
    const end = some.length < choices.length ? `, or null${after}` : after;
    return some.length === 1 ? nested(some[0], before, end) : [`${before}one of these${end}:`, some.map((one) => make("div", {}, nested(one)))];
  }
  if (schema.allOf) return schema.allOf.map((one, index) => make("div", {}, nested(one, index ? "and " : before)));
  const types = [schema.type ?? []].flat();
  const end = types.includes("null") ? `, or null${after}` : after;
  if (schema.items) return nested(schema.items, `${before}list of: `, end);
  if (schema.properties) return [before && `${before}an object${end}`, properties(schema, components)];
  if (typeof schema.additionalProperties === "object") return nested(schema.additionalProperties, `${before}object, each value: `, end);
  const name = types.filter((type) => type !== "null").map((type) => NAMES[type] ?? type).join(" or ");
  const kind = schema.enum ? schema.enum.map((value) => `\`${value}\``).join(", ") : name || "anything";
  return prose(before + kind + limits(schema) + end);
}

function reference(name, components, before, after) {
  return opened({ className: "shape" }, [before, make("code", {}, name), after], () => {
    const schema = components.schemas[name] ?? true;
    return [paragraphs(schema.description ?? ""), shape(schema, components)];
  });
}

function properties({ properties: all, required = [] }, components) {
  const entry = ([name, schema]) => {
    const about = schema.description ?? (schema.oneOf ?? []).find(({ description }) => description)?.description;
    const optional = required.includes(name) ? "" : ", may be missing";
    const example = schema.example === undefined ? "" : `, for example ${schema.example}`;
    return [make("code", {}, name), shape(schema, components, "", optional + example), about && make("p", { className: "quiet" }, prose(about))];
  };
  return facts(Object.entries(all).map(entry));
}

const LIMITS = {
  format: (value) => (/^u?int\d+$|^float$|^double$/.test(value) ? "" : ` (${value})`),
  minimum: (value) => `, at least ${value}`,
  maximum: (value) => `, at most ${value}`,
  minLength: (value) => `, at least ${plural(value, "character")}`,
  maxLength: (value) => `, at most ${plural(value, "character")}`,
  maxItems: (value) => `, at most ${plural(value, "item")}`,
  pattern: (value) => `, like \`${value}\``,
  default: (value) => `, \`${value}\` by default`,
};

const limits = (schema) => Object.entries(LIMITS).map(([name, words]) => (schema[name] === undefined ? "" : words(schema[name]))).join("");

// --- Trying ---

const OURS = "/admin/api/";

/** What only reads, needs no id, and ends. */
const isTryable = ({ method, path, responses }) => method === "get" && path.startsWith(OURS) && !path.includes("{") && Boolean(responses[200]?.content?.["application/json"]);

function attempt(view, { path, parameters: all, operationId }) {
  const answer = make("pre", { hidden: true, tabIndex: 0, attributes: { role: "region", "aria-label": `Answer of ${operationId}` } });
  const control = ({ name, schema }) => {
    const values = schema.enum ?? ([schema.type].flat().includes("boolean") && ["true", "false"]);
    return field({ name, label: name, ...(values && { kind: "select", options: [["", "–"], ...values.map((value) => [value, value])] }) });
  };
  const send = make("button", { type: "submit", className: "button primary" }, "Send");
  const form = make("form", { className: "filters" }, all.filter((one) => one.in === "query").map(control), send);
  form.onsubmit = async (event) => {
    event.preventDefault();
    send.disabled = true;
    try {
      const found = await get(path.slice(OURS.length), Object.fromEntries(new FormData(form)), view.signal);
      show(answer, JSON.stringify(found, null, 2));
      announce("The answer is here.", { isSeen: false });
    } catch (problem) {
      show(answer, problem.message);
      announce(problem.message, { isSeen: false });
    }
    answer.hidden = false;
    send.disabled = false;
  };
  return [form, answer];
}
