"""The numbers of a crawl in all places that have them: its log, `crawler status`, events, metrics, page and report."""

import re
from decimal import ROUND_HALF_UP, Decimal

# What a page shows, as text.
READ_PAGE = """(() => {
    const all = (selector) => [...document.querySelectorAll(selector)];
    const text = (selector, from = document) => from.querySelector(selector)?.textContent ?? "";
    // A row with a wide cell says that there are none.
    const rows = (id) => all(`#${id} tbody tr:not(:has([colspan]))`).map((row) => [...row.cells].map((cell) => cell.textContent));
    const is_usable = (button) => button.offsetParent !== null && !button.disabled;
    return {
        title: document.title,
        phase: text("#phase"),
        note: text("#note:not([hidden])"),
        buttons: all("button[data-order]").filter(is_usable).map((one) => one.dataset.order),
        figures: Object.fromEntries(all("#figures div").map((one) => [text("dt", one), text("dd", one)])),
        wrong: all("#wrong li").map((one) => one.textContent),
        seen_set: text("#seen-set"),
        counts: Object.fromEntries(rows("counts").map(([name, number]) => [name, number])),
        hosts: rows("hosts"),
        shares: Object.fromEntries(["depths", "times", "types"].map((id) => [id, rows(id).map(([name, pages]) => [name, pages])])),
        curve: document.querySelector("#pages-chart polyline")?.getAttribute("points").split(" ") ?? [],
        end_of_curve: rows("pages-chart").at(-1) ?? [],
    };
})()"""


def metrics_of(text):
    """Returns the value of each line of the text format of Prometheus, by name and labels."""
    lines = (line.rpartition(" ") for line in text.splitlines() if line and not line.startswith("#"))
    return {name: float(value) for name, _, value in lines}


# Numbers in words, as the page writes them.


def rounded(number, to="0.1"):
    """Rounds as JavaScript does."""
    return Decimal(number).quantize(Decimal(to), ROUND_HALF_UP)


def grouped(number):
    return f"{rounded(number, '1'):,}".replace(",", "\u202f")


def rate(number):
    return str(rounded(number))


