//! The lines in the log: how many, when, and what they say. Alone in this file, as a process has one logger.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on says where by panicking"
)]

use std::collections::VecDeque;
use std::sync::Mutex;

use log::kv::Key;
use log::{Level, LevelFilter, Log, Metadata, Record};
use sieve::{Filter as _, OnSaturation, RefusedBy, RotatingBloomFilter, SeenSet, Sieve};

#[derive(Debug, Clone)]
struct Line {
    severity: Level,
    target: String,
    level: String,
    text: String,
    estimated: f64,
    lost: f64,
    lost_at_least: f64,
    grown_capacity: Option<f64>,
    next_level_seconds: Option<f64>,
}

struct Capture(Mutex<Vec<Line>>);

static CAPTURE: Capture = Capture(Mutex::new(Vec::new()));

impl Log for Capture {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        let values = record.key_values();
        let number = |name: &str| values.get(Key::from_str(name)).and_then(|value| value.to_f64());
        let level = values
            .get(Key::from_str("saturation_level"))
            .map(|value| value.to_string());
        self.0.lock().unwrap().push(Line {
            severity: record.level(),
            target: record.target().to_owned(),
            level: level.unwrap_or_default(),
            text: record.args().to_string(),
            estimated: number("estimated").unwrap_or(f64::NAN),
            lost: number("lost").unwrap_or(f64::NAN),
            lost_at_least: number("lost_at_least").unwrap_or(f64::NAN),
            grown_capacity: number("grown_capacity"),
            next_level_seconds: number("next_level_seconds"),
        });
    }

    fn flush(&self) {}
}

fn lines() -> Vec<Line> {
    std::mem::take(&mut CAPTURE.0.lock().unwrap())
}

/// One test, as the parts share the process's logger.
#[test]
fn each_level_has_one_line_at_the_push_that_exceeds_it() {
    log::set_logger(&CAPTURE).unwrap();
    log::set_max_level(LevelFilter::Trace);
    a_sequence_to_twenty_times_the_capacity();
    the_warning_comes_with_the_key_that_exceeds_the_capacity();
    a_clock_adds_a_forecast();
    the_forecast_is_made_of_the_pace_since_the_level_before();
    the_forecast_after_a_restart_is_made_of_the_new_clock();
    refusing_marks_nothing();
    layers_that_were_there_from_the_start_are_no_growth();
    a_filter_that_grows_warns_once_per_level_of_its_first_capacity();
    a_filter_that_cannot_grow_says_so();
    crafted_keys_are_reported_once_between_levels_or_with_one();
    a_level_that_was_logged_before_a_file_was_written_is_not_logged_after_it_was_read();
}

fn a_sequence_to_twenty_times_the_capacity() {
    const CAPACITY: u64 = 50_000;
    let mut sieve = Sieve::builder()
        .capacity(CAPACITY)
        .false_positive_rate(0.1)
        .build()
        .unwrap();
    for n in 0..CAPACITY * 22 {
        sieve.push(n.to_string());
    }
    let lines = lines();
    let logged: Vec<_> = lines.iter().map(|line| (line.severity, line.level.as_str())).collect();
    let warnings = ["full", "1.5x", "2x", "3x", "5x", "10x", "20x"].map(|level| (Level::Warn, level));
    assert_eq!(logged, [&[(Level::Info, "filling")][..], &warnings[..]].concat());
    for (line, threshold) in lines.iter().zip([0.8, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0]) {
        let over = line.estimated / CAPACITY as f64 / threshold;
        assert!(
            (1.0..1.01).contains(&over) || threshold > 9.0 && over >= 1.0,
            "{line:?}"
        );
        assert_eq!(line.target, "sieve::saturation");
        assert!(line.text.contains("for a capacity of 50 000"), "{line:?}");
        assert!(line.text.contains("so far"), "{line:?}");
        assert_eq!(line.grown_capacity, None);
        assert_eq!(line.next_level_seconds, None, "no clock was given");
    }
    assert!(lines.windows(2).all(|pair| pair[0].lost < pair[1].lost));
    for line in &lines {
        assert!(line.lost_at_least < line.lost, "{line:?}");
        let shown = |before: &str, after: &str| -> f64 {
            let from = line.text.find(before).unwrap() + before.len();
            let until = line.text[from..].find(after).unwrap();
            line.text[from..][..until].replace(' ', "").parse().unwrap()
        };
        let (at_least, expected) = (shown("at least ", " so far"), shown(" so far (", " expected)"));
        assert!(
            (0.99 * line.lost_at_least..=line.lost_at_least).contains(&at_least),
            "{line:?}"
        );
        assert!((0.99..1.01).contains(&(expected / line.lost)), "{line:?}");
        let is_warning = line.severity == Level::Warn;
        // Of a filter that is there, neither can be changed.
        for part in [
            "What only dropped keys lead to is missing",
            "start again with a filter that grows, or with a capacity of",
        ] {
            assert_eq!(line.text.contains(part), is_warning, "{line:?}");
        }
    }
}

