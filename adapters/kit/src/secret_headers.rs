use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

/// Headers that the operator adds to requests: their names and values. The values are not printed.
///
/// # Errors
/// The name of a header that cannot be sent.
pub fn secret_headers<'a>(headers: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<HeaderMap, String> {
    let header = |(name, value): (&str, &str)| {
        let header = HeaderName::try_from(name).ok().zip(HeaderValue::try_from(value).ok());
        let (header, mut value) = header.ok_or_else(|| name.to_owned())?;
        value.set_sensitive(true);
        Ok((header, value))
    };
    headers.into_iter().map(header).collect()
}
