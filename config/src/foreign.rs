//! Keys that stand in the wrong section: those of other kinds of agents, and of other platforms.

use crate::{environment::ResolveContext, key::Key, names::foreign, node::Node, read::Reader};

/// The keys of a section; `None` if it takes any.
pub(crate) type KeysOf = fn(&ResolveContext<'_>) -> Option<Vec<&'static str>>;

/// Reports each key of `node` that the section `own` does not have and others of `all` have, and removes it. `word` says what they
/// are: "kind" or "platform".
pub(crate) fn remove(
    node: &mut Node,
    key: &Key,
    reader: &mut Reader<'_>,
    (word, own): (&str, &str),
    all: &[(&'static str, KeysOf)],
) {
    let context = reader.context;
    let own_keys = all.iter().find(|(name, _)| *name == own).and_then(|(_, keys)| keys(context));
    let Some(known) = own_keys else { return };
    let unknown = node.table().into_iter().flatten().filter(|(name, _)| !known.contains(&name.as_str()));
    let unknown: Vec<_> = unknown.map(|(name, node)| (name.clone(), node.origin.clone())).collect();
    for (name, origin) in unknown {
        let has = |keys: KeysOf| keys(context).is_some_and(|keys| keys.contains(&name.as_str()));
        let others: Vec<_> = all.iter().filter(|(_, keys)| has(*keys)).map(|(other, _)| *other).collect();
        if others.is_empty() {
            continue;
        }
        reader.problem(key.name(&name), &origin, foreign((word, own), &others, &known));
        if let Some(table) = node.table_mut() {
            table.remove(&name);
        }
    }
}
