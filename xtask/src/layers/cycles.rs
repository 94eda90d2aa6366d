//! Finds cycles of modules that use each other.
//!
//! Of all that a folder holds, no two may use each other in a circle; each counts with everything inside it. A folder's own
//! file and what the folder holds may use each other.

use std::collections::{BTreeMap, BTreeSet};

use super::modules::Reference;

/// Describes every cycle, with the references that form it.
pub(super) fn problems(name: &str, references: &BTreeSet<Reference>) -> Vec<String> {
    let mut arrows: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (from, to) in references.iter().filter_map(|arrow| siblings(&arrow.from, &arrow.to)) {
        arrows.entry(from).or_default().insert(to);
    }
    let reached: BTreeMap<&str, BTreeSet<&str>> = arrows.keys().map(|from| (*from, reach(from, &arrows))).collect();
    let is_path = |from: &str, to: &str| reached.get(from).is_some_and(|reached| reached.contains(to));
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let mut problems = Vec::new();
    for module in arrows.keys().copied().filter(|module| is_path(module, module)) {
        if seen.contains(module) {
            continue;
        }
        let cycle: BTreeSet<&str> =
            arrows.keys().copied().filter(|other| is_path(module, other) && is_path(other, module)).collect();
        seen.extend(&cycle);
        let is_in_cycle = |arrow: &&Reference| {
            siblings(&arrow.from, &arrow.to).is_some_and(|(from, to)| cycle.contains(from) && cycle.contains(to))
        };
        let edges = references.iter().filter(is_in_cycle);
        let edges = edges.map(|arrow| format!("\n    {} uses {} of {}", arrow.from, arrow.what, arrow.to));
        problems.push(format!("{name}: {} modules form a cycle{}", cycle.len(), edges.collect::<String>()));
    }
    problems
}

/// What the deepest folder that holds both modules holds of each; `None` if one of them holds the other. The crate's root has
/// the empty name, and holds all modules.
fn siblings<'a>(from: &'a str, to: &'a str) -> Option<(&'a str, &'a str)> {
    if from.is_empty() || to.is_empty() {
        return None;
    }
    let depth = from.split("::").zip(to.split("::")).take_while(|(one, other)| one == other).count();
    Some((child_at(depth, from)?, child_at(depth, to)?))
}

/// The beginning of a path that has `depth` names and one more.
fn child_at(depth: usize, path: &str) -> Option<&str> {
    path.split("::").nth(depth)?;
    Some(path.match_indices("::").nth(depth).map_or(path, |(end, _)| &path[..end]))
}

/// All modules that can be reached from a module, directly or through others.
fn reach<'a>(from: &str, arrows: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<&str> = arrows.get(from).into_iter().flatten().copied().collect();
    while let Some(module) = next.pop() {
        if reached.insert(module) {
            next.extend(arrows.get(module).into_iter().flatten());
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrow(from: &str, to: &str) -> Reference {
        Reference { from: from.to_owned(), to: to.to_owned(), what: "Thing".to_owned(), through: None }
    }

    #[test]
    fn a_cycle_is_found_with_what_ties_it() {
        let road = [arrow("a", "b"), arrow("b", "c"), arrow("a", "c")];
        assert!(problems("x", &BTreeSet::from(road.clone())).is_empty());

        let found = problems("x", &road.into_iter().chain([arrow("c", "b")]).collect());

        assert_eq!(found, ["x: 2 modules form a cycle\n    b uses Thing of c\n    c uses Thing of b"]);
    }

    #[test]
    fn what_is_inside_may_use_what_it_is_part_of() {
        let inside = [arrow("a", "a::b"), arrow("a::b", "a"), arrow("a::b", ""), arrow("", "a")];
        assert!(problems("x", &BTreeSet::from(inside)).is_empty());

        let around = [arrow("a", "a::b"), arrow("a::b", "c"), arrow("c", "a")];
        assert_eq!(problems("x", &BTreeSet::from(around)).len(), 1);
    }

    #[test]
    fn a_folder_counts_with_everything_inside_it() {
        let folders = [arrow("a::b::large", "a::c::small"), arrow("a::c::large", "a::b::small")];

        let found = problems("x", &BTreeSet::from(folders));

        let edges = "\n    a::b::large uses Thing of a::c::small\n    a::c::large uses Thing of a::b::small";
        assert_eq!(found, [format!("x: 2 modules form a cycle{edges}")]);
    }
}
