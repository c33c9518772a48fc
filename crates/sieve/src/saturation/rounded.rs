//! Numbers as a reader wants them: rounded to what they mean, with their digits in groups of three.

/// Digits that an estimate keeps.
const ESTIMATE_DIGITS: i32 = 3;

/// Writes an estimate, rounded to three digits.
pub(crate) fn about(number: f64) -> String {
    let step = step_of(number, ESTIMATE_DIGITS) as f64;
    grouped(((number / step).round() * step) as u64)
}

/// Writes a number that is enough, rounded up to two digits.
pub(crate) fn enough(number: f64) -> String {
    let step = step_of(number, 2) as f64;
    grouped(((number / step).ceil() * step) as u64)
}

/// Writes a lower bound, rounded down to three digits, so that it stays one.
pub(crate) fn at_least(number: u64) -> String {
    let step = step_of(number as f64, ESTIMATE_DIGITS);
    grouped(number / step * step)
}

fn step_of(number: f64, digits: i32) -> u64 {
    let mut step: u64 = 1;
    while number / step as f64 >= 10_f64.powi(digits) {
        step = step.saturating_mul(10);
    }
    step
}

/// Writes a whole number as the log lines do: from five digits up, with a space between groups of three.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.char_indices() {
        if at > 0 && digits.len() > 4 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(' ');
        }
        grouped.push(digit);
    }
    grouped
}

/// Writes a share as a percentage with two significant digits.
pub(crate) fn percent(share: f64) -> String {
    match share * 100.0 {
        ..=0.0 => "0 %".to_owned(),
        percent @ 9.95.. => format!("{percent:.0} %"),
        percent @ 0.995.. => format!("{percent:.1} %"),
        percent @ 0.01.. => format!("{percent:.2} %"),
        _ => "less than 0.01 %".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_keeps_three_digits_and_a_lower_bound_never_rises() {
        let estimates = [0.4, 32.5, 999.6, 1_000.4, 30_001.0, 64_749.0, 1_234_567.0];
        let shown = estimates.map(about);
        assert_eq!(shown, ["0", "33", "1000", "1000", "30 000", "64 700", "1 230 000"]);
        let bounds = [0, 21, 999, 1_999, 93_499].map(at_least);
        assert_eq!(bounds, ["0", "21", "999", "1990", "93 400"]);
        assert_eq!([7.0, 201.0, 64_100.0].map(enough), ["7", "210", "65 000"]);
        assert_eq!(grouped(64_000_001), "64 000 001");
    }

    #[test]
    fn a_share_has_two_significant_digits() {
        let shares = [0.0, 1e-9, 0.00321, 0.0099, 0.0596, 0.166, 0.9991];
        let shown = shares.map(percent);
        assert_eq!(
            shown,
            ["0 %", "less than 0.01 %", "0.32 %", "0.99 %", "6.0 %", "17 %", "100 %"]
        );
    }
}
