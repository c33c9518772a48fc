//! Cookies (RFC 6265), one jar per origin.
//!
//! A jar is only ever asked by requests to the origin that filled it, so that the `Domain` of a cookie can take it nowhere else,
//! and no list of public suffixes is needed. A site that logs in on one host and is read on another needs more than that.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use cookie_store::{Cookie, CookieStore};
use frontier::Origin;
use reqwest::header::{HeaderMap, HeaderValue, SET_COOKIE};
use serde::{Deserialize, Serialize};
use url::Url;

use super::cookie_date::with_max_age;
use super::cookie_file::CookieFile;
use super::headers::{header_bytes, text_of};
use super::{HttpOptions, TargetCookies, lock};

/// The most cookies of one origin: what RFC 6265, section 6.1, asks for.
const MAX_COOKIES: usize = 50;
/// The most bytes of one cookie, its attributes included: what RFC 6265, section 6.1, asks for.
const MAX_COOKIE_BYTES: usize = 4096;
/// The most bytes of the cookies of one origin: most servers take no longer header.
const MAX_JAR_BYTES: usize = 8 * 1024;
/// The most origins that have cookies: together with the above, 16 MiB.
const MAX_JARS: usize = 2000;
/// The redirects that are remembered. When there are more, all are forgotten: a site that answers after it has set a cookie asks for it within
/// a few requests.
const MAX_REDIRECTS: usize = 2000;
/// How often the target of a redirect is asked again because its cookies are new. Some sites set another cookie each time.
const MAX_NEW_COOKIES: u8 = 5;

/// All jars of a crawl.
#[derive(Debug, Default)]
pub(super) struct Jars {
    held: Mutex<Held>,
    /// What each jar starts from. It is the user's, so the limits drop nothing of it.
    file: CookieFile,
    /// Whether this run neither sends nor sets any.
    is_unused: bool,
    /// Whether a jar was changed since the last [`save`](Jars::save).
    is_changed: AtomicBool,
}

/// The cookies of a run.
#[derive(Debug, Default)]
struct Held {
    by_origin: HashMap<Origin, CookieStore>,
    /// The hash of the last file of earlier runs.
    file: Option<u64>,
    /// Each URL that was redirected: the hash of the `Cookie` header that it got, and how often it was asked again for new ones.
    redirects: HashMap<String, (u64, u8)>,
    /// Origins whose cookies are not kept.
    refused: HashSet<Origin>,
}

/// The cookies of a run, for a later one.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct SavedJars {
    by_origin: Vec<(Origin, Vec<Cookie<'static>>)>,
    file: Option<u64>,
}

impl Jars {
    pub(super) fn new(http: &HttpOptions) -> Self {
        Self {
            file: http.cookie_file.clone().unwrap_or_default(),
            is_unused: http.cookie_file.is_none() && !http.cookies,
            ..Self::default()
        }
    }

    pub(super) fn header(&self, url: &Url) -> Option<HeaderValue> {
        if self.is_unused {
            return None;
        }
        match lock(&self.held).by_origin.get(&Origin::of(url)?) {
            Some(jar) => header_of(jar, url),
            // A jar is kept once its origin sets a cookie.
            None => header_of(&store_of(self.file.of_host(url)), url),
        }
    }

    /// Keeps what an answer sets; returns how many cookies were too much, and left out.
    pub(super) fn keep(&self, url: &Url, headers: &HeaderMap) -> usize {
        if !headers.contains_key(SET_COOKIE) {
            return 0;
        }
        let Some(origin) = Origin::of(url) else { return 0 };
        if self.is_unused {
            let refused = &mut lock(&self.held).refused;
            if refused.len() < MAX_JARS {
                refused.insert(origin);
            }
            return 0;
        }
        let all = headers.get_all(SET_COOKIE).iter();
        let (short, long): (Vec<_>, Vec<_>) = all.partition(|value| value.len() <= MAX_COOKIE_BYTES);
        // What is no cookie, or one for another host, is refused, as browsers do; nobody needs to know.
        let read = |value: &HeaderValue| Cookie::parse(with_max_age(&text_of(value.as_bytes())), url).ok();
        let mut cookies = short.into_iter().filter_map(read).peekable();
        let mut dropped = long.len();
        if cookies.peek().is_none() {
            return dropped;
        }
        let jars = &mut lock(&self.held).by_origin;
        let known = jars.remove(&origin);
        let is_known = known.is_some();
        let is_full = !is_known && jars.len() >= MAX_JARS;
        let mut jar = known.unwrap_or_else(|| store_of(self.file.of_host(url)));
        for cookie in cookies {
            if cookie.is_expired() || !is_full && has_room(&jar, &cookie) {
                let _ = jar.insert(cookie, url);
            } else {
                dropped += 1;
            }
        }
        // The store keeps what has run out.
        let jar = store_of(jar.iter_unexpired());
        // An empty jar is needed only where the file has some.
        let is_kept = !is_full && (jar.iter_any().next().is_some() || self.file.of_host(url).next().is_some());
        if is_kept {
            jars.insert(origin, jar);
        }
        self.is_changed.fetch_or(is_known || is_kept, Ordering::Relaxed);
        dropped
    }

