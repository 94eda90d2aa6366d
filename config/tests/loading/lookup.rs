//! Where the file is looked for.

use rejoinder_config::{ConfigSource, Remembered, testing};

use crate::Machine;

const SIRI: &str = "[channels.hook.siri]\ntoken = \"token-of-these-tests\"";

fn source(machine: &testing::Machine) -> ConfigSource {
    machine.load().expect("the configuration is valid").source
}

fn file(path: impl Into<std::path::PathBuf>) -> ConfigSource {
    ConfigSource::File(path.into())
}

#[test]
fn the_first_file_of_the_four_places_is_taken() {
    let mut machine = Machine::new();
    let dir = machine.dir().to_owned();
    let home = dir.display().to_string();
    assert_eq!(source(&machine), ConfigSource::Defaults);

    machine = machine.with_file(".config/rejoinder/rejoinder.toml", SIRI).with_environment(&[("HOME", &home)]);
    assert_eq!(source(&machine), file(dir.join(".config/rejoinder/rejoinder.toml")));

    machine = machine.with_file("rejoinder.toml", SIRI);
    assert_eq!(source(&machine), file("rejoinder.toml"));

    machine = machine
        .with_file("by-variable.toml", SIRI)
        .with_environment(&[("HOME", &home), ("REJOINDER_CONFIG", "by-variable.toml")]);
    assert_eq!(source(&machine), file("by-variable.toml"));

    machine = machine.with_file("by-flag.toml", SIRI);
    machine.options.path = Some("by-flag.toml".into());
    assert_eq!(source(&machine), file("by-flag.toml"));
}

#[test]
fn the_users_directory_is_where_xdg_says() {
    let machine = Machine::new().with_file("xdg/rejoinder/rejoinder.toml", SIRI);
    let xdg = machine.dir().join("xdg");
    let machine = machine.with_environment(&[("HOME", "/nowhere"), ("XDG_CONFIG_HOME", &xdg.display().to_string())]);

    assert_eq!(source(&machine), file(xdg.join("rejoinder/rejoinder.toml")));
}

#[test]
fn a_file_that_was_asked_for_must_be_there() {
    let by_variable = Machine::with_toml(SIRI).with_environment(&[("REJOINDER_CONFIG", "gone.toml")]);
    let mut by_flag = Machine::with_toml(SIRI);
    by_flag.options.path = Some("gone.toml".into());

    insta::assert_snapshot!(by_variable.errors(), @"config file gone.toml (named by $REJOINDER_CONFIG) cannot be read: No such file or directory (os error 2)");
    insta::assert_snapshot!(by_flag.errors(), @"config file gone.toml (named by --config) cannot be read: No such file or directory (os error 2)");
}

#[test]
fn a_file_that_cannot_be_read_is_not_passed_over() {
    let machine = Machine::new().with_file("rejoinder.toml/inside", "");

    insta::assert_snapshot!(machine.errors(), @"config file rejoinder.toml (found at a default path) cannot be read: Is a directory (os error 21)");
}

#[test]
fn a_file_in_utf_16_is_told_what_to_do() {
    let machine = Machine::new();
    let text: Vec<u8> = "\u{feff}[log]".encode_utf16().flat_map(u16::to_le_bytes).collect();
    std::fs::write(machine.dir().join("rejoinder.toml"), text).unwrap();

    insta::assert_snapshot!(machine.errors(), @"config file rejoinder.toml (found at a default path) cannot be read: it is UTF-16: save it as UTF-8");
}

#[test]
fn the_file_of_an_earlier_start_is_taken_when_there_is_no_other() {
    let mut machine = Machine::new().with_file("elsewhere/rejoinder.toml", SIRI);
    let remembered = machine.dir().join("elsewhere/rejoinder.toml");
    let trusted = |path| Some(Remembered { path, distrust: None });
    machine.options.remembered = trusted(remembered.clone());
    assert_eq!(source(&machine), ConfigSource::Remembered(remembered));

    machine.options.remembered = trusted(machine.dir().join("gone.toml"));
    assert_eq!(source(&machine), ConfigSource::Defaults);

    let path = machine.dir().join("elsewhere/rejoinder.toml");
    machine.options.remembered = Some(Remembered { path, distrust: Some("name it with --config".to_owned()) });
    assert!(machine.errors().ends_with("name it with --config"), "{}", machine.errors());

    machine = machine.with_file("rejoinder.toml", SIRI);
    assert_eq!(source(&machine), file("rejoinder.toml"));
}
