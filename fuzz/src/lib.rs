//! What the fuzz targets share.

pub mod allocated;
pub mod bases;
pub mod keys;
pub mod logging;
pub mod seal;
pub mod subject;
