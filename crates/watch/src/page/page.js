// Shows the status of a crawl: of a live one over server-sent events, or the one that stands in the page (a report). Everything that a site has
// chosen is set as text, never as HTML.
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

/** Gives an element these children, and leaves what is the same as it is: the focus, a selection, and the place of a screen reader stay there. */
function put(element, ...children) {
  children.forEach((child, at) => {
    const node = typeof child === "string" ? document.createTextNode(child) : child;
    const old = element.childNodes[at];
    if (!old) element.append(node);
    else if (old.nodeName !== node.nodeName) old.replaceWith(node);
    else if (old.nodeType === Node.TEXT_NODE) {
      if (old.data !== node.data) old.data = node.data;
    } else if (!old.isEqualNode(node)) {
      // Whether a table is open is the reader's choice.
      [...old.attributes].forEach(({ name }) => name === "open" || node.hasAttribute(name) || old.removeAttribute(name));
      [...node.attributes].forEach(({ name, value }) => old.getAttribute(name) === value || old.setAttribute(name, value));
      put(old, ...node.childNodes);
    }
  });
  while (element.childNodes.length > children.length) element.lastChild.remove();
}

// Numbers in words. The terminal writes them in the same way.
const grouped = (number) => String(Math.round(number)).replace(/\B(?=(\d{3})+$)/g, "\u202f");
const rate = (number) => number.toFixed(1);
const words = (name) => name.replaceAll("_", " ");
const time = (text) => (text ? new Date(text).toLocaleString(LOCALE, { dateStyle: "medium", timeStyle: "long", hourCycle: "h23" }) : "");
function percent(share) {
  return share === 0 ? "0 %" : share < 0.0001 ? "less than 0.01 %" : `${share < 0.1 ? (100 * share).toPrecision(2) : Math.round(100 * share)} %`;
}
function duration(seconds) {
  if (seconds === null || seconds === undefined) return "";
  const units = [[86400, "days"], [3600, "h"], [60, "min"]];
  // Of minutes and more there are at least one and a half.
  const unit = units.find(([size]) => Math.floor(seconds) >= 1.5 * size);
  if (unit) return `${(seconds / unit[0]).toFixed(1)} ${unit[1]}`;
  return seconds >= 1 ? `${seconds.toFixed(1)} s` : `${Math.round(1000 * seconds)} ms`;
}
function size(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const at = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(bytes, 1)) / 10));
  return `${at === 0 ? bytes : (bytes / 1024 ** at).toFixed(1)} ${units[at]}`;
}

function showFigures(summary) {
  const figures = [
    ["pages", grouped(summary.pages)],
    ["pages/s now", rate(summary.recent_pages_per_second)],
    ["pages/s mean", rate(summary.mean_pages_per_second)],
    ["queued", grouped(summary.queued)],
    ["hosts", grouped(summary.hosts)],
    ["failed", grouped(summary.failed)],
    ["lost at least", grouped(summary.lost_at_least)],
    ["bytes", size(summary.bytes)],
    ["time", duration(summary.elapsed_seconds)],
  ];
  if (summary.fresh !== null) {
    figures.splice(1, 0, ["fresh", `${(100 * summary.fresh).toFixed(1)} %`], ["oldest visit", `${duration(summary.oldest_seconds)} ago`], ["fetched again", grouped(summary.refreshed)]);
  }
  put(
    byId("figures"),
    ...figures.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", name.startsWith("lost") && value !== "0" ? { class: "bad" } : {}, value))),
  );
}

// An option is not broken at the end of a line.
const OPTION = /(--(?:set )?[a-z][a-z-]*)/;
const asOption = (text, at) => (at % 2 === 1 ? make("span", { class: "option" }, text) : text);

/** The most hosts that are named among what is wrong. */
const NAMED = 5;

const isPaused = (status) => status.phase.startsWith("paus") && !status.finished;

