//! Numbers with their digits in groups of three.

use std::fmt;

/// A whole number. From five digits up it has a space between groups of three.
pub(super) struct Grouped(pub(super) u64);

impl fmt::Display for Grouped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        for (at, digit) in digits.char_indices() {
            if at > 0 && digits.len() > 4 && (digits.len() - at).is_multiple_of(3) {
                f.write_str(" ")?;
            }
            write!(f, "{digit}")?;
        }
        Ok(())
    }
}

/// A count and its noun, with a plural `s` unless the count is one.
pub(super) struct Counted(pub(super) u64, pub(super) &'static str);

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.0 == 1 { "" } else { "s" };
        write!(f, "{} {}{plural}", Grouped(self.0), self.1)
    }
}

/// Rounds down to three digits, so a lower bound stays a lower bound.
pub(super) fn rounded_down(number: u64) -> u64 {
    let step = 10_u64.pow(number.max(1).ilog10().saturating_sub(2));
    number / step * step
}

/// Rounds up to two digits, so an upper bound stays an upper bound.
pub(super) fn rounded_up(number: u64) -> u64 {
    let step = 10_u64.pow(number.max(1).ilog10().saturating_sub(1));
    number.div_ceil(step).saturating_mul(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_five_digits_or_more_are_grouped_by_three() {
        let numbers = [0, 999, 9_999, 12_345, 1_234_567];
        let shown = numbers.map(|number| Grouped(number).to_string());
        assert_eq!(shown, ["0", "999", "9999", "12 345", "1 234 567"]);
        assert_eq!(Counted(1, "page").to_string(), "1 page");
        assert_eq!(Counted(20_000, "page").to_string(), "20 000 pages");
    }

    #[test]
    fn lower_bounds_are_rounded_down_and_upper_bounds_up() {
        assert_eq!([0, 7, 999, 1_999, 93_499].map(rounded_down), [0, 7, 999, 1_990, 93_400]);
        let up = [0, 7, 101, 200_001, u64::MAX].map(rounded_up);
        assert_eq!(up[..4], [0, 7, 110, 210_000]);
        assert!(up[4] >= 18_000_000_000_000_000_000);
    }
}