fn the_warning_comes_with_the_key_that_exceeds_the_capacity() {
    for capacity in [1, 3, 300, 9_000] {
        let mut sieve = Sieve::new(capacity).unwrap();
        let mut n = 0_u64;
        while sieve.saturation().estimated <= capacity as f64 {
            assert!(
                lines().iter().all(|line| line.severity == Level::Info),
                "capacity {capacity}: warned too early"
            );
            sieve.push(n.to_string());
            n += 1;
        }
        let warnings = lines().into_iter().filter(|line| line.severity == Level::Warn).count();
        assert_eq!(warnings, 1, "capacity {capacity}");
    }
}

fn a_clock_adds_a_forecast() {
    use std::time::Duration;
    let mut sieve = Sieve::new(10_000).unwrap();
    for n in 0_u64..10_200 {
        // A thousand keys a second.
        sieve.set_now(Duration::from_millis(5_000_000 + n));
        sieve.push(n.to_string());
    }
    let lines = lines();
    assert_eq!(lines.len(), 2);
    let (at_80, at_100) = (
        lines[0].next_level_seconds.unwrap(),
        lines[1].next_level_seconds.unwrap(),
    );
    assert!((at_80 - 2.0).abs() < 0.1, "2 000 keys more at 1 000 a second: {at_80}");
    assert!(
        (at_100 - 5.0).abs() < 0.4,
        "5 000 keys more at 1 000 a second: {at_100}"
    );
    assert!(lines[0].text.contains("full in about 2 s at this pace") || lines[0].text.contains("full in about 1 s"));
}

fn the_forecast_is_made_of_the_pace_since_the_level_before() {
    use std::time::Duration;
    let mut sieve = Sieve::new(10_000).unwrap();
    for n in 0_u64..10_200 {
        // A thousand keys a second, then five hundred.
        sieve.set_now(Duration::from_millis(n + n.saturating_sub(8_000)));
        sieve.push(n.to_string());
    }
    let lines = lines();
    let at_100 = lines[1].next_level_seconds.unwrap();
    assert!((at_100 - 10.0).abs() < 0.8, "5 000 keys more at 500 a second: {at_100}");
}

fn the_forecast_after_a_restart_is_made_of_the_new_clock() {
    use std::time::Duration;
    let mut before = Sieve::new(10_000).unwrap();
    for n in 0_u64..5_000 {
        before.set_now(Duration::from_millis(n));
        before.push(n.to_string());
    }
    let counters = before.counters().clone();
    let mut again: Sieve = Sieve::from_parts(before.into_parts().0, VecDeque::new()).with_counters(counters);
    for n in 5_000_u64..8_200 {
        // A hundred keys a second, by a clock that begins at zero.
        again.set_now(Duration::from_millis((n - 5_000) * 10));
        again.push(n.to_string());
    }
    let lines = lines();
    assert_eq!(lines.len(), 1);
    let at_80 = lines[0].next_level_seconds.unwrap();
    assert!((at_80 - 20.0).abs() < 1.0, "2 000 keys more at 100 a second: {at_80}");
}

fn refusing_marks_nothing() {
    let mut sieve = Sieve::builder()
        .capacity(100)
        .on_saturation(OnSaturation::Refuse)
        .build()
        .unwrap();
    let outcomes: Vec<_> = (0_u64..500).map(|n| sieve.try_push(n.to_string())).collect();
    let first = outcomes
        .iter()
        .position(Result::is_err)
        .expect("it refuses past its capacity");
    assert!((95..=110).contains(&first), "{first}");
    let ones = sieve.filter().ones();
    let refused = outcomes.into_iter().filter_map(Result::err).inspect(|refused| {
        assert_eq!(refused.by, RefusedBy::Saturation);
    });
    assert!(refused.count() > 350);
    assert_eq!(sieve.filter().ones(), ones);
    assert_eq!(sieve.try_push("0".to_owned()), Ok(false), "what was seen is still seen");
    let lines = lines();
    let last = lines.last().unwrap();
    assert_eq!(
        (last.severity, last.level.as_str()),
        (Level::Warn, "full"),
        "and the filter stays there"
    );
    assert!(last.text.contains("New keys are refused from now on"), "{last:?}");
}

fn layers_that_were_there_from_the_start_are_no_growth() {
    let generations = std::num::NonZeroU32::new(3).unwrap();
    let rotating = RotatingBloomFilter::new(1_000, 0.01, generations).unwrap();
    let mut sieve: Sieve<_, VecDeque<String>> = Sieve::from_parts(rotating, VecDeque::new());
    sieve.extend((0..10_000).map(|n| n.to_string()));
    assert!(sieve.filter().rotations() > 5);
    assert!(lines().is_empty(), "nothing grew, and there is no capacity to exceed");
}

