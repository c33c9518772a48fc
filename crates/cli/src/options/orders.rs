//! The commands that change a crawl, and what they say as orders. As JSON, a running process gets them.

use std::num::NonZeroU64;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use crawler::Order;
use crawler::config::parse_seed;
use frontier::{Canonicalizer, Class, CrawlPolicy, HostKey, HostPolicy, Time};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::kinds::{grant, or_default, parse_class};
use super::seeds::read_seeds;
use super::state::DirArgs;
use super::values::{parse_count, parse_duration, parse_duration_above_zero, parse_rate, show_duration};

/// An order to the crawl in a state directory, which may be running. It outlives restarts, and counts before the options.
#[derive(Debug, Subcommand, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum OrderCommand {
    /// Add seeds to a crawl, running or not.
    Add(Add),
    /// Drop hosts from a crawl, running or not, or all URLs that match: what waits, and what is found from now on.
    ///
    /// Requests in flight end normally. What is dropped is neither failed nor missing.
    Drop(Which),
    /// Take back what drop did: what was dropped is queued again.
    Allow(Which),
    /// Change limits of a crawl, running or not, or of a host, such as: set DIR example.com delay=10s per-host=2
    ///
    /// A host has what --set host= has. Without a host, the crawl has delay, max-pages, max-pages-per-host, max-depth, revisit-share, min-age, max-age,
    /// include and exclude, repeatable. NAME=default takes it back. Rules for URLs count for links that are found from then on.
    Set {
        #[command(flatten)]
        #[serde(skip)]
        of: DirArgs,
        /// Hosts, and NAME=VALUE or --NAME VALUE.
        #[arg(
            value_name = "HOST|NAME=VALUE",
            required = true,
            trailing_var_arg = true,
            allow_hyphen_values = true
        )]
        what: Vec<String>,
    },
    /// Pause a crawl that runs.
    Pause(#[serde(skip)] DirArgs),
    /// End the pause of a crawl.
    Unpause(#[serde(skip)] DirArgs),
    /// Stop a crawl that runs, as Ctrl-C does.
    Stop(#[serde(skip)] DirArgs),
}

#[derive(Debug, Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Add {
    #[command(flatten)]
    #[serde(skip)]
    pub(crate) of: DirArgs,
    /// Seeds, as those of a crawl.
    #[arg(value_name = "URL", required_unless_present = "seeds")]
    urls: Vec<String>,
    /// Read more seeds from a file.
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    seeds: Option<PathBuf>,
    /// What comes first, 0 to 7.
    #[arg(long, value_name = "CLASS", value_parser = parse_class)]
    #[serde(default)]
    class: Option<Class>,
    /// Fetch those again that have ended.
    #[arg(long)]
    #[serde(default)]
    again: bool,
}

#[derive(Debug, Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Which {
    #[command(flatten)]
    #[serde(skip)]
    of: DirArgs,
    /// Hosts.
    #[arg(value_name = "HOST", required_unless_present = "matching")]
    #[serde(default)]
    hosts: Vec<String>,
    /// URLs that match this regular expression; repeatable.
    #[arg(long, value_name = "REGEX")]
    #[serde(default)]
    matching: Vec<String>,
}

impl OrderCommand {
    pub(crate) fn of(&self) -> &DirArgs {
        match self {
            Self::Add(add) => &add.of,
            Self::Drop(which) | Self::Allow(which) => &which.of,
            Self::Set { of, .. } | Self::Pause(of) | Self::Unpause(of) | Self::Stop(of) => of,
        }
    }

    /// Reads the file of seeds, if any, and an option behind words: the process that runs may lie elsewhere.
    pub(crate) fn with_seeds(mut self) -> Result<Self, String> {
        if let Self::Set { of, what } = &mut self {
            // It takes all that follows.
            of.json |= what.iter().any(|word| word == "--json");
            what.retain(|word| word != "--json");
        }
        if let Self::Add(add) = &mut self
            && let Some(path) = add.seeds.take()
        {
            let read = read_seeds(&path, std::mem::take(&mut add.urls), &Canonicalizer::default());
            let (urls, links) = read.map_err(|error| error.to_string())?;
            if !links.is_empty() {
                return Err("pages of an earlier crawl cannot be added: give seeds".to_owned());
            }
            add.urls = urls;
        }
        Ok(self)
    }

    /// Returns the orders; none for those that only the process that runs can obey.
    pub(crate) fn orders(&self) -> Result<Vec<Order>, String> {
        Ok(match self {
            Self::Add(add) => vec![Order::Add {
                seeds: add.urls.clone(),
                class: add.class,
                again: add.again,
            }],
            Self::Drop(which) => which.orders(true)?,
            Self::Allow(which) => which.orders(false)?,
            Self::Set { what, .. } => set(what)?,
            Self::Pause(_) | Self::Unpause(_) | Self::Stop(_) => Vec::new(),
        })
    }
}