function showWrong(status) {
  const { summary } = status;
  const lines = summary.missing.map((text) => ["bad", text]);
  const isRunning = status.phase === "running" && !status.finished;
  if (isPaused(status)) lines.unshift(["bad", "The crawl is paused: no host is asked until Resume, or until fg after Ctrl-Z."]);
  const slow = isRunning ? summary.held_up_by : null;
  if (isRunning && summary.waits_for_others) lines.unshift(["", "Nothing is left to fetch here: this process waits for the other partitions. crawler cluster status says for which."]);
  if (slow) lines.unshift([slow.state === "asked" ? "" : "bad", `${slow.host} holds the crawl up: ${slow.explanation}`]);
  if (summary.hint) lines.push(["bad", summary.hint]);
  const ill = Object.entries(summary.hosts_by_state).filter(([state]) => state !== "asked");
  const others = summary.host_table.filter((one) => one.host !== slow?.host);
  const isNamed = (one) => one.state !== "asked" && (isRunning || one.left_seconds === null);
  const named = others.filter(isNamed).slice(0, NAMED);
  named.forEach((one) => lines.push(["bad", `${one.host}: ${one.explanation}`]));
  const more = ill.reduce((sum, [, hosts]) => sum + hosts, 0) - named.length - (slow && slow.state !== "asked" ? 1 : 0);
  if (more > 0 && isRunning) lines.push(["bad", `${grouped(more)} more host${more === 1 ? "" : "s"}: see below`]);
  const isSaid = summary.missing.some((text) => text.startsWith("seen-set"));
  if (summary.capacity !== null && summary.estimated > summary.capacity && !isSaid) {
    const fate = summary.layers > 1 ? "it has grown, and takes more memory" : "it drops more and more new URLs";
    lines.push(["", `The seen-set holds more URLs than its capacity: ${fate}.`]);
  }
  if (lines.every(([kind]) => kind !== "bad")) lines.push(["good", status.finished ? "Nothing is missing." : "Nothing is missing so far."]);
  put(byId("wrong"), ...lines.map(([kind, text]) => make("li", { class: kind }, ...text.split(OPTION).map(asOption))));
}

/** A lower rate says nothing of the next minutes. */
const LOWEST_RATE = 1;

/** Whether all that waits for a host waits behind all other pages. */
const isBehind = (one) => one.postponed > 0 && one.postponed === one.waiting && one.in_flight === 0;

/** Says how long what is left takes: all at the present rate, or at least what waits for the slowest host, and then behind all others; not longer than the time limit. */
function timeLeft({ left, summary, time_limit_seconds: limit }) {
  const at = summary.recent_pages_per_second;
  const all = at >= LOWEST_RATE && left && left.about !== null ? left.about / at : 0;
  const longest = (hosts) => Math.max(0, ...hosts.map((one) => one.left_seconds ?? 0));
  const others = summary.host_table.filter((one) => !isBehind(one));
  const held = longest(others) + longest(summary.host_table.filter(isBehind));
  if ((limit ?? Infinity) < Math.max(all, held)) return [limit, "ended by the time limit in"];
  const most = summary.held_up_by?.left?.startsWith("up to");
  return all >= held ? [all, "about"] : [held, most ? "up to" : "at least"];
}

