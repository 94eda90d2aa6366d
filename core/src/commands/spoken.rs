//! Words that are commands where people speak: nobody says "slash stop" to a voice assistant.

use super::{command::Command, status::STATUS, stop::STOP};

/// What people say for a command, in English, German and Spanish. In lower case.
const SPOKEN: [(&Command, &[&str]); 2] = [
    (&STOP, &["stop", "stop it", "cancel", "stopp", "halt", "abbrechen", "hör auf", "para", "detente", "cancelar"]),
    (
        &STATUS,
        &[
            "status",
            "what is the status",
            "what’s the status",
            "anything new",
            "is there anything new",
            "wie ist der status",
            "wie steht es",
            "gibt es etwas neues",
            "gibt es was neues",
            "gibt’s was neues",
            "etwas neues",
            "estado",
            "hay algo nuevo",
            "algo nuevo",
            "hay novedades",
            "alguna novedad",
        ],
    ),
];

/// The command that a text says, if it consists of that alone. Dictation writes a capital letter, and a mark at the end.
pub(crate) fn find(text: &str) -> Option<&'static Command> {
    let said =
        text.trim_matches(|c: char| c.is_whitespace() || ".,!?…¡¿".contains(c)).to_lowercase().replace('\'', "’");
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    SPOKEN.iter().find(|(_, words)| words.contains(&&*said)).map(|(command, _)| *command)
}

/// The names of the commands, with what is said for them.
#[cfg(test)]
pub(super) fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    SPOKEN.iter().flat_map(|(command, words)| words.iter().map(|words| (command.name, *words)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_said_alone() {
        let name = |text| find(text).map(|command| command.name);

        assert_eq!(name("Stop."), Some("stop"));
        assert_eq!(name(" What’s the status? "), Some("status"));
        assert_eq!(name("Anything new?"), Some("status"));
        assert_eq!(name("Gibt's was Neues?"), Some("status"));
        assert_eq!(name("¿Hay algo nuevo?"), Some("status"));
        assert_eq!(name("¡Para!"), Some("stop"));
        assert_eq!(name("Hör auf"), Some("stop"));
        assert_eq!(name("stop the music"), None);
        assert_eq!(name(""), None);
    }
}