    /// Says what a redirect from a URL, which got a `Cookie` header, to another one, which gets one, has to do with cookies.
    pub(super) fn redirected(
        &self,
        (from, got): (&Url, Option<&HeaderValue>),
        (to, gets): (&Url, Option<&HeaderValue>),
    ) -> TargetCookies {
        let mut held = lock(&self.held);
        if self.is_unused {
            let is_refused = |url| Origin::of(url).is_some_and(|origin| held.refused.contains(&origin));
            return match is_refused(from) || is_refused(to) {
                true => TargetCookies::NotKept,
                false => TargetCookies::AsBefore,
            };
        }
        if held.redirects.len() >= MAX_REDIRECTS {
            held.redirects.clear();
        }
        held.redirects.entry(from.to_string()).or_default().0 = hash_of(got);
        match held.redirects.get_mut(to.as_str()) {
            Some((last, times)) if *last != hash_of(gets) && *times < MAX_NEW_COOKIES => {
                *times += 1;
                TargetCookies::New
            }
            _ => TargetCookies::AsBefore,
        }
    }

    pub(super) fn take_changed(&self) -> bool {
        self.is_changed.swap(false, Ordering::Relaxed)
    }

    pub(super) fn save(&self) -> SavedJars {
        let held = lock(&self.held);
        let saved = |(origin, jar): (&Origin, &CookieStore)| (origin.clone(), jar.iter_any().cloned().collect());
        SavedJars {
            by_origin: held.by_origin.iter().map(saved).collect(),
            file: self.file.hash.or(held.file),
        }
    }

    /// Takes the cookies of an earlier run. Those of a file that is new, or has changed, win over them; with the same file as before the site
    /// may have replaced them since.
    pub(super) fn restore(&self, saved: SavedJars) {
        let mut held = lock(&self.held);
        let is_new = self.file.hash.is_some_and(|hash| saved.file != Some(hash));
        held.file = saved.file;
        for (origin, cookies) in saved.by_origin.into_iter().take(MAX_JARS) {
            let url = origin.robots_url();
            let new = self.file.of_host(&url).filter(|_| is_new);
            held.by_origin.insert(origin, store_of(cookies.iter().chain(new)));
        }
        self.is_changed.fetch_or(is_new, Ordering::Relaxed);
    }
}

/// Returns the `Cookie` header with what a jar has for a request: longer paths first (RFC 6265, section 5.4), since many servers
/// read only the first cookie of a name.
fn header_of(jar: &CookieStore, url: &Url) -> Option<HeaderValue> {
    let mut cookies = jar.matches(url);
    cookies.sort_by_key(|cookie| (Reverse(cookie.path.len()), cookie.name()));
    let pair = |cookie: &&Cookie<'_>| format!("{}={}", cookie.name(), cookie.value());
    let pairs: Vec<_> = cookies.iter().map(pair).collect();
    let mut value = HeaderValue::from_bytes(&header_bytes(&pairs.join("; ")))
        .ok()
        .filter(|value| !value.is_empty())?;
    value.set_sensitive(true);
    Some(value)
}

fn hash_of(header: Option<&HeaderValue>) -> u64 {
    let mut hasher = DefaultHasher::new();
    header.map(HeaderValue::as_bytes).hash(&mut hasher);
    hasher.finish()
}

fn store_of<'c>(cookies: impl Iterator<Item = &'c Cookie<'static>>) -> CookieStore {
    let Ok(store) = CookieStore::from_cookies(cookies.cloned().map(Ok::<_, Infallible>), false);
    store
}

