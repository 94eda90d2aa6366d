//! A section whose type only its owner knows.

use std::{any::Any, fmt, sync::Arc};

use serde::{Serialize, Serializer};

use crate::shown::Shown;

/// A section that was read and checked, with its redacted form.
#[derive(Clone)]
pub(crate) struct Boxed {
    section: Arc<dyn Any + Send + Sync>,
    shown: Shown,
}

impl Boxed {
    pub(crate) fn new<T: Serialize + Send + Sync + 'static>(section: T) -> Self {
        Self { shown: Shown::of(&section), section: Arc::new(section) }
    }

    /// `None` if the section has another type.
    pub(crate) fn get<T: 'static>(&self) -> Option<&T> {
        self.section.downcast_ref()
    }

    pub(crate) const fn shown(&self) -> &Shown {
        &self.shown
    }
}

/// Prints no secrets.
impl fmt::Debug for Boxed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shown.fmt(f)
    }
}

impl Serialize for Boxed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.shown.serialize(serializer)
    }
}
