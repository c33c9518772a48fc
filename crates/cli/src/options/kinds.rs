//! Kinds of values: how each is read and written.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::marker::PhantomData;
use std::num::{NonZeroU32, NonZeroU64, ParseIntError};
use std::str::FromStr;
use std::time::Duration;

use crawler::fetch::Secret;
use frontier::{Class, HostPolicy, NoClass, OrderRule};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sieve::Hashing;

use super::values::{parse_count, parse_duration, parse_duration_above_zero, parse_rate, parse_size, parse_time};
use super::values::{show_count, show_duration, show_size};

/// A kind of value.
pub(super) trait Kind<T> {
    fn read(text: &str) -> Result<T, String>;

    /// An empty text is no value.
    fn show(value: &T) -> String;

    fn write(place: &mut T, text: &str) -> Result<(), String> {
        *place = Self::read(text)?;
        Ok(())
    }
}

macro_rules! kind {
    ($(#[doc = $doc:literal])* $kind:ident<$value:ty>: $read:expr, $show:expr) => {
        $(#[doc = $doc])*
        pub(super) struct $kind;

        impl Kind<$value> for $kind {
            fn read(text: &str) -> Result<$value, String> {
                ($read)(text)
            }

            fn show(value: &$value) -> String {
                ($show)(value)
            }
        }
    };
}

kind!(Time<Duration>: parse_duration, |time: &Duration| show_duration(*time));
kind!(
    /// A time above zero.
    LongTime<Duration>: parse_duration_above_zero, |time: &Duration| show_duration(*time)
);
kind!(Switch<bool>: |text: &str| text.parse().map_err(|_| "write true or false".to_owned()), bool::to_string);
kind!(
    /// A flag that switches off.
    Off<bool>: |text| Switch::read(text).map(|is_on| !is_on), |is_on: &bool| (!is_on).to_string()
);
kind!(Share<f64>: parse_rate, f64::to_string);
kind!(
    PerSecond<f64>: |text: &str| {
        let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
        number.ok_or_else(|| "write a number above zero, such as 0.5".to_owned())
    },
    f64::to_string
);
kind!(
    /// A number, or 0 for no limit.
    Limit<Option<NonZeroU32>>: |text| parse_count(text).map(NonZeroU32::new),
    |limit: &Option<NonZeroU32>| show_count(limit.map_or(0, NonZeroU32::get).into())
);
kind!(Text<String>: |text: &str| Ok(text.to_owned()), |text: &String| text.clone());
kind!(
    /// One line of text.
    Line<String>: |text: &str| match text.is_empty() || text.contains(char::is_control) {
        true => Err("give one line of text".to_owned()),
        false => Ok(text.to_owned()),
    },
    |text: &String| text.clone()
);
kind!(
    /// A text that is never shown.
    Hidden<Secret>: |text: &str| Ok(Secret::from(text)), |_: &_| String::new()
);

kind!(
    /// A pattern of what comes first.
    First<OrderRule>: |text| Ok(rule(Class::FIRST, text)), |_: &_| String::new()
);
kind!(
    /// A pattern of what comes last.
    Last<OrderRule>: |text| Ok(rule(Class::LAST, text)), |_: &_| String::new()
);
kind!(
    /// A class and a pattern.
    Rule<OrderRule>: |text: &str| {
        let (class, pattern) = text.split_once(' ').ok_or("write CLASS REGEX, such as 0 /news/")?;
        Ok(rule(parse_class(class)?, pattern))
    },
    |_: &_| String::new()
);

pub(super) fn parse_class(text: &str) -> Result<Class, String> {
    let number = parse_count::<u32>(text)?;
    let class = u8::try_from(number).unwrap_or(u8::MAX).try_into();
    class.map_err(|error: NoClass| error.to_string())
}

/// The policies of hosts, each as a pattern of hosts and what they are granted.
pub(super) struct Host;

impl Kind<BTreeMap<String, HostPolicy>> for Host {
    fn read(text: &str) -> Result<BTreeMap<String, HostPolicy>, String> {
        let assignment = text
            .split_once(' ')
            .and_then(|(host, rest)| Some((host, rest.split_once('=')?)));
        let (host, (name, value)) = assignment.ok_or("write HOST NAME=VALUE, such as example.com delay=10s")?;
        let mut policy = HostPolicy::default();
        grant(&mut policy, name, value)?;
        let host = HostPolicy::pattern(host).map_err(|error| error.to_string())?;
        Ok(BTreeMap::from([(host, policy)]))
    }

    fn show(_: &BTreeMap<String, HostPolicy>) -> String {
        String::new()
    }

    fn write(place: &mut BTreeMap<String, HostPolicy>, text: &str) -> Result<(), String> {
        for (pattern, policy) in Self::read(text)? {
            let before = place.remove(&pattern).unwrap_or_default();
            place.insert(pattern, policy.or(before));
        }
        Ok(())
    }
}

/// Reads a value, or `default` for none.
pub(super) fn or_default<T>(text: &str, read: impl Fn(&str) -> Result<T, String>) -> Result<Option<T>, String> {
    if text == "default" {
        Ok(None)
    } else {
        read(text).map(Some)
    }
}

pub(super) fn grant(policy: &mut HostPolicy, name: &str, value: &str) -> Result<(), String> {
    match name {
        "delay" => policy.delay = or_default(value, parse_duration)?,
        "max-crawl-delay" => policy.max_crawl_delay = or_default(value, parse_duration)?,
        "per-host" => policy.per_host = or_default(value, parse_count)?,
        "max-pages" => policy.max_pages = or_default(value, parse_count)?,
        "class" => policy.class = or_default(value, parse_class)?,
        "closed" => policy.closed = or_default(value, Switch::read)?,
        "closed-until" => policy.closed_until = or_default(value, parse_time)?,
        _ => {
            const KNOWN: &str = "delay, max-crawl-delay, per-host, max-pages, class, closed and closed-until";
            return Err(format!("a host has no {name:?}, but {KNOWN}"));
        }
    }
    Ok(())
}

fn rule(class: Class, pattern: &str) -> OrderRule {
    OrderRule {
        pattern: pattern.to_owned(),
        class,
    }
}

/// A kind for all types of numbers.
macro_rules! number {
    ($(#[doc = $doc:literal])* $kind:ident: $read:expr, $show:expr) => {
        $(#[doc = $doc])*
        pub(super) struct $kind;

        impl<T: FromStr<Err = ParseIntError> + Display> Kind<T> for $kind {
            fn read(text: &str) -> Result<T, String> {
                ($read)(text)
            }

            fn show(value: &T) -> String {
                ($show)(value.to_string().parse().unwrap_or(u64::MAX))
            }
        }
    };
}

number!(Count: parse_count, show_count);
number!(
    /// A number of 1 or more.
    Positive: |text| parse_count::<NonZeroU64>(text).and_then(|_| parse_count(text)), show_count
);
number!(
    /// A size of 1 byte or more.
    Size: |text| parse_size::<NonZeroU64>(text).and_then(|_| parse_size(text)), show_size
);

/// A value that may be missing.
pub(super) struct Maybe<K>(PhantomData<K>);

impl<T, K: Kind<T>> Kind<Option<T>> for Maybe<K> {
    fn read(text: &str) -> Result<Option<T>, String> {
        K::read(text).map(Some)
    }

    fn show(value: &Option<T>) -> String {
        value.as_ref().map_or_else(String::new, K::show)
    }
}

/// A list. What is given is added.
pub(super) struct Many<K>(PhantomData<K>);

impl<T, K: Kind<T>> Kind<Vec<T>> for Many<K> {
    fn read(text: &str) -> Result<Vec<T>, String> {
        K::read(text).map(|one| vec![one])
    }

    fn show(_: &Vec<T>) -> String {
        String::new()
    }

    fn write(place: &mut Vec<T>, text: &str) -> Result<(), String> {
        place.push(K::read(text)?);
        Ok(())
    }
}

kind!(
    /// A hash whose secret is to be set.
    Hash<Hashing>: |text| {
        let (seed, key) = (0, [0; 16]);
        let all = [Hashing::Murmur3 { seed }, Hashing::Xxh3 { seed }, Hashing::Hardened { key }];
        let found = all.into_iter().find(|hash| hash.name() == text);
        found.ok_or_else(|| "write murmur3, xxh3 or hardened".to_owned())
    },
    |hash: &Hashing| hash.name().to_owned()
);

/// One of a few values, by its name.
pub(super) struct Name;

impl<T: Serialize + DeserializeOwned> Kind<T> for Name {
    fn read(text: &str) -> Result<T, String> {
        serde_json::from_value(text.into()).map_err(|error| error.to_string())
    }

    fn show(value: &T) -> String {
        let name = serde_json::to_value(value).unwrap_or_default();
        name.as_str().unwrap_or_default().to_owned()
    }
}
