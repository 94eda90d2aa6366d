//! Checks of the configuration: its source, and whether a gateway can be built from it.

use std::path::Path;

use anyhow::Error;
use rejoinder_config::{ConfigErrors, Loaded};

use crate::{console::finding::Finding, wiring};

const ABOUT: &str = "config";

pub(super) fn check(loaded: &Loaded, data_dir: &Path) -> Vec<Finding> {
    let Loaded { config, source, overrides } = loaded;
    let with = if overrides.is_empty() { String::new() } else { format!(", with {}", overrides.join(", ")) };
    let mut findings = vec![match wiring::check(config, data_dir) {
        Ok(()) => Finding::ok(ABOUT, format!("{source}{with}")),
        Err(error) => Finding::wrong(ABOUT, format!("{source}{with}: {:#}", Error::new(error))),
    }];
    findings.extend(wiring::remarks(config).iter().map(|remark| Finding::warning(ABOUT, remark)));
    findings
}

/// The problems of a configuration that is invalid.
pub(super) fn problems(errors: &ConfigErrors) -> Vec<Finding> {
    errors.problems().iter().map(|problem| Finding::wrong(ABOUT, problem.to_string())).collect()
}
