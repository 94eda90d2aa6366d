//! A section that only its owner knows the type of.

use std::{any::Any, fmt, sync::Arc};

use serde::{Serialize, Serializer};

use crate::shown::Shown;

/// A section that was read and checked, and how it is shown.
#[derive(Clone)]
pub(crate) struct Boxed {
    section: Arc<dyn Any + Send + Sync>,
    shown: Shown,
}

impl Boxed {
    pub(crate) fn new<T: Serialize + Send + Sync + 'static>(section: T) -> Self {
        Self { shown: Shown::of(&section), section: Arc::new(section) }
    }

    /// The section, where it is of this type.
    pub(crate) fn get<T: 'static>(&self) -> Option<&T> {
        self.section.downcast_ref()
    }

    pub(crate) const fn shown(&self) -> &Shown {
        &self.shown
    }
}

/// Without its secrets.
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
