// Shows the status of a crawl. Everything that a site has chosen is set as text, never as HTML.
"use strict";

const byId = (id) => document.getElementById(id);
const LOCALE = "en";

/** Makes an element with attributes and children; strings become text. */
function make(name, attributes = {}, ...children) {
  const space = SVG.has(name) ? "http://www.w3.org/2000/svg" : "http://www.w3.org/1999/xhtml";
  const element = document.createElementNS(space, name);
  Object.entries(attributes).forEach(([key, value]) => element.setAttribute(key, value));
  element.append(...children);
  return element;
}
const SVG = new Set(["svg", "polyline", "line"]);

// Numbers in words. The terminal writes them in the same way.
const grouped = (number) => String(Math.round(number)).replace(/\B(?=(\d{3})+$)/g, "\u202f");
const rate = (number) => number.toFixed(1);
function percent(share) {
  return share === 0 ? "0 %" : share < 0.0001 ? "less than 0.01 %" : `${(100 * share).toPrecision(2)} %`;
}
function duration(seconds) {
  if (seconds === null) return "";
  const units = [[86400, "d"], [3600, "h"], [60, "min"]];
  const unit = units.find(([size]) => seconds >= size);
  if (unit) return `${(seconds / unit[0]).toFixed(1)} ${unit[1]}`;
  return seconds >= 1 ? `${seconds.toFixed(1)} s` : `${Math.round(1000 * seconds)} ms`;
}
function size(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const at = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(bytes, 1)) / 10));
  return `${at === 0 ? bytes : (bytes / 1024 ** at).toFixed(1)} ${units[at]}`;
}

function showFigures(summary, inFlight) {
  const figures = [
    ["pages", grouped(summary.pages)],
    ["pages/s, recent", rate(summary.recent_pages_per_second)],
    ["pages/s, mean", rate(summary.mean_pages_per_second)],
    ["queued", grouped(summary.queued)],
    ["failed", grouped(summary.failed)],
    ["lost at least", grouped(summary.lost_at_least)],
    ["bytes", size(summary.bytes)],
    ["time", duration(summary.elapsed_seconds)],
  ];
  byId("figures").replaceChildren(
    ...figures.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))),
  );
}

function showWrong(status) {
  const { summary } = status;
  const lines = summary.missing.map((text) => ["bad", text]);
  if (summary.hint) lines.push(["bad", summary.hint]);
  if (status.origins_away > 0) lines.push(["bad", `${grouped(status.origins_away)} origins do not answer at present`]);
  if (lines.length === 0) lines.push(["good", status.finished ? "Nothing is missing." : "Nothing is missing so far."]);
  byId("wrong").replaceChildren(...lines.map(([kind, text]) => make("li", { class: kind }, text)));
}

function showSeenSet(status) {
  const { summary } = status;
  if (summary.capacity === null) {
    byId("seen-set").textContent = `exact: ${grouped(summary.accepted)} URLs`;
    return;
  }
  const parts = [
    `about ${grouped(summary.estimated)} distinct URLs for a capacity of ${grouped(summary.capacity)} (${summary.saturation_level})`,
    `${percent(summary.rate)} of new URLs are wrongly dropped at present`,
  ];
  if (summary.layers > 1) parts.push(`grown to ${summary.layers} layers`);
  if (status.next_level_seconds !== null && !status.finished) {
    parts.push(`the next level in ${duration(status.next_level_seconds)}, at the present pace`);
  }
  byId("seen-set").textContent = `${parts.join("; ")}.`;
}

/** Draws lines over time, with a table behind them. Each line: name, class, values. */
function draw(figure, times, lines, limit) {
  const width = 1000;
  const height = 180;
  const most = Math.max(1, limit ?? 0, ...lines.flatMap((line) => line.values));
  const last = Math.max(1, times.at(-1) ?? 1);
  const x = (time) => ((time / last) * width).toFixed(1);
  const y = (value) => (height - (value / most) * (height - 8)).toFixed(1);
  const text = lines.map((line) => `${line.name}: ${grouped(line.values.at(-1) ?? 0)}`).join(", ");
  const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": text });
  svg.append(make("line", { x1: 0, x2: width, y1: height, y2: height }));
  if (limit) svg.append(make("line", { class: "limit", x1: 0, x2: width, y1: y(limit), y2: y(limit) }));
  for (const line of lines) {
    const points = line.values.map((value, at) => `${x(times[at])},${y(value)}`).join(" ");
    svg.append(make("polyline", { class: line.class, points }));
  }
  const keys = lines.map((line) => make("span", {}, make("i", { class: line.class }), `${line.name} ${grouped(line.values.at(-1) ?? 0)}`));
  if (limit) keys.push(make("span", {}, make("i", { class: "limit" }), `capacity ${grouped(limit)}`));
  keys.push(make("span", {}, `${duration(last)} wide, ${grouped(most)} high`));
  const isOpen = figure.querySelector("details")?.open ?? false;
  const step = Math.max(1, Math.ceil(times.length / 20));
  const rows = times.map((time, at) => [duration(time), ...lines.map((line) => grouped(line.values[at]))]);
  const table = make("table");
  fill(table, ["time", ...lines.map((line) => line.name)], rows.filter((_, at) => (rows.length - 1 - at) % step === 0));
  const details = make("details", isOpen ? { open: "" } : {}, make("summary", {}, "as a table"), table);
  figure.replaceChildren(svg, make("figcaption", {}, ...keys), details);
}

