//! Hours of the day, as the operator writes them.

use rejoinder_core::Hours;

use crate::{alerts::parse_hours, text};

/// `22:00-07:00`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span(pub(crate) Hours);

text::as_text!(Span, "two different times of day such as \"22:00-07:00\"", |text| {
    parse_hours(text).filter(|hours| hours.from != hours.until)
});