function showLeft(status) {
  const { left, finished, summary } = status;
  if (finished) {
    put(byId("left"), summary.queued > 0 ? `${grouped(summary.queued)} pages were left in the queue.` : "Nothing is left in the queue.");
    return;
  }
  const queued = `${grouped(summary.queued)} page${summary.queued === 1 ? " waits" : "s wait"}`;
  if (!left) {
    put(byId("left"), `${queued}; how many more they lead to is not known yet.`);
    return;
  }
  const [long, short] = left.new_per_page.map((number) => number.toFixed(2));
  const leads = Math.max(...left.new_per_page) === 0
    ? "in the second half of the crawl, pages led to no new ones"
    : `a page led to ${short} new ones lately, and to ${long} in the second half of the crawl`;
  const holding = summary.host_table.filter((one) => one.left_seconds !== null);
  const isOpen = holding.length > 0 && holding.every((one) => one.alike > 0);
  const [seconds, bound] = timeLeft(status);
  const until = seconds > 0 && !isPaused(status) ? `, ${isOpen ? "up to" : bound} ${duration(seconds)}` : "";
  put(byId("left"), left.about === null
    ? `${queued}; ${left.new_per_page[1] < 1 ? `how many more they lead to is not certain${until}` : isOpen ? `more may follow that look alike${until}` : `the end is not in sight${bound.startsWith("ended") ? until : ""}`}: ${leads}.`
    : `${queued}. With those that they lead to, up to ${grouped(left.about)} are left${until}, unless a page leads to many more or a limit ends the crawl: ${leads}.`);
}

function showSeenSet(status) {
  const { summary } = status;
  if (summary.capacity === null) {
    put(byId("seen-set"), `It is exact and drops no new URL: ${grouped(summary.accepted)} URLs.`);
    return;
  }
  const parts = [
    `about ${grouped(summary.estimated)} distinct URLs for a capacity of ${grouped(summary.capacity)} (${summary.saturation_level})`,
    `${percent(summary.rate)} of new URLs are wrongly dropped at present`,
  ];
  if (summary.layers > 1) parts.push(`grown to ${summary.layers} layers`);
  if (status.next_level_seconds !== null) {
    parts.push(`${grouped(status.next_level_keys)} in ${duration(status.next_level_seconds)}, at the present pace`);
  }
  put(byId("seen-set"), `${parts.join("; ")}.`);
}

/** Draws lines over time, with a table behind them. Each line: name, class, values; `future` is a point to which the first one is continued. */
function draw(figure, times, lines, { limit, future, present = times.at(-1) ?? 0, show = grouped } = {}) {
  const width = 1000;
  const height = 180;
  // The forecast takes a fifth of the width at most.
  const last = Math.max(1, future ? Math.min(future.time, present * 1.25) : present);
  const ahead = future ? lines[0].values.at(-1) + (future.value - lines[0].values.at(-1)) * ((last - present) / (future.time - present)) : 0;
  const most = rounded(Math.max(...lines.flatMap((line) => line.values), limit ?? 0, ahead) || 1);
  const x = (time) => ((time / last) * width).toFixed(1);
  const y = (value) => ((1 - value / most) * height).toFixed(1);
  const pointed = figure.pointed === undefined ? times.length - 1 : nearest(times, figure.pointed * last);
  const names = lines.map((line) => line.name).join(", ");
  const text = `curves over ${duration(last)}, up to ${show(most)}: ${names}`;
  const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": text });
  [0, most / 2, most].forEach((value) => svg.append(make("line", { x1: 0, x2: width, y1: y(value), y2: y(value) })));
  if (figure.pointed !== undefined) svg.append(make("line", { x1: x(times[pointed]), x2: x(times[pointed]), y1: 0, y2: height }));
  if (limit) svg.append(make("line", { class: "limit", x1: 0, x2: width, y1: y(limit), y2: y(limit) }));
  for (const line of lines) {
    const points = line.values.map((value, at) => `${x(times[at])},${y(value)}`).join(" ");
    svg.append(make("polyline", { class: line.class, points }));
  }
  if (future) {
    svg.append(make("polyline", { class: "first ahead", points: `${x(present)},${y(lines[0].values.at(-1))} ${x(last)},${y(ahead)}` }));
  }
  const keys = lines.map((line) => make("span", {}, make("i", { class: line.class }), `${line.name} ${show(line.values[pointed] ?? 0)}`));
  if (figure.pointed !== undefined) keys.unshift(make("span", {}, `at ${duration(times[pointed])}:`));
  if (limit) keys.push(make("span", {}, make("i", { class: "limit" }), `capacity ${show(limit)}`));
  if (future) keys.push(make("span", {}, make("i", { class: "first ahead" }), "at the present pace"));
  const step = Math.max(1, Math.ceil(times.length / 20));
  const rows = times.map((time, at) => [duration(time), ...lines.map((line) => show(line.values[at]))]);
  const table = make("table");
  fill(table, ["time", ...lines.map((line) => line.name)], rows.filter((_, at) => (rows.length - 1 - at) % step === 0));
  const details = make("details", {}, make("summary", {}, `as a table: ${names}`), table);
  const edge = (side, text) => make("span", { class: side, "aria-hidden": "true" }, text);
  const half = show(most / 2) === show(most) ? "" : show(most / 2);
  const edges = [edge("top", show(most)), edge("half", half), edge("zero", "0"), edge("middle", duration(last / 2)), edge("end", duration(last))];
  put(figure, make("div", { class: "plot" }, svg, ...edges), make("figcaption", {}, ...keys), details);
  const point = (share) => {
    figure.pointed = share;
    draw(figure, times, lines, { limit, future, present, show });
  };
  figure.onpointermove = ({ clientX }) => {
    const { left, width: wide } = figure.getBoundingClientRect();
    if (times.length > 0) point((clientX - left) / wide);
  };
  figure.onpointerleave = () => point(undefined);
}

