//! Checks of the configuration: its source, and whether a gateway can be built from it.

use std::path::Path;

use anyhow::Error;
use rejoinder_config::{ConfigErrors, Loaded};

use super::fix::{EVERYBODY, Fixer, Remedy};
use crate::{
    cli::remembered,
    console::finding::Finding,
    exposure::{readable_files, readable_secret},
    wiring,
};

const ABOUT: &str = "config";

pub(super) fn check(loaded: &Loaded, data_dir: &Path, fixer: Fixer) -> Vec<Finding> {
    let Loaded { config, source, overrides } = loaded;
    let with = if overrides.is_empty() { String::new() } else { format!(", with {}", overrides.join(", ")) };
    let mut findings = vec![match wiring::check(config, data_dir) {
        Ok(()) => Finding::ok(ABOUT, format!("{source}{with}")),
        Err(error) => Finding::wrong(ABOUT, format!("{source}{with}: {:#}", Error::new(error))),
    }];
    if let Some(other) = remembered::other(data_dir, source) {
        let other = other.display();
        let what = format!("the data directory was last used with another configuration, {other}");
        let advice = format!("Pass --config {other}, or start the gateway with this one.");
        findings.push(Finding::warning(ABOUT, what).with_advice(advice));
    }
    findings.extend(wiring::remarks_on_settings(config).into_iter().map(|remark| Finding::warning(ABOUT, remark)));
    findings.extend(readable_files(&config.secret_files).map(|file| {
        let finding = Finding::warning(ABOUT, readable_secret(file));
        let finding = finding.with_advice(format!("Run chmod o= {}.", file.display()));
        fixer.treat(finding, Remedy::Close { path: file, bits: EVERYBODY })
    }));
    findings
}

pub(super) fn problems(errors: &ConfigErrors) -> Vec<Finding> {
    errors.problems().iter().map(|problem| Finding::wrong(ABOUT, problem.to_string())).collect()
}
