//! Rejoinder: the messaging gateway that can prove it answered.
