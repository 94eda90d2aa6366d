//! A section whose type only its owner knows.

use std::{any::Any, fmt, sync::Arc};

use serde::{Serialize, Serializer};

use crate::redacted::RedactedValue;

/// A section that was read and checked, with its redacted form.
#[derive(Clone)]
pub(crate) struct Boxed {
    section: Arc<dyn Any + Send + Sync>,
    redacted: RedactedValue,
}

impl Boxed {
    pub(crate) fn new<T: Serialize + Send + Sync + 'static>(section: T) -> Self {
        Self { redacted: RedactedValue::of(&section), section: Arc::new(section) }
    }

    /// `None` if the section has another type.
    pub(crate) fn get<T: 'static>(&self) -> Option<&T> {
        self.section.downcast_ref()
    }

    pub(crate) const fn redacted(&self) -> &RedactedValue {
        &self.redacted
    }
}

/// Prints no secrets.
impl fmt::Debug for Boxed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.redacted.fmt(f)
    }
}

impl Serialize for Boxed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.redacted.serialize(serializer)
    }
}
