//! The position of a value in the configuration: `guard.ladder.webchat.direct.silent[1]`.

use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum KeyStep {
    Name(String),
    Index(usize),
}

/// The path from the root to a value, printed in TOML notation.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(Vec<KeyStep>);

impl Key {
    /// The key `name` in the table at this key.
    #[must_use]
    pub fn name(&self, name: &str) -> Self {
        self.then(KeyStep::Name(name.to_owned()))
    }

    /// The element `index`, from 0, of the list at this key.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        self.then(KeyStep::Index(index))
    }

    pub(crate) fn names(&self, names: &[&str]) -> Self {
        names.iter().fold(self.clone(), |key, name| key.name(name))
    }

    fn then(&self, step: KeyStep) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        Self(steps)
    }

    pub(crate) fn parent(&self) -> Option<Self> {
        let (_, rest) = self.0.split_last()?;
        Some(Self(rest.to_vec()))
    }

    /// This key, or that of the outermost list that contains it.
    pub(crate) fn or_list(&self) -> Self {
        Self(self.0.iter().take_while(|step| matches!(step, KeyStep::Name(_))).cloned().collect())
    }

    pub(crate) fn is_below(&self, other: &Self) -> bool {
        self.0.len() > other.0.len() && self.0.starts_with(&other.0)
    }

    /// The steps from `ancestor` to this key.
    pub(crate) fn below(&self, ancestor: &Self) -> &[KeyStep] {
        self.0.strip_prefix(&*ancestor.0).unwrap_or(&self.0)
    }
}

fn is_bare(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, step) in self.0.iter().enumerate() {
            match step {
                KeyStep::Index(index) => write!(f, "[{index}]")?,
                KeyStep::Name(name) => {
                    if position > 0 {
                        f.write_str(".")?;
                    }
                    if is_bare(name) { f.write_str(name)? } else { write!(f, "{name:?}")? }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_prints_as_toml_writes_it() {
        let key = Key::default().names(&["guard", "ladder", "webchat.main", "direct", "silent"]).index(1).name("say");

        assert_eq!(key.to_string(), r#"guard.ladder."webchat.main".direct.silent[1].say"#);
    }
}
