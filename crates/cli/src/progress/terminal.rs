//! The terminal that the progress view is drawn on: two columns narrower than the real one.
//!
//! A terminal echoes Ctrl-C as `^C` at the cursor, which is at the end of the view. If there is no room, the echo goes to the next row,
//! and the view is then removed from the wrong rows. So each row ends early, and the lines are broken here and not by the terminal.

use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

use indicatif::TermLike;
use terminal_size::{Height, Width, terminal_size_of};

/// The assumed size of a terminal that does not report it.
const DEFAULT_SIZE: (u16, u16) = (80, 24);

/// The columns that stay free: those of `^C`, and the last one, after which a terminal wraps.
pub(super) const FREE_COLUMNS: u16 = 3;

/// Returns the columns and rows of the terminal.
fn size() -> (u16, u16) {
    terminal_size_of(io::stderr()).map_or(DEFAULT_SIZE, |(Width(columns), Height(rows))| (columns, rows))
}

/// Returns the columns of a row of the view.
pub(super) fn view_width() -> u16 {
    size().0.saturating_sub(FREE_COLUMNS).max(1)
}

/// A terminal with `columns` columns, whatever the real one has.
#[derive(Debug)]
pub(super) struct Terminal<W> {
    columns: fn() -> u16,
    state: Mutex<State<W>>,
}

#[derive(Debug)]
struct State<W> {
    to: W,
    /// What was written since the last flush.
    buffer: String,
    /// The column of the cursor.
    column: usize,
}

impl Terminal<io::Stderr> {
    pub(super) fn stderr() -> Self {
        Self::new(io::stderr(), view_width)
    }
}

impl<W: Write> Terminal<W> {
    fn new(to: W, columns: fn() -> u16) -> Self {
        Self {
            columns,
            state: Mutex::new(State {
                to,
                buffer: String::new(),
                column: 0,
            }),
        }
    }

    fn change(&self, change: impl FnOnce(&mut State<W>)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Moves the cursor, with the last letter of the control sequence (ECMA-48).
    fn move_cursor(&self, count: usize, letter: char) -> io::Result<()> {
        if count > 0 {
            self.change(|state| state.buffer += &format!("\x1b[{count}{letter}"));
        }
        Ok(())
    }
}

impl<W: Write + Send + std::fmt::Debug> TermLike for Terminal<W> {
    fn width(&self) -> u16 {
        (self.columns)()
    }

    fn height(&self) -> u16 {
        size().1
    }

    fn move_cursor_up(&self, n: usize) -> io::Result<()> {
        self.move_cursor(n, 'A')
    }

    fn move_cursor_down(&self, n: usize) -> io::Result<()> {
        self.move_cursor(n, 'B')
    }

    fn move_cursor_right(&self, n: usize) -> io::Result<()> {
        self.move_cursor(n, 'C')
    }

    fn move_cursor_left(&self, n: usize) -> io::Result<()> {
        self.move_cursor(n, 'D')
    }

    fn write_line(&self, s: &str) -> io::Result<()> {
        self.write_str(s)?;
        self.change(|state| {
            state.buffer += "\r\n";
            state.column = 0;
        });
        Ok(())
    }

    /// Writes a text without wide characters, and breaks the line before the character that no longer fits.
    fn write_str(&self, s: &str) -> io::Result<()> {
        let columns = usize::from(self.width());
        self.change(|state| {
            for character in s.chars() {
                if character == '\r' {
                    state.column = 0;
                } else if state.column >= columns {
                    state.buffer += "\r\n";
                    state.column = 1;
                } else {
                    state.column += 1;
                }
                state.buffer.push(character);
            }
        });
        Ok(())
    }

    fn clear_line(&self) -> io::Result<()> {
        self.change(|state| {
            state.buffer += "\r\x1b[2K";
            state.column = 0;
        });
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let text = std::mem::take(&mut state.buffer);
        state.to.write_all(text.as_bytes())?;
        state.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use indicatif::{ProgressBar, ProgressDrawTarget};

    use super::*;

    #[derive(Debug, Clone, Default)]
    struct Screen(Arc<Mutex<Vec<u8>>>);

    impl Write for Screen {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn no_row_of_the_view_is_wider_than_asked_and_its_rows_are_cleared() {
        let screen = Screen::default();
        let terminal = Terminal::new(screen.clone(), || 37);
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::term_like(Box::new(terminal)));
        bar.set_style(super::super::style());
        bar.set_message("m".repeat(35));
        bar.set_prefix("200 http://a.example/");
        bar.tick();
        let drawn = String::from_utf8(screen.0.lock().unwrap().clone()).unwrap();
        let rows: Vec<_> = drawn.rsplit('\u{1b}').next().unwrap().split(['\r', '\n']).collect();
        let widths: Vec<_> = rows
            .iter()
            .map(|row| row.trim_start_matches("[1A").chars().count())
            .collect();
        assert!(widths.iter().all(|width| *width <= 37), "{widths:?} {drawn:?}");
        assert!(
            drawn.contains(&format!("{}\r\n  200 http://a.example/", "m".repeat(35))),
            "{drawn:?}"
        );
        screen.0.lock().unwrap().clear();
        bar.suspend(|| ());
        let cleared = String::from_utf8(screen.0.lock().unwrap().clone()).unwrap();
        assert!(
            cleared.starts_with("\u{1b}[1A\r\u{1b}[2K\u{1b}[1B\r\u{1b}[2K\u{1b}[1A"),
            "{cleared:?}"
        );
    }
}
