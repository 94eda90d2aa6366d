use std::{fmt, ops::Deref, sync::Arc};

use tokio::sync::OwnedSemaphorePermit;

/// The bytes of a file. They count against the bytes that the files of all turns may have until the last copy is dropped.
#[derive(Clone)]
pub struct FileBytes(Arc<Counted>);

struct Counted {
    bytes: Vec<u8>,
    _share: Option<OwnedSemaphorePermit>,
}

impl FileBytes {
    pub(crate) fn counted(bytes: Vec<u8>, share: OwnedSemaphorePermit) -> Self {
        Self(Arc::new(Counted { bytes, _share: Some(share) }))
    }
}

impl From<Vec<u8>> for FileBytes {
    /// Bytes that count against nothing.
    fn from(bytes: Vec<u8>) -> Self {
        Self(Arc::new(Counted { bytes, _share: None }))
    }
}

impl Deref for FileBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0.bytes
    }
}

impl PartialEq for FileBytes {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl fmt::Debug for FileBytes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} bytes", self.len())
    }
}