fn a_filter_that_grows_warns_once_per_level_of_its_first_capacity() {
    // Above 0.8 of each of these capacities the self-check looks, after 1024 keys.
    for capacity in [1_100, 1_200, 1_275] {
        let mut sieve = Sieve::builder()
            .capacity(capacity)
            .on_saturation(OnSaturation::Grow)
            .build()
            .unwrap();
        // In batches, and one by one.
        sieve.extend((0..capacity * 6).map(|n| n.to_string()));
        for n in capacity * 6..capacity * 8 {
            sieve.push(n.to_string());
        }
        let (warnings, others): (Vec<_>, Vec<_>) = lines().into_iter().partition(|line| line.severity == Level::Warn);
        let levels: Vec<_> = warnings.iter().map(|line| line.level.as_str()).collect();
        assert_eq!(levels, ["full", "1.5x", "2x", "3x", "5x"]);
        for (line, threshold) in warnings.iter().zip([1.0, 1.5, 2.0, 3.0, 5.0]) {
            let over = line.estimated / capacity as f64 / threshold;
            assert!((1.0..1.01).contains(&over), "{line:?}");
            assert!(
                line.text
                    .contains(&format!("for a capacity of {capacity}, grown to hold ")),
                "{line:?}"
            );
            assert!(line.text.contains("Each layer costs memory and time"), "{line:?}");
            assert!(line.grown_capacity.unwrap() >= line.estimated, "{line:?}");
        }
        assert!(warnings[0].text.contains(" in 2 layers; "), "{warnings:?}");
        // It grows with the level "full", and at four times its capacity, where there is no level.
        let texts: Vec<_> = others.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(texts.len(), 2, "{texts:?}");
        assert!(texts[0].starts_with("seen-set filling: "), "{texts:?}");
        assert!(
            texts[1..].iter().all(|text| text.starts_with("seen-set grown: ")),
            "{texts:?}"
        );
        assert!(texts.last().unwrap().contains(" in 3 layers; "), "{texts:?}");
    }
}

fn a_filter_that_cannot_grow_says_so() {
    let plain = Sieve::builder().capacity(1_000).build_filter().unwrap();
    let mut sieve: Sieve = Sieve::from_parts(plain, VecDeque::new()).on_saturation(OnSaturation::Grow);
    sieve.extend((0..1_100).map(|n| n.to_string()));
    let lines = lines();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[1].text.contains("cannot grow any further"), "{lines:?}");
}

/// Pushes keys, each of which sets as many new bits as a key can.
fn pollute(sieve: &mut Sieve, count: u64) {
    let SeenSet::Fixed(filter) = sieve.filter() else {
        panic!("a filter that does not grow");
    };
    let mut shadow = filter.clone();
    let hashes = u64::from(shadow.sizing().hashes());
    let mut n = 0_u64;
    while sieve.counters().accepted < count {
        let key = format!("https://evil.example/{n}");
        let mut trial = shadow.clone();
        trial.insert(&key);
        if trial.ones() == shadow.ones() + hashes {
            shadow = trial;
            sieve.push(key);
        }
        n += 1;
    }
}

fn crafted_keys_are_reported_once_between_levels_or_with_one() {
    let mut early = Sieve::new(10_000).unwrap();
    pollute(&mut early, 4_200);
    let accused = lines();
    assert_eq!(
        accused.len(),
        1,
        "at 1024 keys, and not again at 2048 and 4096: {accused:?}"
    );
    assert_eq!(
        (accused[0].severity, accused[0].level.as_str()),
        (Level::Warn, "healthy")
    );
    assert!(accused[0].text.contains("crafted keys"), "{accused:?}");

    let mut late = Sieve::new(1_200).unwrap();
    pollute(&mut late, 900);
    late.extend((0..200).map(|n| n.to_string()));
    let logged: Vec<_> = lines().into_iter().map(|line| (line.level, line.text)).collect();
    let levels: Vec<_> = logged.iter().map(|(level, _)| level.as_str()).collect();
    assert_eq!(
        levels,
        ["filling", "full"],
        "logged with the levels, and not again at 1024 keys"
    );
    assert!(logged.iter().all(|(_, text)| text.contains("crafted keys")));
}

fn a_level_that_was_logged_before_a_file_was_written_is_not_logged_after_it_was_read() {
    // Filling, full, 1.5x; later 2x and 3x. One that grows adds its third layer about there.
    for (policy, before, after) in [(OnSaturation::Warn, 3, 2..=2), (OnSaturation::Grow, 3, 2..=3)] {
        let mut sieve = Sieve::builder().capacity(2_000).on_saturation(policy).build().unwrap();
        sieve.extend((0..3_300).map(|n| n.to_string()));
        assert_eq!(lines().len(), before, "{policy:?}");
        let mut file = Vec::new();
        sieve.save_filter(&mut file).unwrap();
        let mut again: Sieve = Sieve::resume(&mut file.as_slice(), file.len() as u64, None, VecDeque::new()).unwrap();
        again.extend((0..3_400).map(|n| n.to_string()));
        assert!(lines().is_empty(), "{policy:?}: nothing new has happened");
        again.extend((3_400..6_500).map(|n| n.to_string()));
        let lines = lines();
        assert!(after.contains(&lines.len()), "{policy:?}: {lines:?}");
    }
}
