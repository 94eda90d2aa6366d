//! Patterns for `like`.

/// A pattern of texts that contain `part`, for `like` with `escape '\\'`.
pub(crate) fn containing(part: &str) -> String {
    let escaped = part.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
    format!("%{escaped}%")
}
