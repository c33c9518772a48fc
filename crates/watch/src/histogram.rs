//! Counts of values by size.

/// How many values lie up to each bound, and above all.
#[derive(Debug, Clone)]
pub(crate) struct Histogram {
    bounds: &'static [f64],
    /// For each bound, and for those above all, the values that lie in no earlier one.
    counts: Vec<u64>,
    sum: f64,
}

impl Histogram {
    pub(crate) fn new(bounds: &'static [f64]) -> Self {
        Self {
            bounds,
            counts: vec![0; bounds.len() + 1],
            sum: 0.0,
        }
    }

    pub(crate) fn add(&mut self, value: f64) {
        let place = self.bounds.partition_point(|bound| *bound < value);
        self.counts[place] += 1;
        self.sum += value;
    }

    pub(crate) fn sum(&self) -> f64 {
        self.sum
    }

    pub(crate) fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    pub(crate) fn buckets(&self) -> Vec<(f64, u64)> {
        self.bounds.iter().copied().zip(self.counts.iter().copied()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_counts_at_the_first_bound_that_is_not_below_it() {
        let mut histogram = Histogram::new(&[0.1, 1.0]);
        [0.0, 0.1, 0.5, 1.0, 1.1, 7.0]
            .into_iter()
            .for_each(|value| histogram.add(value));
        assert_eq!(histogram.buckets(), [(0.1, 2), (1.0, 2)]);
        assert_eq!((histogram.count(), histogram.sum()), (6, 9.7));
    }
}