/** Returns the next number up whose half has as few digits. */
function rounded(number) {
  const unit = 10 ** Math.floor(Math.log10(number));
  return unit * ([1, 2, 4, 6, 8].find((digit) => digit * unit >= number) ?? 10);
}

/** Returns the place of the time that is nearest. */
function nearest(times, to) {
  return times.reduce((best, time, at) => (Math.abs(time - to) < Math.abs(times[best] - to) ? at : best), 0);
}

function fill(table, heads, rows) {
  const row = (cells, name, scope) => make("tr", {}, ...cells.map((cell, at) =>
    make(name, scope ?? { "data-head": heads[at] }, cell instanceof Node ? cell : String(cell))));
  const empty = [make("tr", {}, make("td", { colspan: heads.length }, "none"))];
  put(
    table,
    make("thead", {}, row(heads, "th", { scope: "col" })),
    make("tbody", {}, ...(rows.length > 0 ? rows.map((cells) => row(cells, "td")) : empty)),
  );
}

/** Returns the time between two times in words. */
function between(from, to) {
  return from ? duration(Math.max(0, (new Date(to) - new Date(from)) / 1000)) : "";
}

/** Buttons that change what a host is granted, by the orders of the command. */
const HOST_ORDERS = {
  slower: ({ host, delay_seconds: delay }) => ({ set: { what: [host, `delay=${Math.max(1, 2 * delay)}s`] } }),
  first: ({ host }) => ({ set: { what: [host, "class=0"] } }),
  drop: ({ host }) => ({ drop: { hosts: [host] } }),
  allow: ({ host }) => ({ allow: { hosts: [host] } }),
};

const TITLES = { slower: "twice the delay", first: "links found from now on come before others", drop: "nothing more of it", allow: "as before" };

function hostOrders(one) {
  const fits = Object.entries(HOST_ORDERS).filter(([name]) => (one.dropped ? name === "allow" : name !== "allow"));
  return make("span", {}, ...fits.map(([name, order]) => {
    const body = JSON.stringify(order(one));
    return make("button", { type: "button", "data-host": body, title: TITLES[name] }, sure.has(body) ? `${name}: sure?` : name);
  }));
}

const HOST_HEADS = ["host", "state", "asked again in", "waiting", "time left", "requests", "failed", "median answer", "delay", "shortest pause", "robots.txt age"];

