//! Writes one metric after another.

use std::fmt;

use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::histogram::Histogram;

/// The labels of a metric: names and values.
type Labels<'l, const N: usize> = [(&'l str, &'l str); N];

pub(super) struct Page<'e>(DescriptorEncoder<'e>);

impl<'e> Page<'e> {
    pub(super) fn new(encoder: DescriptorEncoder<'e>) -> Self {
        Self(encoder)
    }

    pub(super) fn gauge(&mut self, name: &str, help: &str, value: f64) -> fmt::Result {
        self.gauges(name, help, [([], value)])
    }

    /// Writes a number if it is known. Its name is there always.
    pub(super) fn optional(&mut self, name: &str, help: &str, value: Option<u64>) -> fmt::Result {
        self.gauges(name, help, value.map(|value| ([], value as f64)))
    }

    pub(super) fn gauges<'l, const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (Labels<'l, N>, f64)>,
    ) -> fmt::Result {
        let values = values
            .into_iter()
            .map(|(labels, value)| (labels, ConstGauge::new(value)));
        self.metrics(name, help, MetricType::Gauge, values)
    }

    /// Writes counters. Their names get the suffix `_total`.
    pub(super) fn counters<'l, const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (Labels<'l, N>, u64)>,
    ) -> fmt::Result {
        let values = values
            .into_iter()
            .map(|(labels, value)| (labels, ConstCounter::new(value)));
        self.metrics(name, help, MetricType::Counter, values)
    }

    fn metrics<'l, const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        kind: MetricType,
        values: impl Iterator<Item = (Labels<'l, N>, impl EncodeMetric)>,
    ) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, None, kind)?;
        for (labels, value) in values {
            value.encode(metric.encode_family(&labels)?)?;
        }
        Ok(())
    }

    pub(super) fn histogram(&mut self, name: &str, help: &str, histogram: &Histogram) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Histogram)?;
        metric.encode_histogram::<NoLabelSet>(histogram.sum(), histogram.count(), &histogram.buckets(), None)
    }
}