function fill(table, heads, rows) {
  const row = (cells, name, scope) => make("tr", {}, ...cells.map((cell) => make(name, scope, String(cell))));
  const empty = [make("tr", {}, make("td", { colspan: heads.length }, "none"))];
  table.replaceChildren(
    make("thead", {}, row(heads, "th", { scope: "col" })),
    make("tbody", {}, ...(rows.length > 0 ? rows.map((cells) => row(cells, "td", {})) : empty)),
  );
}

function showTables(summary) {
  const time = (text) => new Date(text).toLocaleTimeString(LOCALE, { hour12: false });
  byId("away-section").hidden = summary.away.length === 0;
  fill(byId("away"), ["origin", "since", "next request", "waiting", "why"], summary.away.map((one) => [
    one.origin, time(one.since), time(one.next_probe), grouped(one.waiting), one.cause,
  ]));
  fill(byId("busiest"), ["host", "waiting", "requests", "failures", "median", "longest", "delay"], summary.busiest.map((one) => [
    one.host, grouped(one.waiting), grouped(one.requests), grouped(one.failures),
    duration(one.median_seconds), duration(one.longest_seconds), duration(one.delay_seconds),
  ]));
  const words = (counts, of) => Object.entries(counts).map(([name, number]) => [`${of} ${name.replaceAll("_", " ")}`, grouped(number)]);
  fill(byId("counts"), ["what", "number"], [
    ...words(summary.by_status, "status"),
    ...words(summary.failed_by_kind, "failed:"),
    ...words(summary.not_fetched, "not fetched:"),
    ...words(summary.links_refused, "links refused:"),
  ]);
}

const series = { elapsed_seconds: [], pages: [], queued: [], estimated: [] };

function addToSeries(summary) {
  if (series.elapsed_seconds.at(-1) >= summary.elapsed_seconds) return;
  Object.keys(series).forEach((name) => series[name].push(summary[name]));
}

function showCharts(summary) {
  draw(byId("pages-chart"), series.elapsed_seconds, [
    { name: "pages", class: "first", values: series.pages },
    { name: "queued", class: "second", values: series.queued },
  ]);
  draw(byId("seen-set-chart"), series.elapsed_seconds, [
    { name: "distinct URLs, estimated", class: "first", values: series.estimated },
  ], summary.capacity);
}

const ENDINGS = {
  drained: "nothing is left to fetch",
  budget_spent: "the page budget is spent",
  time_up: "the time is up",
  stopped: "stopped",
  error: "an error has ended it",
};
let isFinished = false;

function show(status) {
  const { summary } = status;
  isFinished = status.finished;
  byId("version").textContent = status.version;
  const ending = summary?.ending ?? "error";
  const phase = isFinished ? `ended: ${ENDINGS[ending] ?? ending}` : status.phase;
  byId("phase").textContent = phase;
  byId("phase").className = isFinished && !(summary?.complete && ending !== "error") ? "bad" : "good";
  document.title = summary ? `${phase}, ${grouped(summary.pages)} pages: crawler` : "crawler";
  document.querySelectorAll("button").forEach((button) => {
    const fits = { pause: status.phase === "running", resume: status.phase.startsWith("paus"), stop: status.phase !== "stopping" };
    button.disabled = isFinished || !fits[button.dataset.order];
  });
  if (!summary) return;
  addToSeries(summary);
  showFigures(summary);
  showWrong(status);
  showSeenSet(status);
  showCharts(summary);
  showTables(summary);
}

function note(text) {
  byId("note").textContent = text;
  byId("note").hidden = text === "";
}

/** The token stands behind the # of the address that the log has: browsers do not send that part. */
function token() {
  const given = /^#token=([0-9a-f]{32})$/.exec(location.hash);
  if (given) {
    sessionStorage.setItem("token", given[1]);
    history.replaceState(null, "", location.pathname);
  }
  return sessionStorage.getItem("token");
}

async function order(name) {
  const answer = await fetch(name, { method: "POST", headers: { Authorization: `Bearer ${token()}` } });
  note(answer.ok ? "" : `The crawl did not take this: ${await answer.text()}`);
}

async function start() {
  byId("orders").hidden = token() === null;
  document.querySelectorAll("button").forEach((button) => {
    button.addEventListener("click", () => order(button.dataset.order).catch((error) => note(String(error))));
  });
  const past = await (await fetch("series.json")).json();
  Object.keys(series).forEach((name) => series[name].push(...past[name]));
  const events = new EventSource("events");
  events.onmessage = (event) => {
    note("");
    show(JSON.parse(event.data));
    if (isFinished) events.close();
  };
  events.onerror = () => {
    if (!isFinished) note("No connection to the crawl: it has ended, or its machine cannot be reached. These are its last numbers.");
  };
}

start().catch((error) => note(String(error)));
