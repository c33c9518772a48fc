//! Writes one metric after another.

use std::fmt;

use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelValue, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::Histogram;

const NO_LABELS: [(&str, &str); 0] = [];

pub(super) struct Page<'e>(DescriptorEncoder<'e>);

impl<'e> Page<'e> {
    pub(super) fn new(encoder: DescriptorEncoder<'e>) -> Self {
        Self(encoder)
    }

    /// Writes a number if it is known. Its name is there always.
    pub(super) fn gauge(&mut self, name: &str, help: &str, value: impl Into<Option<f64>>) -> fmt::Result {
        self.labelled(name, help, value.into().map(|value| (NO_LABELS, value)))
    }

    /// Writes numbers by the value of a label.
    pub(super) fn gauges(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        values: impl IntoIterator<Item = (impl EncodeLabelValue, u64)>,
    ) -> fmt::Result {
        let values = values.into_iter();
        self.labelled(name, help, values.map(|(of, value)| ([(label, of)], value as f64)))
    }

    /// Writes numbers by several labels.
    pub(super) fn labelled<'l, const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = ([(&'l str, impl EncodeLabelValue); N], f64)>,
    ) -> fmt::Result {
        let values = values.into_iter();
        let values = values.map(|(labels, value)| (labels, ConstGauge::new(value)));
        self.metrics(name, help, MetricType::Gauge, values)
    }

    /// Writes a counter. Its name gets the suffix `_total`.
    pub(super) fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        let value = (NO_LABELS, ConstCounter::new(value));
        self.metrics(name, help, MetricType::Counter, [value])
    }

    /// Writes counters by the value of a label.
    pub(super) fn counters(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        values: impl IntoIterator<Item = (impl EncodeLabelValue, u64)>,
    ) -> fmt::Result {
        let values = values.into_iter();
        let values = values.map(|(of, value)| ([(label, of)], ConstCounter::new(value)));
        self.metrics(name, help, MetricType::Counter, values)
    }

    fn metrics<'l, const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        kind: MetricType,
        values: impl IntoIterator<Item = ([(&'l str, impl EncodeLabelValue); N], impl EncodeMetric)>,
    ) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, None, kind)?;
        for (labels, value) in values {
            value.encode(metric.encode_family(&labels)?)?;
        }
        Ok(())
    }

    pub(super) fn histogram(&mut self, name: &str, help: &str, histogram: &Histogram) -> fmt::Result {
        self.metrics(name, help, MetricType::Histogram, [(NO_LABELS, histogram.clone())])
    }
}
