//! A section whose type only its platform or kind of agent knows.

use std::{any::Any, fmt, sync::Arc};

use serde::{Serialize, Serializer};

use crate::redacted::{self, RedactedValue};

/// A section that was read and checked, with its redacted form.
#[derive(Clone)]
pub(crate) struct Boxed {
    section: Arc<dyn Any + Send + Sync>,
    redacted: RedactedValue,
    /// The same to compare it with another section.
    compared: RedactedValue,
}

impl Boxed {
    pub(crate) fn new<T: Serialize + Send + Sync + 'static>(section: T) -> Self {
        let compared = redacted::to_compare(|| RedactedValue::of(&section));
        Self { redacted: RedactedValue::of(&section), compared, section: Arc::new(section) }
    }

    /// `None` if the section has another type.
    pub(crate) fn get<T: 'static>(&self) -> Option<&T> {
        self.section.downcast_ref()
    }

    /// What is serialised.
    pub(crate) fn written(&self) -> &RedactedValue {
        if redacted::is_compared() { &self.compared } else { &self.redacted }
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
        self.written().serialize(serializer)
    }
}