/** Shows hosts: those of the status, or all that a report has. */
function showHosts({ summary, finished }, hosts = summary.host_table) {
  const asOf = summary.hosts_as_of;
  const others = summary.hosts - hosts.length;
  put(byId("hosts-text"), hosts.length === 0 ? "" : `${others > 0 ? `${hosts.length} of ${grouped(summary.hosts)}, as` : "As"} of ${time(asOf)}.`);
  const hasOrders = !finished && !byId("data") && token() !== null;
  fill(byId("hosts"), hasOrders ? [...HOST_HEADS, "orders"] : HOST_HEADS, hosts.map((one) => [
    one.host, one.dropped ? "dropped" : words(one.state), finished || !one.until || (one.left_seconds === null && one.state !== "closed") ? "" : between(asOf, one.until), grouped(one.waiting + one.in_flight), one.left ?? "", grouped(one.requests),
    grouped(one.failures), duration(one.median_seconds), duration(one.delay_seconds), duration(one.shortest_pause_seconds), between(one.robots_fetched_at, asOf),
    ...(hasOrders ? [hostOrders(one)] : []),
  ]));
  const slack = summary.least_slack_seconds;
  put(byId("receipt-text"), slack === null ? "No host was asked twice." : slack < 0
    ? `A host was asked ${duration(-slack)} sooner than its delay allows.`
    : `No host was asked sooner than its delay allows: the shortest pause was ${slack < 0.001 ? "as long as" : `${duration(slack)} longer than`} the delay. A delay that robots.txt asks for counts once it is read.`);
}

function showLast({ last_pages: pages, last_failures: failures }) {
  byId("last-section").hidden = pages.length + failures.length === 0;
  fill(byId("last-pages"), ["status", "URL", "title"], pages.map((one) => [one.status, one.url, one.title ?? ""]));
  fill(byId("last-failures"), ["kind", "URL", "why", "then"], failures.map((one) => [
    words(one.kind), one.url, one.why, one.retried ? "asked again" : "final",
  ]));
}

/** Returns the command that lists some pages of the crawl. */
function command(dir, which, filter) {
  if (dir === null) return "";
  const quoted = /^[\w./-]+$/.test(dir) ? dir : `'${dir.replaceAll("'", "'\\''")}'`;
  return make("code", {}, `crawler list ${quoted} ${which}${filter ? ` | jq -c 'select(${filter})'` : ""}`);
}

/** Returns the command that lists some lines of an output. */
const ofFile = (option, filter) => make("code", {}, `jq -c 'select(${filter})' FILE`, ` of ${option} FILE`);

function showCounts({ summary, state_dir: dir }) {
  const all = (counts, of, list) => Object.entries(counts).map(([name, number]) => [`${of} ${words(name)}`, grouped(number), list(name)]);
  const reason = (name) => `.reason=="${name}"`;
  // The list has a page whose redirect leads to no page under --done, and one that broke off under --failed, whatever its status is.
  const failed = (kind) => kind === "redirect" ? ofFile("--refused", reason(kind))
    : command(dir, "--failed", kind === "status" ? `.end=="rejected" or ${reason(kind)}` : reason(kind));
  fill(byId("counts"), ["what", "number", dir === null ? "" : "lists them"], [
    ...all(summary.by_status, "status", (code) => code < 300 || code == 304 ? ofFile("--output", `.status==${code}`) : command(dir, "--failed", `.status==${code}`)),
    ...all(summary.failed_by_kind, "failed:", failed),
    ...all(summary.not_fetched, "not fetched:", (why) => command(dir, "--not-fetched", reason(why))),
    ["queued", grouped(summary.queued), command(dir, "--waiting")],
    ["requests repeated", grouped(summary.retries), ""],
    ["links found", grouped(summary.links_offered), ""],
    ["links to new URLs", grouped(summary.links_queued), ""],
    ["links to seen URLs", grouped(summary.links_seen), ""],
    ...all(summary.links_refused, "links refused:", (why) => ofFile("--refused", reason(why))),
    ...(summary.exchange ? ["sent", "received", "waiting"] : []).map((what) => [`links between partitions: ${what}`, grouped(summary.exchange[what]), ""]),
    ["duplicates", grouped(summary.duplicates), ofFile("--output", ".duplicate_of")],
    ["near-duplicates", grouped(summary.near_duplicates), ofFile("--output", ".near_duplicate_of")],
  ]);
}

