//! Numbers as a reader wants them: rounded to what they mean, with their digits in groups of three.

use std::fmt;

/// Digits that an estimate keeps.
const ESTIMATE_DIGITS: i32 = 3;

/// A whole number; from five digits up, with a space between groups of three.
pub(crate) struct Grouped(u64);

impl Grouped {
    /// All digits of a number that was counted or configured.
    pub(crate) fn exactly(number: u64) -> Self {
        Self(number)
    }

    /// An estimate, rounded to three digits.
    pub(crate) fn about(number: f64) -> Self {
        let step = step_of(number, ESTIMATE_DIGITS) as f64;
        Self(((number / step).round() * step) as u64)
    }

    /// A number that is enough, rounded up to two digits.
    pub(crate) fn enough(number: f64) -> Self {
        let step = step_of(number, 2) as f64;
        Self(((number / step).ceil() * step) as u64)
    }

    /// A lower bound, rounded down to three digits, so that it stays one.
    pub(crate) fn at_least(number: u64) -> Self {
        let step = step_of(number as f64, ESTIMATE_DIGITS);
        Self(number / step * step)
    }
}

fn step_of(number: f64, digits: i32) -> u64 {
    let mut step: u64 = 1;
    while number / step as f64 >= 10_f64.powi(digits) {
        step = step.saturating_mul(10);
    }
    step
}

impl fmt::Display for Grouped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        if digits.len() < 5 {
            return f.write_str(&digits);
        }
        for (at, digit) in digits.char_indices() {
            if at > 0 && (digits.len() - at).is_multiple_of(3) {
                f.write_str(" ")?;
            }
            write!(f, "{digit}")?;
        }
        Ok(())
    }
}

/// A share as a percentage with two significant digits.
pub(crate) struct Percent(pub(crate) f64);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = self.0 * 100.0;
        if percent <= 0.0 {
            f.write_str("0 %")
        } else if percent >= 9.95 {
            write!(f, "{percent:.0} %")
        } else if percent >= 0.995 {
            write!(f, "{percent:.1} %")
        } else if percent >= 0.01 {
            write!(f, "{percent:.2} %")
        } else {
            f.write_str("less than 0.01 %")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_keeps_three_digits_and_a_lower_bound_never_rises() {
        let about = [0.4, 32.5, 999.6, 1_000.4, 30_001.0, 64_749.0, 1_234_567.0];
        let shown = about.map(|number| Grouped::about(number).to_string());
        assert_eq!(shown, ["0", "33", "1000", "1000", "30 000", "64 700", "1 230 000"]);
        let at_least = [0, 21, 999, 1_999, 93_499].map(|number| Grouped::at_least(number).to_string());
        assert_eq!(at_least, ["0", "21", "999", "1990", "93 400"]);
        assert_eq!(
            [7.0, 201.0, 64_100.0].map(|number| Grouped::enough(number).to_string()),
            ["7", "210", "65 000"]
        );
        assert_eq!(Grouped::exactly(64_000_001).to_string(), "64 000 001");
    }

    #[test]
    fn a_share_has_two_significant_digits() {
        let shares = [0.0, 1e-9, 0.00321, 0.0099, 0.0596, 0.166, 0.9991];
        let shown = shares.map(|share| Percent(share).to_string());
        assert_eq!(
            shown,
            ["0 %", "less than 0.01 %", "0.32 %", "0.99 %", "6.0 %", "17 %", "100 %"]
        );
    }
}
