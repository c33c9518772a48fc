//! The course of a crawl: some numbers at regular times, in memory and in the state directory.

mod file;

use std::path::Path;
use std::time::Duration;

use crawler::summary::Summary;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub(crate) use file::SeriesFile;

/// The most points. When there are as many, every second one goes, and new ones come half as often.
const POINTS: usize = 1000;

/// The numbers at one time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Point {
    pub(crate) elapsed_seconds: f64,
    pages: u64,
    failed: u64,
    pub(crate) queued: u64,
    pub(crate) in_flight: u64,
    bytes: u64,
    links_offered: u64,
    /// Links to new URLs, which were queued; seeds and targets of redirects are among them.
    pub(crate) links_new: u64,
    pub(crate) estimated: f64,
    lost: f64,
}

impl Point {
    pub(crate) fn of(summary: &Summary) -> Self {
        let report = &summary.report;
        Self {
            elapsed_seconds: rounded(summary.elapsed.as_secs_f64(), 1000.0),
            pages: summary.pages,
            failed: summary.failed_pages(),
            queued: report.queued_pages,
            in_flight: report.leased,
            bytes: summary.answers.bytes,
            links_offered: report.links.offered(),
            links_new: report.links.queued,
            estimated: rounded(report.saturation.estimated, 10.0),
            lost: rounded(summary.lost(), 100.0),
        }
    }

    pub(crate) fn settled(&self) -> u64 {
        self.links_new
            .saturating_sub(self.queued.saturating_add(self.in_flight))
    }
}

/// The numbers of a crawl each second at first, and less often the longer it takes. Memory: 80 kB at most.
#[derive(Debug, Clone, Default)]
pub(crate) struct Series(Vec<Point>);

impl Series {
    /// Reads the series of a state directory. What cannot be read is left out.
    pub(crate) fn read(state: &Path) -> Self {
        let mut points = file::read(state);
        // A crash can have left points that a later run has passed again.
        points.dedup_by(|later, earlier| later.elapsed_seconds <= earlier.elapsed_seconds);
        let mut series = Self(points);
        while series.0.len() > POINTS {
            series.thin();
        }
        series
    }

    /// Removes the points after a time: a run that ended without a last commit has left them.
    pub(crate) fn cut_after(&mut self, elapsed: Duration) {
        self.0
            .retain(|point| point.elapsed_seconds <= elapsed.as_secs_f64() + 0.001);
    }

    pub(crate) fn add(&mut self, summary: &Summary, is_last: bool) {
        let point = Point::of(summary);
        let last = self.0.last().map_or(f64::NEG_INFINITY, |last| last.elapsed_seconds);
        let passed = point.elapsed_seconds - last;
        // As many seconds as it takes for half of the points to have this distance: a power of two. Ticks are not exact.
        let every = (0.99 * last / POINTS as f64).max(1.0).log2().ceil().exp2();
        if passed <= 0.0 || passed < 0.99 * every && !is_last {
            return;
        }
        // An end takes the place of another one that is as near: those of thousands of short runs would crowd out the others.
        let is_near =
            matches!(self.0[..], [.., before, _] if point.elapsed_seconds - before.elapsed_seconds < 0.99 * every);
        if is_near {
            self.0.pop();
        } else if self.0.len() >= POINTS {
            self.thin();
        }
        self.0.push(point);
    }

    fn thin(&mut self) {
        let mut is_even = false;
        self.0.retain(|_| {
            is_even = !is_even;
            is_even
        });
    }

    pub(crate) fn points(&self) -> &[Point] {
        &self.0
    }

    pub(crate) fn to_json(&self) -> Value {
        let list = |of: fn(&Point) -> Value| self.0.iter().map(of).collect::<Vec<_>>();
        json!({
            "elapsed_seconds": list(|point| point.elapsed_seconds.into()),
            "pages": list(|point| point.pages.into()),
            "failed": list(|point| point.failed.into()),
            "queued": list(|point| point.queued.into()),
            "bytes": list(|point| point.bytes.into()),
            "links_offered": list(|point| point.links_offered.into()),
            "links_new": list(|point| point.links_new.into()),
            "estimated": list(|point| point.estimated.into()),
            "lost": list(|point| point.lost.into()),
        })
    }
}

fn rounded(number: f64, parts: f64) -> f64 {
    (number * parts).round() / parts
}

#[cfg(test)]
mod tests {
    use crawler::Ending;
    use crawler::summary::Counts;
    use frontier::{Frontier, FrontierConfig};

    use super::*;

