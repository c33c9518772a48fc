//! The options and settings of the table, in the groups of the help.

use super::kinds::{
    Count, First, Hash, Hidden, Host, Kind, Last, Limit, Line, LongTime, Many, Maybe, Name, Off, PerSecond, Positive,
    Rule, Share, Size, Switch, Text, Time,
};
use super::settings::Form::{Choice, Flag, List, SetOnly, Value};
use super::settings::Setting;

const REACHES: &[(&str, &str)] = &[
    ("host", "Links to the host of a seed, on every port"),
    (
        "site",
        "Links to the registrable domain of a seed: from www.example.com also docs.example.com",
    ),
    (
        "prefix",
        "Links to the host and the directory of a seed: from example.com/docs/ also example.com/docs/a",
    ),
    ("any", "All links"),
];
const POLICIES: &[(&str, &str)] = &[
    (
        "warn",
        "Drop a growing share of the new URLs; the log and the summary say at least how many",
    ),
    (
        "grow",
        "Add a layer: the share that is dropped stays as promised, and the memory grows",
    ),
    (
        "refuse",
        "Refuse new URLs, fetch what is queued, and count the links that were refused",
    ),
];

/// Each row: its help, its names, the kind of its value, its place in [`Settings`](super::settings::Settings), and its form.
macro_rules! table {
    ($($group:literal {$(
        $(#[doc = $about:literal])+
        [$($name:literal),+] $kind:ty => $($place:ident).+, $form:expr;
    )+})+) => {
        &[$($(Setting {
            group: $group,
            names: &[$($name),+],
            about: &[$($about),+],
            place: concat!($(".", stringify!($place)),+),
            form: $form,
            show: |settings| <$kind as Kind<_>>::show(&settings.$($place).+),
            write: |settings, text| <$kind as Kind<_>>::write(&mut settings.$($place).+, text),
        },)+)+]
    };
}

pub(crate) const ALL: &[Setting] = table! {
    "Output" {
        /// Maximum values of one --select field on a page.
        ["max-select-values"] Count => crawl.reports.select_limits.values, SetOnly;
        /// Maximum size of all values of one --select field on a page.
        ["max-select-bytes"] Size => crawl.reports.select_limits.bytes, SetOnly;
        /// Size of a file of --output, --links, --refused or --warc after which FILE-00001.jsonl and so on follow.
        ["output-max-bytes"] Maybe<Size> => output_max_bytes, SetOnly;
        /// Name or address of the archive's operator, for the header of --warc.
        ["warc-operator"] Maybe<Line> => warc_operator, SetOnly;
    }
    "Scope" {
        /// Which links to follow.
        ["scope", "reach"] Name => crawl.frontier.scope.reach, Choice("REACH", REACHES);
        /// Maximum links from a seed to a page.
        ///
        /// If there are several paths to a page, the first one found counts. With 0, only the seeds are fetched. By
        /// default there is no limit.
        ["max-depth", "d", "depth"] Maybe<Count> => crawl.frontier.scope.max_depth, Value("N");
        /// Follow only URLs that match this regular expression; repeatable.
        ///
        /// If the option is repeated, a URL has to match one of the expressions. Seeds are fetched anyway, but no other page that does not match,
        /// so nothing is found behind those: to follow all and get only what matches, give --output-include instead.
        ["include"] Many<Text> => crawl.frontier.scope.include, List("REGEX");
        /// Do not follow URLs that match this regular expression; repeatable.
        ["exclude"] Many<Text> => crawl.frontier.scope.exclude, List("REGEX");
        /// Fetch URLs that match this regular expression before all others; repeatable.
        ///
        /// Their class is 0, that of the others 3. Of each host and of all hosts, the best class has its turn; one turn in eight is for the
        /// class that was served longest ago, so that nothing waits for ever. What is queued already keeps its class.
        ["first"] Many<First> => crawl.frontier.order, List("REGEX");
        /// Fetch URLs that match this regular expression after all others; repeatable.
        ///
        /// Their class is 7. A URL that matches --first, too, comes first.
        ["last"] Many<Last> => crawl.frontier.order, List("REGEX");
        /// The class of URLs that match a regular expression, 0 to 7, as CLASS REGEX; in a file, a table [[order]] with match and class.
        ///
        /// The first that matches counts: first those of --first and --last, then those of a file, then others.
        ["order"] Many<Rule> => crawl.frontier.order, SetOnly;
        /// What a host is granted, such as "*.example.com delay=10s"; repeatable; in a file, a table [hosts."*.example.com"].
        ///
        /// The host is a name, or *. and a name for its subdomains. It may have delay, max-crawl-delay, per-host, max-pages, class, closed (true:
        /// nothing is fetched, and what waits is dropped) and closed-until. Of each, the most specific host that has it counts.
        ["host"] Host => crawl.frontier.hosts, SetOnly;
        /// Find pages through sitemaps, too.
        ///
        /// The crawler reads the sitemaps that robots.txt names. Where it names none, the crawler tries /sitemap.xml and
        /// /sitemap_index.xml. A seed that is a sitemap or a feed is read as one without this option, too.
        ["sitemaps"] Switch => crawl.pages.sitemaps, Flag;
        /// Fetch images, media, scripts and style sheets, too.
        ///
        /// The scope and the limits apply to them as to pages, but no maximum depth. At most five in a row are followed, such as style
        /// sheets that load style sheets.
        ["assets"] Switch => crawl.pages.assets, Flag;
        /// Follow links that say nofollow, too.
        ///
        /// Also those of pages whose robots meta element or X-Robots-Tag says it. To check links, follow them: what is broken is broken for
        /// readers, too.
        ["follow-nofollow"] Switch => crawl.pages.follow_nofollow, Flag;
        /// Give links the data of the page that they are found on.
        ///
        /// A seed has data if its line has more behind a tab, such as the number of a customer: so each page of --output says whose it is.
        /// Pages that are found through the sitemaps of a site have none.
        ["inherit-data"] Switch => crawl.pages.inherit_data, Flag;
        /// Connect to private, loopback and link-local addresses, too.
        ///
        /// Without this option, only a seed can point to such an address, and only its own origin is fetched.
        ["allow-private-addresses"] Switch => http.allow_private_addresses, Flag;
        /// Do not trust the seeds: their addresses must be public, too.
        ///
        /// For seeds that somebody else has chosen, such as links that an earlier crawl has found. Headers and logins would be sent to them, so
        /// they cannot be given.
        ["untrusted-seeds"] Switch => http.untrusted_seeds, Flag;
        /// Treat as the same URL, ignoring this query parameter; repeatable.
        ///
        /// With sid, /a?sid=1 and /a?sid=2 are the same. A name that ends in *, such as utm_*, stands for all names that start
        /// like it.
        ["drop-query-param"] Many<Text> => rules.drop_query_params, List("NAME");
        /// Treat /a? and /a as the same URL.
        ["drop-empty-query"] Switch => rules.drop_empty_query, SetOnly;
        /// Treat /a/ and /a as the same URL.
        ["drop-trailing-slash"] Switch => rules.drop_trailing_slash, SetOnly;
        /// Treat /?a&b and /?b&a as the same URL.
        ["sort-query"] Switch => rules.sort_query, SetOnly;
        /// Treat http and https as the same URL.
        ["ignore-scheme"] Switch => rules.ignore_scheme, SetOnly;
        /// Treat www.example.com and example.com as the same host.
        ["ignore-www"] Switch => rules.ignore_www, SetOnly;
        /// Treat /Index.html and /index.html as the same URL.
        ["lower-case-path"] Switch => rules.lower_case_path, SetOnly;
        /// Maximum redirects in a row to follow.
        ["max-redirects"] Count => crawl.frontier.scope.max_redirects, SetOnly;
        /// Maximum sitemap indexes in a row above a sitemap.
        ["max-sitemap-nesting"] Count => crawl.frontier.scope.max_sitemap_nesting, SetOnly;
        /// Maximum repetitions of one path segment in a URL, as in /a/b/a/b.
        ["max-path-repeats"] Positive => crawl.frontier.scope.max_path_repeats, SetOnly;
        /// Maximum length of a URL.
        ["max-url-bytes"] Size => crawl.frontier.scope.max_url_bytes, SetOnly;
    }
    "Limits" {
        /// Maximum pages to fetch in total; each final answer counts, also 404.
        ///
        /// A page that failed counts, a redirect does not. The row `pages` of the summary has answers with a status 2xx only. By default
        /// there is no limit.
        ["max-pages"] Maybe<Positive> => crawl.frontier.limits.max_pages, Value("N");
        /// Maximum pages to fetch from one host.
        ///
        /// By default there is no limit.
        ["max-pages-per-host"] Maybe<Positive> => crawl.frontier.limits.max_pages_per_host, Value("N");
        /// Start no request after this time.
        ///
        /// By default there is no limit.
        ["max-time"] Maybe<Time> => crawl.max_time, Value("DURATION");
        /// Maximum links to follow from one page.
        ["max-links-per-page"] Count => crawl.pages.max_links_per_page, SetOnly;
        /// Maximum sitemaps to read in total.
        ["max-sitemaps"] Count => crawl.frontier.limits.max_sitemaps, SetOnly;
        /// Maximum size of a sitemap, after decompression.
        ["max-sitemap-bytes"] Size => crawl.pages.max_sitemap_bytes, SetOnly;
        /// Maximum URLs to take from one sitemap.
        ["max-sitemap-urls"] Count => crawl.pages.max_sitemap_urls, SetOnly;
        /// Maximum hosts to remember; URLs of further hosts are refused.
        ["max-hosts"] Positive => crawl.frontier.limits.max_hosts, SetOnly;
        /// Maximum URLs that wait, in memory without --state; further ones are refused, and counted.
        ["max-queued"] Count => crawl.frontier.limits.max_queued, SetOnly;
        /// Maximum links for other partitions that wait on disk; beyond it, no page is fetched until some are received.
        ["max-outbox"] Positive => crawl.frontier.limits.max_outbox, SetOnly;
    }
    "Politeness" {
        /// Wait between two requests to one host.
        ///
        /// The time counts from the end of a request to the start of the next. A longer Crawl-delay in the robots.txt of the
        /// host is used instead. With 0 there is no wait.
        ["delay", "wait"] Time => crawl.frontier.politeness.delay, Value("DURATION");
        /// Maximum requests in flight in total; 16 by default.
        ///
        /// By default four times as many as to one host, but at least 16 and at most 64; with a bound of the memory, 16. With a state
        /// directory, requests that have ended count until they are committed: after a crash, at most this number is sent again.
        ["concurrency", "j", "threads", "workers"] Maybe<Positive> => concurrency, Value("N");
        /// Maximum requests in flight to one host.
        ["per-host"] Positive => crawl.frontier.politeness.per_host, Value("N");
        /// Apply --per-host and --delay to each IP address, too.
        ///
        /// Several hosts at one address then share one limit. The address of each host is looked up before its first request.
        ["per-address"] Switch => crawl.frontier.politeness.per_address, Flag;
        /// User-Agent; the name of the crawler in it selects the robots.txt group.
        ///
        /// It is what the text starts with, or what follows "compatible;" in "Mozilla/5.0 (compatible; mybot/1.0; +https://example.com)".
        /// --set robots-name=NAME names another one.
        ["user-agent", "U", "agent"] Text => crawl.user_agent, Value("TEXT");
        /// Fetch what robots.txt forbids; for your own sites only.
        ///
        /// The crawler does not request robots.txt, so that Crawl-delay has no effect either.
        ["ignore-robots"] Off => crawl.frontier.politeness.ask_robots, Flag;
        /// Name that selects the robots.txt group, if it is not the one in --user-agent.
        ["robots-name"] Line => crawl.frontier.politeness.robots_name, SetOnly;
        /// Maximum Crawl-delay of a robots.txt to obey; with 0, only --delay counts.
        ["max-crawl-delay"] Time => crawl.frontier.politeness.max_crawl_delay, SetOnly;
    }
    "Requests" {
        /// Maximum time for one request.
        ["timeout"] LongTime => http.timeout, Value("DURATION");
        /// Maximum size of a body, after decompression.
        ///
        /// The rest of a longer body is not read. Its record says so.
        ["max-body"] Size => http.max_body_bytes, Value("SIZE");
        /// Send this header, such as "Accept-Language: de"; repeatable.
        ///
        /// Only the origins of the seeds receive it.
        ["header", "H"] Many<Hidden> => http.headers, List("NAME: VALUE");
        /// Log in with HTTP basic authentication; repeatable.
        ///
        /// USER:PASSWORD is for the origin of the first seed. ORIGIN=USER:PASSWORD names another origin, such as
        /// https://example.com=me:secret. No other origin receives the login. Users of this machine can see the command line; a
        /// configuration file hides the login from them.
        ["basic-auth"] Many<Hidden> => http.logins, List("LOGIN");
        /// Keep cookies and send them back to their origin.
        ["cookies"] Switch => http.cookies, Flag;
        /// Accept any certificate: expired, of another host, or unsigned.
        ///
        /// An attacker on the network can then read and change all data, as without https. Logins and cookies are still sent: do not
        /// give secret ones.
        ["insecure"] Switch => http.accept_any_certificate, Flag;
        /// Send all requests through this proxy.
        ///
        /// The URL starts with http://, https://, socks5:// or socks5h://. The crawler cannot see which addresses the proxy
        /// connects to. It refuses private addresses only if a URL has them.
        ///
        /// Without this option, http_proxy, https_proxy, all_proxy (where these are not set) and no_proxy are obeyed, each also in upper case if
        /// it is not set in lower case; not for loopback, and not with --untrusted-seeds. --set environment-proxies=false ignores them.
        ["proxy"] Maybe<Hidden> => http.proxy, Value("URL");
        /// Maximum time to connect.
        ["connect-timeout"] LongTime => http.connect_timeout, SetOnly;
        /// Maximum headers of one response, never more than 16 384.
        ["max-headers"] Positive => http.max_headers, SetOnly;
        /// Maximum size of the headers of one response.
        ["max-header-bytes"] Size => http.max_header_bytes, SetOnly;
        /// Maximum connections to keep open for later requests.
        ["max-idle-connections"] Positive => http.max_idle_connections, SetOnly;
        /// Use HTTP/1.1 only; servers that offer HTTP/2 and refuse it do not need this.
        ["only-http1"] Switch => http.only_http1, SetOnly;
        /// Use the proxies of HTTP_PROXY, HTTPS_PROXY and ALL_PROXY.
        ["environment-proxies"] Switch => http.environment_proxies, SetOnly;
    }
    "Retries" {
        /// Maximum requests for one URL that fails.
        ["max-attempts"] Positive => crawl.frontier.retries.max_attempts, Value("N");
        /// Wait before the second request for a URL; it doubles with each further one.
        ["retry-wait"] Time => crawl.frontier.retries.retry_wait, SetOnly;
        /// Maximum wait before a retry, even if the server asks for more.
        ["max-retry-wait"] Time => crawl.frontier.retries.max_retry_wait, SetOnly;
        /// Random addition to each wait before a retry, in percent.
        ["retry-jitter"] Count => crawl.frontier.retries.retry_jitter, SetOnly;
        /// How long to retry an origin that stopped responding; then its queued URLs are dropped.
        ["max-host-downtime"] Time => crawl.frontier.retries.max_host_downtime, SetOnly;
        /// How long to retry an origin that has never responded.
        ["max-first-downtime"] Time => crawl.frontier.retries.max_first_downtime, SetOnly;
        /// Wait after a 429 without Retry-After; it doubles each time in a row.
        ["throttle-wait"] Time => crawl.frontier.retries.throttle_wait, SetOnly;
        /// Throttling answers (429, 503 with Retry-After) in a row after which an origin is given up; also how often one URL is put off.
        ["max-throttles"] Positive => crawl.frontier.retries.max_throttles, SetOnly;
    }
    "Freshness" {
        /// Share of the requests that politeness allows a host, for visiting pages again.
        ["revisit-share"] Share => crawl.frontier.freshness.revisit_share, SetOnly;
        /// Maximum visits again per second, of all hosts.
        ["revisits-per-second"] Maybe<PerSecond> => crawl.frontier.freshness.revisits_per_second, SetOnly;
        /// No page is visited again sooner.
        ["min-age"] LongTime => crawl.frontier.freshness.min_age, SetOnly;
        /// Every page is visited again after this time, as far as hosts and budget allow.
        ["max-age"] LongTime => crawl.frontier.freshness.max_age, SetOnly;
    }
    "Traps" {
        /// Near-duplicates after which a path prefix or a site goes last; 0: no limit.
        ["max-near-duplicates"] Limit => crawl.frontier.traps.max_near_duplicates, SetOnly;
        /// Near-duplicates after which a path prefix or a site is closed; 0: no limit.
        ["max-near-duplicates-in-all"] Limit => crawl.frontier.traps.max_near_duplicates_in_all, SetOnly;
        /// Number of recent pages to compare each page with, at about 200 bytes each.
        ["max-fingerprints"] Positive => crawl.frontier.traps.max_fingerprints, SetOnly;
        /// Maximum different queries of one path to follow; 0: no limit.
        ["max-queries-per-path"] Limit => crawl.frontier.traps.max_queries_per_path, SetOnly;
        /// Maximum hosts of one registrable domain to follow; 0: no limit.
        ["max-hosts-per-site"] Limit => crawl.frontier.traps.max_hosts_per_site, SetOnly;
    }
    "Seen-set" {
        /// Number of distinct URLs that the seen-set is sized for.
        ///
        /// The seen-set is a Bloom filter. What happens beyond this number is another option.
        ["capacity"] Count => crawl.frontier.seen_set.capacity, Value("N");
        /// Share of new URLs that the seen-set wrongly takes as seen, at its capacity.
        ///
        /// Write a fraction such as 0.01, or a percentage such as 1%. The crawl misses these URLs.
        ["false-positive-rate"] Share => crawl.frontier.seen_set.false_positive_rate, Value("SHARE");
        /// What happens beyond the capacity of the seen-set.
        ["on-saturation"] Name => crawl.frontier.seen_set.on_saturation, Choice("POLICY", POLICIES);
        /// Never take a new URL for one that was seen.
        ///
        /// Without a state directory it keeps all URLs in memory, each with about 32 bytes more. With one it looks up on disk what the Bloom
        /// filter takes for seen; the other options of the seen-set say how often that is for nothing.
        ["exact"] Switch => crawl.frontier.seen_set.exact, Flag;
        /// Hash function of the seen-set: murmur3, xxh3, or hardened (SipHash-2-4, against crafted URLs).
        ["hash"] Hash => crawl.frontier.seen_set.hash, SetOnly;
        /// Seed or key of the hash; the same number repeats a crawl exactly, and must be kept secret.
        ["hash-seed"] Maybe<Count> => hash_seed, SetOnly;
    }
};