def size(number):
    units = ["B", "KiB", "MiB", "GiB", "TiB"]
    at = min(len(units) - 1, max(number.bit_length() - 1, 0) // 10)
    return f"{rounded(number / 1024**at) if at else number} {units[at]}"


def duration(seconds):
    for length, unit in [(86400, "days"), (3600, "h"), (60, "min"), (1, "s")]:
        if int(seconds) >= 1.5 * length or unit == "s" and seconds >= 1:
            return f"{rounded(seconds / length)} {unit}"
    return f"{rounded(1000 * seconds, '1')} ms"


# How a page shows a number. Each returns a function from the page and the number to what is there and what should be.


def figure(name, write):
    return lambda page, number: (page["figures"].get(name), write(number))


def seen_set(pattern, write):
    return lambda page, number: ((re.search(pattern, page["seen_set"]) or ["", None])[1], write(number))


def counts(prefix):
    """The rows of the table of counts that begin with these words, for an object of counts."""
    prefix += " "

    def compare(page, numbers):
        shown = {name: number for name, number in page["counts"].items() if name.startswith(prefix)}
        return shown, {prefix + name.replace("_", " "): grouped(number) for name, number in numbers.items()}

    return compare


def row(name):
    """A row of the table of counts."""
    return lambda page, number: (page["counts"].get(name), grouped(number))


def depths(page, numbers):
    return page["shares"]["depths"], [[str(depth), grouped(pages)] for depth, pages in enumerate(numbers) if pages]


def times(page, numbers):
    name = lambda seconds: "more" if seconds is None else f"up to {duration(seconds)}"
    return page["shares"]["times"], [[name(one["seconds"]), grouped(one["pages"])] for one in numbers if one["pages"]]


def types(page, numbers):
    return [one for one in page["shares"]["types"] if one[0] != "HTML"], [[name, grouped(pages)] for name, pages in numbers.items()]


def wrong(page, texts):
    """More may follow, such as a hint."""
    return page["wrong"][: max(len(texts), 1)], texts or ["Nothing is missing."]


def table_of_hosts(page, hosts):
    rows = [[one["host"], one["state"].replace("_", " "), *(grouped(one[name]) for name in ["waiting", "requests", "failures"])] for one in hosts]
    # A report has more hosts.
    return [[*row[:2], row[3], *row[5:7]] for row in page["hosts"][:len(rows)]], rows


# Each number by its name in the log, in `crawler status` and in events, with its metric, in which ? stands for the keys of an
# object, and how the page shows it. None is for a place that does not have it.
NUMBERS = {
    "ending": ('crawler_finished{ending="?"}', None),
    "complete": ("crawler_complete", None),
    "missing": (None, wrong),
    "elapsed_seconds": ("crawler_elapsed_seconds", figure("time", duration)),
    "pages": ('crawler_pages{state="ok"}', figure("pages", grouped)),
    "mean_pages_per_second": (None, figure("pages/s mean", rate)),
    "recent_pages_per_second": (None, figure("pages/s now", rate)),
    "by_status": (None, counts("status")),
    "by_depth": (None, depths),
    "by_answer_time": (None, times),
    "not_html": (None, types),
    "retries": (None, row("requests repeated")),
    "links_offered": (None, row("links found")),
    "duplicates": (None, row("duplicates")),
    "near_duplicates": (None, row("near-duplicates")),
    "redirects": ('crawler_pages{state="redirected"}', None),
    "bytes": ("crawler_body_bytes_total", figure("bytes", size)),
    "failed": ('crawler_pages{state="failed"}', figure("failed", grouped)),
    "failed_by_kind": ('crawler_failed_pages{reason="?"}', counts("failed:")),
    "not_fetched": ('crawler_not_fetched_pages{reason="?"}', counts("not fetched:")),
    "links_queued": ('crawler_links_total{verdict="queued"}', row("links to new URLs")),
    "links_seen": ('crawler_links_total{verdict="seen"}', row("links to seen URLs")),
    "links_refused": ('crawler_links_refused_total{reason="?"}', counts("links refused:")),
    "queued": ('crawler_pages{state="queued"}', figure("queued", grouped)),
    "hosts": ("crawler_hosts", None),
    "least_slack_seconds": ("crawler_politeness_slack_seconds", None),
    "host_table": (None, table_of_hosts),
    "held_up_by": (None, None),
    "hosts_as_of": (None, None),
    "hosts_by_state": ('crawler_hosts_by_state{state="?"}', None),
    "origins_given_up": ('crawler_origins{state="given_up"}', None),
    "saturation_level": (None, seen_set(r"\((.*?)\)", str)),
    "estimated": ("crawler_seen_set_estimated_keys", seen_set("about ([^ ]+) distinct", grouped)),
    "capacity": ("crawler_seen_set_capacity_keys", seen_set("a capacity of ([^ ]+)", grouped)),
    "accepted": ("crawler_seen_set_accepted_keys", None),
    "fill": ("crawler_seen_set_fill_ratio", None),
    "rate": ("crawler_seen_set_false_positive_ratio", None),
    "lost": ("crawler_lost", None),
    "lost_at_least": ("crawler_lost_pages_lower_bound", figure("lost at least", grouped)),
    "layers": ("crawler_seen_set_layers", None),
    "memory_bytes": ("crawler_seen_set_memory_bytes", None),
}
# Those that neither the metrics nor the page have.
OTHER_NUMBERS = """hint exchange waits_for_others retried_by_kind robots_name bodies_truncated bodies_skipped refreshed refreshed_unchanged
    fresh fresh_spread oldest_seconds max_age_seconds stalest refreshed_gone refreshed_failed links_nofollow links_dropped links_other_scheme links_unresolvable sitemaps
    sitemaps_failed sitemap_urls cut_short prefixes_postponed prefixes_closed cookies_dropped
    peak_memory_bytes"""
NUMBERS |= {name: (None, None) for name in OTHER_NUMBERS.split()}
# What no other place has.
OF_A_RECORD = {"time", "level", "target", "message"}
OTHER_METRICS = re.compile(
    r"crawler_(build_info|process_\w+|phase|(page_)?responses_total|request_failures_total|response_duration_\w+|body_size_\w+|missing"
    r"|pages_postponed|requests_in_flight|memory_\w+|state_\w+|disk_free_bytes|output_bytes|host_to_blame|revisits_total|hosts_by_state|seen_set_(lost_\w+|suspicious|next_level_seconds))\b"
    r'|crawler_(pages\{state="(other_status|not_fetched)|links_total\{verdict="refused|origins\{state="away)"}'
)
# Memory of a process, and a time that is that of the last commit. A state directory does not say either why the crawl in it is not finished.
NOT_IN_STATUS = {"peak_memory_bytes", "hosts_as_of"}
NOT_IN_STATUS_UNLESS_DRAINED = {"ending", "missing"}
# Of a host they say how long ago, and until when: from the last commit on.
FROM_NOW_ON = {"explanation", "left_seconds"}


def differences(log, status, event, metrics, pages):
    """Returns a line for each number that is missing, or differs from that of the log. `pages` has by name what `READ_PAGE` returned."""
    found, used = [], set()
    excused = NOT_IN_STATUS | (NOT_IN_STATUS_UNLESS_DRAINED if log["ending"] != "drained" else set())
    for name, (metric, shown) in NUMBERS.items():
        if name not in log:
            found.append(f"the log has no {name}")
            continue
        number = log[name]
        others = [("the event", event.get(name, "missing"), number)]
        if name not in excused:
            others.append(("crawler status", timeless(status.get(name, "missing")), timeless(number)))
        if metric:
            others.append(("the metrics", *metric_of(metric, number, metrics)))
            used |= set(others[-1][1])
        if shown:
            others += [(place, *shown(page, number)) for place, page in pages.items()]
        found += [f"{name} is {number} in the log, and {got!r} in {place}" for place, got, wanted in others if got != wanted]
    found += [f"NUMBERS lacks {name} of the log" for name in set(log) - set(NUMBERS) - OF_A_RECORD]
    found += [f"NUMBERS lacks {name} of the metrics" for name in set(metrics) - used if not OTHER_METRICS.match(name)]
    return found


def timeless(value):
    """Returns what a host, or a list of hosts, has that does not depend on the moment."""
    if isinstance(value, list):
        return [timeless(one) for one in value]
    return {key: one for key, one in value.items() if key not in FROM_NOW_ON} if isinstance(value, dict) else value


def metric_of(metric, number, metrics):
    """Returns the lines that a metric has, and those that it must have."""
    start, _, end = metric.partition("?")
    if not end:
        return {name: value for name, value in metrics.items() if name == metric}, {metric: number}
    wanted = number if isinstance(number, dict) else {number: 1}
    wanted = {f"{start}{key}{end}": value for key, value in wanted.items()}
    # Objects have no zeros.
    return {name: value for name, value in metrics.items() if name.startswith(start) and (value or name in wanted)}, wanted