/** Fills a table of shares, each with a bar. */
function fillShares(table, what, counts) {
  const most = Math.max(1, ...counts.map(([, number]) => number));
  const bar = (number) => make("meter", { min: 0, max: most, value: number, "aria-hidden": "true" });
  fill(table, [what, "pages", ""], counts.map(([name, number]) => [name, grouped(number), bar(number)]));
}

function showShares(summary) {
  const depths = summary.by_depth.map((pages, depth) => [depth === 31 ? "31 and more" : depth, pages]);
  fillShares(byId("depths"), "depth", depths.filter(([, pages]) => pages > 0));
  const times = summary.by_answer_time.map(({ seconds, pages }) => [seconds === null ? "more" : `up to ${duration(seconds)}`, pages]);
  fillShares(byId("times"), "answered in", times.filter(([, pages]) => pages > 0));
  const others = Object.entries(summary.not_html);
  const html = summary.pages - others.reduce((sum, [, pages]) => sum + pages, 0);
  fillShares(byId("types"), "type", [["HTML", html], ...others].filter(([, pages]) => pages > 0).sort((a, b) => b[1] - a[1]));
}

const series = { elapsed_seconds: [], pages: [], queued: [], links_offered: [], links_new: [], estimated: [], lost: [] };

function addToSeries(point) {
  if (series.elapsed_seconds.at(-1) >= point.elapsed_seconds) return;
  const isFull = series.elapsed_seconds.length >= 2000;
  Object.keys(series).forEach((name) => {
    if (isFull) series[name] = series[name].filter((_, at) => at % 2 === 0);
    series[name].push(point[name]);
  });
}

/** Returns the share of new links in up to a hundred parts of the crawl. */
function newShares() {
  const { elapsed_seconds: times, links_new: found, links_offered: offered } = series;
  const step = Math.max(1, Math.ceil(times.length / 100));
  const ends = times.map((_, at) => at).filter((at) => (times.length - 1 - at) % step === 0);
  const parts = ends.map((end, at) => {
    const start = ends[at - 1];
    const [all, fresh] = [offered, found].map((list) => list[end] - (start === undefined ? 0 : list[start]));
    return { time: times[end], share: all > 0 ? fresh / all : NaN };
  });
  return parts.filter(({ share }) => !Number.isNaN(share));
}

function showCharts({ summary, next_level_seconds: seconds, next_level_keys: keys }) {
  const times = series.elapsed_seconds;
  draw(byId("pages-chart"), times, [
    { name: "pages", class: "first", values: series.pages },
    { name: "queued", class: "second", values: series.queued },
  ]);
  const shares = newShares();
  draw(byId("new-chart"), shares.map(({ time }) => time), [
    { name: "new among the links", class: "first", values: shares.map(({ share }) => share) },
  ], { show: percent, present: times.at(-1) });
  // A capacity far above would make the curve flat.
  const limit = summary.capacity <= 4 * summary.estimated ? summary.capacity : undefined;
  const future = seconds > 0 ? { time: times.at(-1) + seconds, value: keys } : undefined;
  draw(byId("seen-set-chart"), times, [
    { name: summary.capacity === null ? "distinct URLs" : "distinct URLs, estimated", class: "first", values: series.estimated },
  ], { limit, future });
  byId("lost-chart").hidden = !(series.lost.at(-1) >= 1);
  draw(byId("lost-chart"), times, [{ name: "lost pages and links, estimated", class: "second", values: series.lost }]);
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
  put(byId("version"), status.version);
  const ending = summary?.ending ?? "error";
  const isWhole = summary?.complete;
  const why = ending === "drained" && !isWhole ? "nothing is left to fetch, but pages are missing" : ENDINGS[ending] ?? ending;
  const phase = isFinished ? `ended, ${isWhole ? "complete" : "incomplete"}: ${why}` : status.phase;
  put(byId("phase"), phase);
  byId("phase").className = isFinished && !isWhole ? "bad" : isFinished || phase === "running" ? "good" : "held";
  document.title = summary ? `${phase}, ${grouped(summary.pages)} pages: crawler` : "crawler";
  const more = status.more_seeds > 0 ? ` and ${grouped(status.more_seeds)} more` : "";
  const of = status.seeds.length > 0 ? `${status.seeds.join(", ")}${more}; as` : "As";
  put(byId("about"), `${of} of ${time(status.as_of)}${status.state_dir === null ? "" : `, in ${status.state_dir}`}`);
  document.querySelectorAll("button[data-order]").forEach((button) => {
    const fits = { pause: status.phase === "running", resume: isPaused(status), stop: status.phase !== "stopping" };
    button.disabled = isFinished || !fits[button.dataset.order];
  });
  if (!summary) return;
  showFigures(summary);
  showWrong(status);
  showLeft(status);
  showSeenSet(status);
  showCharts(status);
  showHosts(status);
  showLast(status);
  showCounts(status);
  showShares(summary);
}