impl Which {
    fn orders(&self, drops: bool) -> Result<Vec<Order>, String> {
        let mut orders = Vec::new();
        let patterns = self.matching.clone();
        if !patterns.is_empty() {
            orders.push(Order::Crawl(Box::new(move |policy| {
                policy.dropped.retain(|pattern| !patterns.contains(pattern));
                policy.dropped.extend(patterns.iter().filter(|_| drops).cloned());
            })));
        }
        for host in &self.hosts {
            let close = move |policy: &mut HostPolicy| policy.closed = drops.then_some(true);
            orders.push(Order::Host(host_of(host)?, Box::new(close)));
        }
        Ok(orders)
    }
}

fn host_of(text: &str) -> Result<HostKey, String> {
    let seed = parse_seed(text, &Canonicalizer::default())
        .ok()
        .filter(|seed| !text.contains('*') && seed.url.url().path() == "/");
    let host = seed.map(|seed| seed.url.host());
    host.ok_or_else(|| format!("{text:?} is not a host: write one, such as example.com"))
}

/// Reads hosts, and what they or the crawl are granted.
fn set(what: &[String]) -> Result<Vec<Order>, String> {
    let (mut hosts, mut granted) = (Vec::new(), Vec::new());
    let mut words = what.iter();
    while let Some(word) = words.next() {
        let option = word.strip_prefix("--");
        match option.unwrap_or(word).split_once('=') {
            Some((name, value)) => granted.push((name.to_owned(), value.to_owned())),
            None if option.is_some() => {
                let value = words.next().ok_or_else(|| format!("{word} has no value"))?;
                granted.push((word[2..].to_owned(), value.clone()));
            }
            None if !granted.is_empty() => return Err(format!("{word:?} is no NAME=VALUE, and hosts come first")),
            None => hosts.push(host_of(word)?),
        }
    }
    if granted.is_empty() {
        return Err("nothing to change: write NAME=VALUE, such as delay=10s".to_owned());
    }
    if hosts.is_empty() {
        change_crawl(&mut CrawlPolicy::default(), &granted)?;
        // It was checked.
        let change = move |policy: &mut CrawlPolicy| _ = change_crawl(policy, &granted);
        return Ok(vec![Order::Crawl(Box::new(change))]);
    }
    let change_host = |policy: &mut HostPolicy, granted: &[(String, String)]| {
        granted.iter().try_for_each(|(name, value)| grant(policy, name, value))
    };
    change_host(&mut HostPolicy::default(), &granted)?;
    let orders = hosts.into_iter().map(|host| {
        let granted = granted.clone();
        let change = move |policy: &mut HostPolicy| _ = change_host(policy, &granted);
        Order::Host(host, Box::new(change))
    });
    Ok(orders.collect())
}

fn change_crawl(policy: &mut CrawlPolicy, granted: &[(String, String)]) -> Result<(), String> {
    let (mut include, mut exclude) = (Vec::new(), Vec::new());
    let positive = |text: &str| parse_count(text).map(NonZeroU64::get);
    for (name, value) in granted {
        match name.as_str() {
            "delay" => policy.delay = or_default(value, parse_duration)?,
            "max-pages" => policy.max_pages = or_default(value, positive)?,
            "max-pages-per-host" => policy.max_pages_per_host = or_default(value, positive)?,
            "max-depth" => policy.max_depth = or_default(value, parse_count)?,
            "revisit-share" => policy.revisit_share = or_default(value, parse_rate)?,
            "min-age" => policy.min_age = or_default(value, parse_duration_above_zero)?,
            "max-age" => policy.max_age = or_default(value, parse_duration_above_zero)?,
            "include" | "exclude" => {
                let (list, place) = match name.as_str() {
                    "include" => (&mut include, &mut policy.include),
                    _ => (&mut exclude, &mut policy.exclude),
                };
                list.extend((value != "default").then(|| value.clone()));
                *place = Some(list.clone()).filter(|list| !list.is_empty());
            }
            _ => {
                const KNOWN: &str = "delay, max-pages, max-pages-per-host, max-depth, revisit-share, min-age, max-age, include and exclude";
                return Err(format!(
                    "a running crawl has no {name:?}, but {KNOWN}; a host has others"
                ));
            }
        }
    }
    Ok(())
}

/// Shows the policy of a host or of the crawl, as it is written.
pub(crate) fn show_policy(policy: &impl Serialize) -> String {
    let text = |name: &str, value: &Value| match value {
        Value::Object(_) => serde_json::from_value(value.clone())
            .map(show_duration)
            .unwrap_or_default(),
        Value::Array(list) => list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "),
        Value::Number(time) if name == "closed_until" => {
            Time::from_millis(time.as_u64().unwrap_or_default()).to_string()
        }
        other => other.to_string(),
    };
    let fields = serde_json::to_value(policy).unwrap_or_default();
    let fields = fields.as_object().into_iter().flatten();
    let given = fields.filter(|(_, value)| !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty()));
    let given = given.map(|(name, value)| format!("{}={}", name.replace('_', "-"), text(name, value)));
    let given = given.collect::<Vec<_>>().join(", ");
    if given.is_empty() {
        "as the options say".to_owned()
    } else {
        given
    }
}
