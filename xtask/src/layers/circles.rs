//! Modules that use each other in a circle.

use std::collections::{BTreeMap, BTreeSet};

use super::modules::Reference;

/// Every circle, with the references that tie it.
pub(super) fn problems(name: &str, references: &BTreeSet<Reference>) -> Vec<String> {
    let mut arrows: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for Reference { from, to, .. } in references {
        arrows.entry(from).or_default().insert(to);
    }
    let reached: BTreeMap<&str, BTreeSet<&str>> = arrows.keys().map(|from| (*from, reach(from, &arrows))).collect();
    let is_tied = |one: &str, other: &str| {
        reached.get(one).is_some_and(|reached| reached.contains(other))
            && reached.get(other).is_some_and(|reached| reached.contains(one))
    };
    let mut seen = BTreeSet::new();
    let mut problems = Vec::new();
    for module in arrows.keys().copied().filter(|module| is_tied(module, module)) {
        if !seen.insert(module) {
            continue;
        }
        let circle: BTreeSet<&str> = arrows.keys().copied().filter(|other| is_tied(module, other)).collect();
        seen.extend(&circle);
        let ties = references.iter().filter(|arrow| circle.contains(&*arrow.from) && circle.contains(&*arrow.to));
        let ties =
            ties.map(|arrow| format!("\n    {} uses {} of {}", shown(&arrow.from), arrow.what, shown(&arrow.to)));
        problems.push(format!("{name}: {} modules in a circle{}", circle.len(), ties.collect::<String>()));
    }
    problems
}

/// The crate's root has no name.
fn shown(module: &str) -> &str {
    if module.is_empty() { "lib.rs" } else { module }
}

/// Where the arrows from a module lead, over others too.
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
    fn a_circle_is_found_with_what_ties_it() {
        let road = [arrow("a", "b"), arrow("b", "c"), arrow("a", "c")];
        assert!(problems("x", &BTreeSet::from(road.clone())).is_empty());

        let found = problems("x", &road.into_iter().chain([arrow("c", "b")]).collect());

        assert_eq!(found, ["x: 2 modules in a circle\n    b uses Thing of c\n    c uses Thing of b"]);
    }
}
