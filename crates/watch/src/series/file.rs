//! The file of a series in a state directory. It is no part of a commit, and nothing depends on it.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use super::Point;
use crate::replace::Replaceable;

/// The file: a JSON object per line.
const FILE: &str = "series.jsonl";

/// The most bytes that are read: three times what a whole series takes.
const MOST_BYTES: u64 = 1 << 20;

/// Returns the points in the file of a state directory. A kill can have cut the last line, and damage others.
pub(super) fn read(state: &Path) -> Vec<Point> {
    let mut bytes = Vec::new();
    // What was read before an error is of use, too.
    let _ = File::open(state.join(FILE)).and_then(|file| file.take(MOST_BYTES).read_to_end(&mut bytes));
    bytes
        .split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect()
}

/// Keeps a series in a state directory: each new point is one short write, which a kill survives.
#[derive(Debug)]
pub(crate) struct SeriesFile {
    whole: Replaceable,
    /// `None` before the first write, and after one that has failed: then all is written again.
    file: Option<File>,
    /// How many points there were at the last write, and when the last one was.
    kept: (usize, f64),
    has_failed: bool,
}

impl SeriesFile {
    pub(crate) fn new(state: &Path) -> Self {
        Self {
            whole: Replaceable::own(state.join(FILE)),
            file: None,
            kept: (0, 0.0),
            has_failed: false,
        }
    }

    /// Writes what has changed. The first error is logged: the crawl goes on without it.
    pub(crate) fn keep(&mut self, points: &[Point]) {
        let now = (points.len(), points.last().map_or(0.0, |point| point.elapsed_seconds));
        let before = std::mem::replace(&mut self.kept, now);
        let kept = match &mut self.file {
            _ if before == now => return,
            Some(file) if now.0 == before.0 + 1 => lines(points.last()).and_then(|line| file.write_all(&line)),
            _ => self.replace(points),
        };
        if let Err(error) = kept {
            self.file = None;
            if !std::mem::replace(&mut self.has_failed, true) {
                let path = self.whole.path().display();
                log::warn!(target: "crawler::watch", "{path}: {error}; the crawl continues, and the series is written again later");
            }
        }
    }

    fn replace(&mut self, points: &[Point]) -> io::Result<()> {
        self.whole.replace(&lines(points)?)?;
        self.file = Some(OpenOptions::new().append(true).open(self.whole.path())?);
        Ok(())
    }
}

fn lines<'p>(points: impl IntoIterator<Item = &'p Point>) -> io::Result<Vec<u8>> {
    let mut lines = Vec::new();
    for point in points {
        serde_json::to_writer(&mut lines, point)?;
        lines.push(b'\n');
    }
    Ok(lines)
}