function note(text) {
  put(byId("note"), text);
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

/** What became of the last order. It stays until the next one. */
let refusal = "";

async function order(name, body) {
  const answer = await fetch(name, { method: "POST", headers: { Authorization: `Bearer ${token()}` }, body });
  const text = await answer.text();
  const said = body && answer.ok ? JSON.parse(text).said : "";
  const why = body && !answer.ok ? JSON.parse(text).error : text;
  refusal = answer.ok ? said : `The crawl did not take this: ${why}`;
  note(refusal);
}

/** What was clicked once, and needs a second click within some seconds. */
const sure = new Set();

async function press(button) {
  const { order: name, host } = button.dataset;
  const [label, key] = [button.textContent, host ?? name];
  if (!/^(stop$|{"drop)/.test(key) || sure.has(key)) return host ? order("order", host) : order(name);
  sure.add(key);
  button.textContent = `${label}: sure?`;
  setTimeout(() => {
    sure.delete(key);
    if (!host) button.textContent = label;
  }, 5000);
}

function startReport(data) {
  Object.keys(series).forEach((name) => series[name].push(...data.series[name]));
  byId("links").hidden = true;
  show(data.status);
  if (!isFinished) byId("about").append("; it went on after that");
  if (data.status.summary) showHosts(data.status, data.hosts);
}

async function loadSeries() {
  const past = await (await fetch("series.json")).json();
  Object.keys(series).forEach((name) => { series[name] = past[name]; });
}

/** The crawl sends its status each second. After so many milliseconds without one, the page says so. */
const SILENCE = 10_000;

async function startLive() {
  byId("orders").hidden = token() === null;
  document.addEventListener("click", ({ target }) => {
    if (target.matches("button")) press(target).catch((error) => note(String(error)));
  });
  await loadSeries();
  const events = new EventSource("events");
  let wasAway = false;
  let silence;
  events.onmessage = async (event) => {
    const status = JSON.parse(event.data);
    note(refusal);
    clearTimeout(silence);
    silence = setTimeout(() => isFinished || note(`The crawl has sent nothing since ${time(status.as_of)}: Ctrl-Z has stopped it, or it hangs.`), SILENCE);
    if (wasAway) {
      // The points since then are missing, or another crawl has begun at this address.
      wasAway = false;
      await loadSeries().catch((error) => note(String(error)));
    }
    if (status.point) addToSeries(status.point);
    show(status);
    if (isFinished) events.close();
  };
  events.onerror = () => {
    wasAway = true;
    clearTimeout(silence);
    if (isFinished) return;
    put(byId("phase"), "no connection");
    byId("phase").className = "held";
    note("No connection to the crawl: it has ended, or its machine cannot be reached. These are its last numbers.");
  };
}

const data = byId("data");
if (data) startReport(JSON.parse(data.textContent));
else startLive().catch((error) => note(String(error)));
