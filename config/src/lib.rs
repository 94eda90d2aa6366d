//! rejoinder.toml: one file per section; default.toml is the manual.
