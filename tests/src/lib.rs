//! End-to-end tests and what they need.