    fn summary() -> Summary {
        let report = Frontier::in_memory(FrontierConfig::default()).unwrap().report();
        Summary::new(Ending::Drained, Counts::default(), report)
    }

    fn seconds(series: &Series) -> Vec<u64> {
        series
            .points()
            .iter()
            .map(|point| point.elapsed_seconds as u64)
            .collect()
    }

    #[test]
    fn a_series_of_days_has_few_points_from_the_first_second_to_the_last() {
        let mut summary = summary();
        let mut series = Series::default();
        for second in 1..=100_000 {
            // Ticks are not exact.
            summary.elapsed = Duration::from_millis(second * 1000 + second % 7);
            series.add(&summary, false);
        }
        summary.elapsed += Duration::from_millis(300);
        let before = series.points().len();
        series.add(&summary, true);
        assert_eq!(series.points().len(), before + 1);
        let seconds = seconds(&series);
        assert!((POINTS / 2..=POINTS).contains(&seconds.len()), "{}", seconds.len());
        assert_eq!((seconds[0], seconds[seconds.len() - 1]), (1, 100_000));
        let steps: Vec<_> = seconds.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let all_but_last = &steps[..steps.len() - 1];
        assert!(all_but_last.iter().all(|step| (64..=130).contains(step)), "{steps:?}");
    }

    #[test]
    fn a_series_goes_on_after_kills_without_gaps_and_without_what_the_last_commit_lacks() {
        let folder = std::env::temp_dir().join(format!("crawler-series-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut summary = summary();
        // Twenty runs, each killed, of which the last two seconds are not committed.
        for run in 0..20 {
            let before = Duration::from_secs(run * 100);
            let mut series = Series::read(&folder);
            series.cut_after(before);
            let mut file = SeriesFile::new(&folder);
            file.keep(series.points());
            for second in 1..=102 {
                summary.elapsed = before + Duration::from_secs(second);
                summary.counts.pages = run * 1000 + second;
                series.add(&summary, false);
                file.keep(series.points());
            }
            // The kill has cut the last line.
            let path = folder.join("series.jsonl");
            let text = std::fs::read_to_string(&path).unwrap();
            std::fs::write(&path, &text[..text.len() - 20]).unwrap();
        }
        let mut series = Series::read(&folder);
        std::fs::remove_dir_all(folder).unwrap();
        series.cut_after(Duration::from_secs(2000));
        let seconds = seconds(&series);
        assert!(seconds[0] == 1 && seconds[seconds.len() - 1] > 1995, "{seconds:?}");
        assert!(
            seconds
                .windows(2)
                .all(|pair| pair[0] < pair[1] && pair[1] - pair[0] <= 4),
            "{seconds:?}"
        );
        let runs = series
            .points()
            .iter()
            .map(|point| (point.elapsed_seconds - 0.5) as u64 / 100);
        assert!(
            series
                .points()
                .iter()
                .zip(runs)
                .all(|(point, run)| point.pages / 1000 == run)
        );
    }

    #[test]
    fn the_course_of_days_outlives_thousands_of_short_runs() {
        let mut summary = summary();
        let mut series = Series::default();
        for second in 1..=100_000 {
            summary.elapsed = Duration::from_secs(second);
            series.add(&summary, second == 100_000);
        }
        for _ in 0..5_000 {
            summary.elapsed += Duration::from_millis(500);
            series.add(&summary, true);
        }
        let seconds = seconds(&series);
        let days = seconds.iter().filter(|second| **second <= 100_000).count();
        assert!(
            days >= POINTS / 2 && seconds.ends_with(&[102_500]),
            "{days}: {}",
            seconds.len()
        );
    }

    #[test]
    fn of_a_damaged_file_the_series_has_what_can_be_read_and_no_more_than_a_whole_one() {
        let folder = std::env::temp_dir().join(format!("crawler-damaged-series-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut summary = summary();
        let mut file = b"\xff\xfe\0\n{\"elapsed_seconds\":NaN}\n".to_vec();
        for second in 1..=20_000 {
            summary.elapsed = Duration::from_secs(second);
            let mut point = Point::of(&summary);
            (point.queued, point.in_flight) = (u64::MAX, u64::MAX);
            serde_json::to_writer(&mut file, &point).unwrap();
            file.push(b'\n');
        }
        std::fs::write(folder.join("series.jsonl"), file).unwrap();
        let series = Series::read(&folder);
        std::fs::remove_dir_all(folder).unwrap();
        let points = series.points();
        assert!((POINTS / 2..=POINTS).contains(&points.len()), "{}", points.len());
        assert_eq!((seconds(&series)[0], points[0].settled()), (1, 0));
    }
}
