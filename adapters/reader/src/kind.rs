//! The kinds of documents.

/// The largest document that is read, in bytes.
pub(crate) const MAX_FILE: usize = 25 << 20;

/// The beginnings of the media types of documents that office programs write today.
const OFFICE: [&str; 2] = ["application/vnd.openxmlformats-officedocument.", "application/vnd.oasis.opendocument."];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Pdf,
    Office,
    Page,
    /// Values with commas or tabs between them.
    Table,
}

impl Kind {
    pub(crate) fn of(media_type: &str) -> Option<Self> {
        let essence = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match &*essence {
            "application/pdf" | "application/x-pdf" => Some(Self::Pdf),
            "text/html" | "application/xhtml+xml" => Some(Self::Page),
            "text/csv" | "text/tab-separated-values" => Some(Self::Table),
            // What programs make of a document whose type they do not know.
            "application/zip" | "application/x-zip-compressed" => Some(Self::Office),
            office if OFFICE.iter().any(|beginning| office.starts_with(beginning)) => Some(Self::Office),
            office if office.starts_with("application/vnd.ms-") && office.ends_with(".macroenabled.12") => {
                Some(Self::Office)
            }
            _ => None,
        }
    }

    /// The argument of the process that reads it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Pdf => "pdf",
            Self::Office => "office",
            Self::Page => "page",
            Self::Table => "table",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        [Self::Pdf, Self::Office, Self::Page, Self::Table].into_iter().find(|kind| kind.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("application/PDF; version=1.7", Some(Kind::Pdf))]
    #[case("application/vnd.openxmlformats-officedocument.wordprocessingml.document", Some(Kind::Office))]
    #[case("application/vnd.ms-excel.sheet.macroEnabled.12", Some(Kind::Office))]
    #[case("application/vnd.oasis.opendocument.text", Some(Kind::Office))]
    #[case("application/zip", Some(Kind::Office))]
    #[case("text/html; charset=utf-8", Some(Kind::Page))]
    #[case("text/csv", Some(Kind::Table))]
    #[case("text/plain", None)]
    #[case("application/msword", None)]
    #[case("--limited", None)]
    fn a_kind_is_known_by_its_media_type(#[case] media_type: &str, #[case] kind: Option<Kind>) {
        assert_eq!(Kind::of(media_type), kind);
        assert_eq!(kind.map(|kind| Kind::named(kind.name())), kind.map(Some));
    }
}
