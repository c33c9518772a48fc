//! The disks on which the files of a crawl are.

use std::fmt;

use super::page::Page;
use crate::disks::Disks;

pub(super) fn encode(page: &mut Page<'_>, disks: &Disks) -> fmt::Result {
    let free = disks.free_bytes();
    page.gauges(
        "crawler_disk_free_bytes",
        "Free space of the disks with the state directory and with the outputs",
        free.map(|(files, bytes)| ([("files", files)], bytes as f64)),
    )?;
    page.gauge(
        "crawler_output_bytes",
        "Size of the outputs, with all files of a series",
        disks.output_bytes() as f64,
    )
}
