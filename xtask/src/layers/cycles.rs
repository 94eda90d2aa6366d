//! Finds cycles of modules that use each other.
//!
//! A module may use the modules that contain it; that alone is not a cycle.

use std::collections::{BTreeMap, BTreeSet};

use super::modules::Reference;

/// Describes every cycle, with the references that form it.
pub(super) fn problems(name: &str, references: &BTreeSet<Reference>) -> Vec<String> {
    let mut arrows: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for arrow in references.iter().filter(|arrow| !is_inside(&arrow.from, &arrow.to)) {
        arrows.entry(&arrow.from).or_default().insert(&arrow.to);
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
        let is_in_cycle = |arrow: &&Reference| cycle.contains(&*arrow.from) && cycle.contains(&*arrow.to);
        let edges = references.iter().filter(is_in_cycle);
        let edges = edges.map(|arrow| format!("\n    {} uses {} of {}", arrow.from, arrow.what, arrow.to));
        problems.push(format!("{name}: {} modules form a cycle{}", cycle.len(), edges.collect::<String>()));
    }
    problems
}

/// Whether a module is inside another one. The crate's root has the empty name, and contains all modules.
fn is_inside(module: &str, other: &str) -> bool {
    other.is_empty() || module.strip_prefix(other).is_some_and(|rest| rest.starts_with("::"))
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
}
