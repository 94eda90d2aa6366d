//! Who may write, and in which groups. Nothing here lets anybody in whom the other gateway does not let in.

use std::collections::BTreeSet;

use rejoinder_config::IdFormat;

use super::{draft::Block, notes::Notes};

/// Who may write in direct chats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direct {
    Pairing,
    Allowlist,
    Open,
    Disabled,
}

impl Direct {
    /// OpenClaw's words, which are ours: openclaw/openclaw, `src/config/types.base.ts` (`DmPolicy`).
    pub(super) fn of(text: &str) -> Option<Self> {
        [Self::Pairing, Self::Allowlist, Self::Open, Self::Disabled].into_iter().find(|known| known.as_str() == text)
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Pairing => "pairing",
            Self::Allowlist => "allowlist",
            Self::Open => "open",
            Self::Disabled => "disabled",
        }
    }
}

/// Who may write in a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Senders {
    /// The same people as in other groups.
    #[default]
    AsElsewhere,
    Everyone,
    Only(Vec<String>),
}

/// A group with settings of its own.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// Its id on the platform, if the other gateway is right.
    pub(super) id: String,
    /// Where it stands there.
    pub(super) key: String,
    pub(super) is_enabled: bool,
    /// Whether the agent must be mentioned; `None`: as elsewhere.
    pub(super) needs_mention: Option<bool>,
    pub(super) senders: Senders,
}

/// The rules of an account. Ids are those of the platform.
#[derive(Debug)]
pub(super) struct Access {
    /// Where the account's settings stand there.
    pub(super) key: String,
    pub(super) direct: Direct,
    pub(super) people: Vec<String>,
    /// Whether groups reach the agent at all.
    pub(super) groups_enabled: bool,
    /// Whether groups that are not listed do.
    pub(super) other_groups: bool,
    /// Whether the agent must be mentioned in groups.
    pub(super) needs_mention: bool,
    /// Who may write in groups.
    pub(super) senders: Senders,
    pub(super) groups: Vec<Group>,
}

impl Access {
    pub(super) fn write(mut self, format: &IdFormat, block: &mut Block, notes: &mut Notes) {
        let people = std::mem::take(&mut self.people);
        let people = self.valid(people, format, notes);
        if self.direct == Direct::Open && !people.iter().any(|entry| entry == "*") && !people.is_empty() {
            // Theirs is open only together with "*".
            self.direct = Direct::Allowlist;
        }
        self.groups.retain(|group| {
            let is_known = (format.is_group)(&group.id);
            if !is_known {
                let instead = format!("{} belongs into [{}.groups.\"ID\"]", format.group, block.name());
                notes.add(&group.key, "names a group in another way than by its id", instead);
            }
            is_known
        });
        let senders = self.senders(&people, format, notes);
        let anybody = senders.is_some();
        let policy = self.policy(self.other_groups && anybody, None);
        let mut listed = senders.unwrap_or_default();
        block.set("dm_policy", self.direct.as_str());
        block.set_list("allow_from", &people);
        block.set("group_policy", policy);
        for group in &self.groups {
            let may_write = self.admit(group, &people, anybody, &mut listed, notes);
            let own = self.policy(group.is_enabled && may_write, group.needs_mention);
            if own != policy {
                block.set_below(&["groups", &group.id], "group_policy", own);
            }
        }
        block.set_list("group_allow_from", &listed);
    }

    fn policy(&self, is_enabled: bool, needs_mention: Option<bool>) -> &'static str {
        match (self.groups_enabled && is_enabled, needs_mention.unwrap_or(self.needs_mention)) {
            (false, _) => "disabled",
            (true, true) => "mention",
            (true, false) => "all",
        }
    }

    /// Our `group_allow_from`: empty means the people of direct chats. `None`: nobody may write in groups that do not say otherwise.
    fn senders(&self, people: &[String], format: &IdFormat, notes: &mut Notes) -> Option<Vec<String>> {
        let senders = match &self.senders {
            Senders::Everyone => return Some(vec!["*".to_owned()]),
            Senders::Only(senders) => senders.clone(),
            // Ours would be those of direct chats, who are everyone or nobody.
            Senders::AsElsewhere if matches!(self.direct, Direct::Open | Direct::Disabled) => people.to_vec(),
            Senders::AsElsewhere => match self.shared_list() {
                Some(senders) => senders.to_vec(),
                None => return Some(Vec::new()),
            },
        };
        Some(self.valid(senders, format, notes)).filter(|senders| !senders.is_empty())
    }

    /// The list that all groups have, where no other list holds.
    fn shared_list(&self) -> Option<&[String]> {
        let mut lists = self.groups.iter().filter(|group| group.is_enabled).filter_map(|group| match &group.senders {
            Senders::Only(senders) => Some(Some(senders)),
            Senders::AsElsewhere => Some(None),
            Senders::Everyone => None,
        });
        let first = lists.next()??;
        let is_shared = !self.other_groups && lists.all(|list| list.is_some_and(|list| same(list, first)));
        is_shared.then_some(first)
    }

    /// Whether the agent may be reached in this group by those who may write there. `listed` is our `group_allow_from`, to which
    /// the group is added if everyone may.
    fn admit(
        &self,
        group: &Group,
        people: &[String],
        anybody: bool,
        listed: &mut Vec<String>,
        notes: &mut Notes,
    ) -> bool {
        if !group.is_enabled {
            return false;
        }
        let as_list = |listed: &mut Vec<String>| {
            // Empty, it means the people of direct chats.
            if listed.is_empty() && anybody {
                listed.extend_from_slice(people);
            }
        };
        match &group.senders {
            Senders::AsElsewhere => anybody,
            Senders::Everyone => {
                as_list(listed);
                if !listed.iter().any(|entry| entry == "*") {
                    listed.push(group.id.clone());
                }
                true
            }
            Senders::Only(senders) => {
                let mut admitted = listed.clone();
                as_list(&mut admitted);
                let is_open = |entry: &String| self.groups_with_everyone().any(|id| id == entry);
                let mut persons = admitted.iter().filter(|entry| !is_open(entry)).peekable();
                if persons.peek().is_some() && persons.all(|entry| senders.contains(entry)) {
                    *listed = admitted;
                    return true;
                }
                let why = "lets in other people than the rest of the account";
                notes.add(&group.key, why, "the group is switched off here; group_allow_from holds for all groups");
                false
            }
        }
    }

    fn groups_with_everyone(&self) -> impl Iterator<Item = &String> {
        self.groups.iter().filter(|group| group.senders == Senders::Everyone).map(|group| &group.id)
    }

    /// The entries that can be people here; notes the others.
    fn valid(&self, entries: Vec<String>, format: &IdFormat, notes: &mut Notes) -> Vec<String> {
        let mut known = BTreeSet::new();
        let is_valid = |entry: &String| {
            let is_valid = format.may_be_person(entry);
            if !is_valid {
                let why = format!("lets in `{entry}`, which is nobody's id here");
                notes.add(&self.key, why, format!("add {}", format.person));
            }
            is_valid && known.insert(entry.clone())
        };
        entries.into_iter().filter(is_valid).collect()
    }
}

fn same(one: &[String], other: &[String]) -> bool {
    one.iter().collect::<BTreeSet<_>>() == other.iter().collect::<BTreeSet<_>>()
}
