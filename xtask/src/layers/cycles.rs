//! Finds cycles of modules that use each other.
//!
//! Of all that a folder holds, no two may use each other in a circle. A child counts with everything inside it; the folder's
//! own file (`cli.rs` of `cli/`) is one of those that the folder holds.

use std::collections::{BTreeMap, BTreeSet};

use super::modules::Reference;

/// What each module uses.
type Arrows<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// Describes every cycle, with the references that form it.
pub(super) fn problems(name: &str, references: &BTreeSet<Reference>) -> Vec<String> {
    let arrows: Vec<_> =
        references.iter().filter_map(|arrow| Some((arrow, members(&arrow.from, &arrow.to)?))).collect();
    let described = cycles(arrows.iter().map(|(_, arrow)| *arrow)).into_iter().map(|cycle| {
        let edges = arrows.iter().filter(|(_, (from, to))| cycle.contains(from) && cycle.contains(to));
        let edges = edges.map(|(arrow, _)| format!("\n    {} uses {} of {}", arrow.from, arrow.what, arrow.to));
        format!("{name}: {} modules form a cycle{}", cycle.len(), edges.collect::<String>())
    });
    described.collect()
}

/// The sets of modules that reach each other.
fn cycles<'a>(uses: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<BTreeSet<&'a str>> {
    let mut arrows = Arrows::new();
    for (from, to) in uses {
        arrows.entry(from).or_default().insert(to);
    }
    let reached: Arrows<'_> = arrows.keys().map(|from| (*from, reach(from, &arrows))).collect();
    let is_path = |from: &str, to: &str| reached.get(from).is_some_and(|reached| reached.contains(to));
    let mut cycles: Vec<BTreeSet<&str>> = Vec::new();
    for module in arrows.keys().copied().filter(|module| is_path(module, module)) {
        if !cycles.iter().any(|cycle| cycle.contains(module)) {
            let others = arrows.keys().copied();
            cycles.push(others.filter(|other| is_path(module, other) && is_path(other, module)).collect());
        }
    }
    cycles
}

/// What the deepest folder that holds both modules holds of each. `None` if one of them is the crate's root.
fn members<'a>(from: &'a str, to: &'a str) -> Option<(&'a str, &'a str)> {
    if from.is_empty() || to.is_empty() {
        return None;
    }
    let depth = from.split("::").zip(to.split("::")).take_while(|(one, other)| one == other).count();
    Some((member(depth, from, to), member(depth, to, from)))
}

/// What a folder, whose path has `depth` names, holds of `module`: the child that the module is in, or `folder::` for the
/// folder's own file. `other` is another module in the folder.
fn member<'a>(depth: usize, module: &'a str, other: &'a str) -> &'a str {
    match module.match_indices("::").nth(depth) {
        Some((end, _)) => &module[..end],
        None if module.split("::").count() > depth => module,
        None => &other[..module.len() + "::".len()],
    }
}

/// All modules that can be reached from a module, directly or through others.
fn reach<'a>(from: &str, arrows: &Arrows<'a>) -> BTreeSet<&'a str> {
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
    fn a_folders_own_file_is_one_of_those_that_it_holds() {
        let down = [arrow("a", "a::b"), arrow("a", "a::c"), arrow("a::b", "a::c"), arrow("a::b", ""), arrow("", "a")];
        assert!(problems("x", &BTreeSet::from(down.clone())).is_empty());

        let circle = down.into_iter().chain([arrow("a::c::inner", "a")]).collect();
        assert_eq!(problems("x", &circle).len(), 1);

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
