//! The body of a form.

/// A form with files, as browsers and phones send it.
#[derive(Clone, Debug, Default)]
pub struct Form(Vec<u8>);

impl Form {
    /// The `Content-Type` of its body.
    pub const TYPE: &'static str = "multipart/form-data; boundary=a-boundary-of-tests";

    /// Adds a field.
    #[must_use]
    pub fn field(self, name: &str, value: &str) -> Self {
        self.part(&format!("name=\"{name}\""), value.as_bytes())
    }

    /// Adds a file in a field.
    #[must_use]
    pub fn file(self, field: &str, name: &str, media_type: &str, bytes: &[u8]) -> Self {
        self.part(&format!("name=\"{field}\"; filename=\"{name}\"\r\nContent-Type: {media_type}"), bytes)
    }

    /// Its bytes.
    #[must_use]
    pub fn body(mut self) -> Vec<u8> {
        self.0.extend_from_slice(b"--a-boundary-of-tests--\r\n");
        self.0
    }

    fn part(mut self, about: &str, content: &[u8]) -> Self {
        let head = format!("--a-boundary-of-tests\r\nContent-Disposition: form-data; {about}\r\n\r\n");
        self.0.extend([head.as_bytes(), content, b"\r\n"].concat());
        self
    }
}
