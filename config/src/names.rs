//! Suggestions for names that do not exist.

/// The error text for an unknown key, with the key that may have been meant.
pub(crate) fn unknown<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    match nearest(name, known.clone()) {
        Some(nearest) => format!("is unknown: did you mean `{nearest}`?"),
        None if known.clone().next().is_none() => "is unknown: nothing can be set here".to_owned(),
        None => format!("is unknown; known here: {}", list(known, "and")),
    }
}

/// The error text for a key that a section of the kind or platform `own` does not have, but `others` have. `word` is "kind" or
/// "platform".
pub(crate) fn foreign((word, own): (&str, &str), others: &[&str], known: &[&str]) -> String {
    let plural = if others.len() > 1 { "s" } else { "" };
    let here = match known {
        [] => "nothing can be set here".to_owned(),
        known => format!("known here: {}", list(known.iter().copied(), "and")),
    };
    let others = list(others.iter().copied(), "and");
    format!("is a key of the {word}{plural} {others}, not of `{own}`; {here}")
}

/// The known name that `name` may be a misspelling of.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let slips = (name.chars().count() / 3).clamp(1, 3);
    let name = name.to_lowercase().replace('-', "_");
    known
        .map(|known| (strsim::damerau_levenshtein(&name, &known.replace('-', "_")), known))
        .filter(|(distance, _)| *distance <= slips)
        .min()
        .map(|(_, known)| known)
}

/// ``one of `a`, `b` or `c` ``.
pub(crate) fn one_of<'a>(names: impl Iterator<Item = &'a str> + Clone) -> String {
    if names.clone().count() > 2 { format!("one of {}", list(names, "or")) } else { list(names, "or") }
}

/// `` `a`, `b` and `c` ``.
pub(crate) fn list<'a>(names: impl Iterator<Item = &'a str>, last: &str) -> String {
    joined(&names.map(|name| format!("`{name}`")).collect::<Vec<_>>(), last)
}

/// `a, b and c`.
pub(crate) fn joined<T: AsRef<str>>(names: &[T], last: &str) -> String {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    match &*names {
        [] => "none".to_owned(),
        [one] => (*one).to_owned(),
        [first @ .., end] => format!("{} {last} {end}", first.join(", ")),
    }
}

/// The existing name that may have been meant by `name`, or all of them.
pub(crate) fn hint<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    match nearest(name, known.clone()) {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None if known.clone().count() == 1 => format!("there is only {}", list(known, "and")),
        None => format!("there are {}", list(known, "and")),
    }
}