/// Whether a cookie has room beside all others. The one in whose place it comes is of the same domain and path, too.
fn has_room(jar: &CookieStore, cookie: &Cookie<'_>) -> bool {
    let is_other = |other: &&Cookie<'static>| name_of(other) != name_of(cookie);
    let others = || jar.iter_any().filter(is_other);
    let bytes: usize = others().map(bytes_of).sum();
    others().count() < MAX_COOKIES && bytes + bytes_of(cookie) <= MAX_JAR_BYTES
}

fn name_of<'c>(cookie: &'c Cookie<'_>) -> (String, &'c str, &'c str) {
    (String::from(&cookie.domain), &cookie.path, cookie.name())
}

fn bytes_of(cookie: &Cookie<'_>) -> usize {
    cookie.name().chars().count() + cookie.value().chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    fn set(jars: &Jars, at: &str, cookies: &[impl AsRef<str>]) -> usize {
        let mut headers = HeaderMap::new();
        for cookie in cookies {
            headers.append(SET_COOKIE, HeaderValue::from_str(cookie.as_ref()).unwrap());
        }
        jars.keep(&url(at), &headers)
    }

    fn sent(jars: &Jars, to: &str) -> Vec<String> {
        let value = jars.header(&url(to));
        let pairs = value.iter().flat_map(|value| value.to_str().unwrap().split("; "));
        let mut pairs: Vec<String> = pairs.map(str::to_owned).collect();
        pairs.sort();
        pairs
    }

    #[test]
    fn cookies_go_back_to_the_origin_that_set_them_and_nowhere_else_also_in_a_later_run() {
        let jars = Jars::default();
        let site = "https://www.example.com/x/y";
        let cookies = [
            "a=1; Path=/x",
            "b=2; Domain=example.com; Path=/; Max-Age=3600",
            "c=3; Secure; Path=/",
            "d=4; Max-Age=0",
            "e=5",
            "f=6; Path=/; Expires=Wed, 01 Jan 2020 00:00:00 GMT",
        ];
        assert_eq!(set(&jars, site, &cookies), 0);
        set(&jars, "http://other.example:81/", &["g=7; Path=/"]);
        assert!(jars.take_changed() && !jars.take_changed());
        let later = Jars::default();
        later.restore(serde_json::from_slice(&serde_json::to_vec(&jars.save()).unwrap()).unwrap());
        for (to, expected) in [
            ("https://www.example.com/x/z", &["a=1", "b=2", "c=3", "e=5"][..]),
            ("https://www.example.com/", &["b=2", "c=3"]),
            ("http://other.example:81/p", &["g=7"]),
            ("http://other.example/p", &[]),
            ("http://www.example.com/x/y", &[]),
            ("https://example.com/x/y", &[]),
            ("https://m.example.com/x/y", &[]),
            ("https://www.example.com:8443/x/y", &[]),
        ] {
            assert_eq!(sent(&jars, to), expected, "{to}");
            assert_eq!(sent(&later, to), expected, "{to}, later");
        }
        set(&jars, site, &["e=; Max-Age=0"]);
        assert_eq!(sent(&jars, "https://www.example.com/x/z"), ["a=1", "b=2", "c=3"]);
    }

    #[test]
    fn the_cookies_of_a_file_are_sent_at_once_and_replaced_by_what_the_site_sets() {
        let lines = [
            "example.com\tTRUE\t/\tFALSE\t0\tid\told",
            "example.com\tFALSE\t/x\tTRUE\t0\tkey\tk",
        ];
        let file = CookieFile::parse(lines.join("\n"), "c.txt").unwrap();
        let jars = Jars::new(&HttpOptions {
            cookie_file: Some(file),
            ..HttpOptions::default()
        });
        assert_eq!(sent(&jars, "https://example.com/x"), ["id=old", "key=k"]);
        assert_eq!(sent(&jars, "http://example.com/x"), ["id=old"]);
        assert_eq!(sent(&jars, "https://www.example.com/x"), ["id=old"]);
        assert_eq!(sent(&jars, "https://other.example/x"), Vec::<String>::new());
        set(&jars, "https://example.com/", &["id=new; Path=/; Domain=example.com"]);
        assert_eq!(sent(&jars, "https://example.com/x"), ["id=new", "key=k"]);
        assert_eq!(sent(&jars, "https://www.example.com/x"), ["id=old"], "another origin");
        set(
            &jars,
            "https://www.example.com/",
            &["id=; Path=/; Domain=example.com; Max-Age=0"],
        );
        assert_eq!(sent(&jars, "https://www.example.com/x"), Vec::<String>::new());
    }

    #[test]
    fn a_cookie_whose_end_is_past_is_gone_however_its_date_is_written() {
        let jars = Jars::default();
        let site = "http://site.example/";
        for end in [
            "Expires=Thu Jan  1 00:00:00 1970",
            "expires=1 jan 2020 0:0:1",
            "Expires=Wed, 01 Jan 2020 00:00:00 GMT+0000 (Coordinated Universal Time)",
            "Expires=\"Wed, 01-Jan-20 00:00:00 GMT\"",
            "Max-Age=soon; Expires=2020 Jan 01 00:00:00",
            "Expires=1 Jan 2999 0:0:0; Expires=1 Jan 2020 0:0:0; Expires=never",
            "Max-Age=0; Expires=1 Jan 2999 0:0:0",
        ] {
            set(&jars, site, &["a=1"]);
            set(&jars, site, &[format!("a=1; {end}")]);
            assert_eq!(sent(&jars, site), Vec::<String>::new(), "{end}");
        }
        for end in [
            "Expires=1 Jan 2999 0:0:0",
            "Expires=1 Jan 0020",
            "Max-Age=9; Expires=1 Jan 2020 0:0:0",
        ] {
            set(&jars, site, &[format!("a=1; {end}")]);
            assert_eq!(sent(&jars, site), ["a=1"], "{end}");
        }
    }

    #[test]
    fn of_cookies_with_one_name_the_one_for_the_longer_path_is_sent_first() {
        let pairs: Vec<String> = (0..8)
            .map(|n| format!("id={n}; Path={}", &"/a/b/c/d/e/f/g/h"[..=2 * n]))
            .collect();
        let jars = Jars::default();
        set(&jars, "http://example.com/", &pairs);
        let header = jars.header(&url("http://example.com/a/b/c/d/e/f/g/h"));
        let expected = "id=7; id=6; id=5; id=4; id=3; id=2; id=1; id=0";
        assert_eq!(header.unwrap().to_str().unwrap(), expected);
    }

    #[test]
    fn a_flood_fills_no_more_than_the_jar_and_what_is_over_is_counted() {
        let jars = Jars::default();
        let many: Vec<String> = (0..10_000).map(|n| format!("n{n}=x")).collect();
        assert_eq!(set(&jars, "http://many.example/", &many), 10_000 - MAX_COOKIES);
        assert_eq!(sent(&jars, "http://many.example/").len(), MAX_COOKIES);
        let large: Vec<String> = (0..40).map(|n| format!("n{n}={}", "x".repeat(1000))).collect();
        assert_eq!(set(&jars, "http://large.example/", &large), 32);
        assert_eq!(sent(&jars, "http://large.example/").len(), 8);
        let giant = format!("n={}", "x".repeat(MAX_COOKIE_BYTES));
        assert_eq!(set(&jars, "http://giant.example/", &[giant]), 1);
        assert_eq!(sent(&jars, "http://giant.example/").len(), 0);
    }

    #[test]
    fn what_is_no_cookie_or_has_run_out_takes_the_place_of_none() {
        let (jars, site) = (Jars::default(), "http://site.example/");
        let junk = std::iter::repeat_n("junk", 3 * MAX_COOKIES);
        assert_eq!(set(&jars, site, &junk.chain(["a=b"]).collect::<Vec<_>>()), 0);
        assert_eq!(sent(&jars, site), ["a=b"]);
        for page in 0..3 {
            for end in ["", "; Max-Age=0"] {
                let cookies = (0..MAX_COOKIES).map(|n| format!("p{page}n{n}=x{end}"));
                set(&jars, "http://short.example/", &cookies.collect::<Vec<_>>());
                let kept = if end.is_empty() { MAX_COOKIES } else { 0 };
                assert_eq!(sent(&jars, "http://short.example/").len(), kept, "page {page}{end}");
            }
        }
        for n in 0..MAX_JARS {
            assert_eq!(set(&jars, &format!("http://junk{n}.example/"), &["junk"]), 0);
        }
        let dropped = |n| set(&jars, &format!("http://h{n}.example/"), &["a=b"]);
        assert_eq!((0..MAX_JARS).map(dropped).sum::<usize>(), 1, "one site has a jar");
        let deletion = ["a=; Max-Age=0", "b=c; Domain=other.example"];
        assert_eq!(set(&jars, "http://late.example/", &deletion), 0);
    }
}
