//! What an option's value must be.

use std::time::Duration;

pub(super) fn parse_rate(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(rate) if rate > 0.0 && rate < 1.0 => Ok(rate),
        _ => Err("give a fraction above 0 and below 1, such as 0.01 for 1 %".to_owned()),
    }
}

pub(super) fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text
        .parse()
        .map_err(|_| "give a number of seconds, such as 0.5".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|_| "give a number of seconds of 0 or more".to_owned())
}

pub(super) fn parse_seconds_above_zero(text: &str) -> Result<Duration, String> {
    parse_seconds(text).and_then(|time| {
        if time.is_zero() {
            Err("give more than 0 seconds".to_owned())
        } else {
            Ok(time)
        }
    })
}
