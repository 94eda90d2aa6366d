//! `rejoinder man`: the manual pages.

use std::{fs, io, path::PathBuf};

use anyhow::Context;
use clap::{Args, Command};
use clap_mangen::{
    Man,
    roff::{Roff, roman},
};

use super::umask::let_others_read;
use crate::console::{failure::Failure, output};

/// What the help of a command says that names no others.
pub(super) const EXIT_CODES: &str = "Exit code: 0, 1 if the command failed, 2 if the arguments or the configuration are invalid; `ask --help` has more.";

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  sudo rejoinder man /usr/local/share/man/man1")]
pub(super) struct ManPages {
    /// Folder to write them to; it is created if it is missing
    dir: PathBuf,
}

impl ManPages {
    pub(super) fn perform(&self, cli: Command) -> Result<(), Failure> {
        let_others_read();
        fs::create_dir_all(&self.dir).with_context(|| format!("cannot create {}", self.dir.display()))?;
        for (name, page) in pages(cli).context("cannot make the pages")? {
            let path = self.dir.join(name);
            fs::write(&path, page).with_context(|| format!("cannot write {}", path.display()))?;
            output::print(path.display().to_string())?;
        }
        Ok(())
    }
}

/// The pages of all commands, with the names of their files.
fn pages(cli: Command) -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut cli = cli.disable_help_subcommand(true);
    cli.build();
    let (mut commands, mut pages) = (vec![&cli], Vec::new());
    while let Some(command) = commands.pop() {
        commands.extend(command.get_subcommands().filter(|command| !command.is_hide_set()));
        let man =
            Man::new(command.clone()).source(concat!("rejoinder ", env!("CARGO_PKG_VERSION"))).manual("Rejoinder");
        pages.push((man.get_filename(), page(command, &man)?));
    }
    pages.sort();
    Ok(pages)
}

/// A page whose sections after the options are those of the help.
fn page(command: &Command, man: &Man) -> io::Result<Vec<u8>> {
    let mut help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    if !help.contains("Exit code:") {
        help = format!("{help}\n\n{EXIT_CODES}");
    }
    let paragraphs = help.split("\n\n").map(str::trim_end).filter(|text| !text.is_empty());
    let (sections, remarks): (Vec<_>, Vec<_>) = paragraphs.partition(|paragraph| section(paragraph).is_some());

    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    let mut roff = Roff::new();
    for remark in remarks {
        roff.control("PP", []).text([roman(remark)]);
    }
    roff.to_writer(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    let mut roff = Roff::new();
    for (title, text) in sections.into_iter().filter_map(section) {
        roff.control("SH", [title.as_str()]).control("nf", []);
        for line in text.lines() {
            roff.text([roman(line)]);
        }
        roff.control("fi", []);
    }
    roff.to_writer(&mut page)?;
    man.render_version_section(&mut page)?;
    Ok(page)
}

/// The title and the text of a paragraph of the help that is a section: `Examples:` above indented lines, or the exit code.
fn section(paragraph: &str) -> Option<(String, &str)> {
    match paragraph.split_once(':')? {
        ("Exit code", text) => {
            Some(("EXIT STATUS".to_owned(), text.strip_prefix('\n').unwrap_or_else(|| text.trim_start())))
        }
        (title, text) if text.starts_with("\n  ") => Some((title.to_uppercase(), &text[1..])),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::{super::Cli, *};

    fn text(name: &str) -> String {
        let mut pages = pages(Cli::command()).unwrap().into_iter();
        let (_, page) = pages.find(|(file, _)| file == name).unwrap_or_else(|| panic!("there is no {name}"));
        String::from_utf8(page).unwrap()
    }

    #[test]
    fn every_command_has_a_page_which_its_parent_names() {
        fn check(command: &Command, name: &str) {
            let page = text(&format!("{name}.1"));
            for child in command.get_subcommands() {
                let child_name = format!("{name}-{}", child.get_name());
                assert!(page.contains(&format!("{}(1)", child_name.replace('-', "\\-"))), "{child_name}: {page}");
                check(child, &child_name);
            }
        }

        check(&Cli::command(), "rejoinder");
    }

    #[test]
    fn a_page_has_the_sections_of_the_help() {
        let page = text("rejoinder.1");
        for title in ["EXAMPLES", "ENVIRONMENT", "FILES", "\"EXIT STATUS\""] {
            assert_eq!(page.matches(&format!(".SH {title}\n")).count(), 1, "{title}: {page}");
        }

        let page = text("rejoinder-ask.1");
        assert_eq!(page.matches(".SH \"EXIT STATUS\"\n.nf\n  0  ").count(), 1, "{page}");

        let page = text("rejoinder-doctor.1");
        assert_eq!(page.matches(".SH \"EXIT STATUS\"\n").count(), 1, "{page}");
        let description = page.split(".SH OPTIONS").next().unwrap();
        assert!(description.contains("Each line is a finding"), "{page}");
    }
}
