//! Reads the modules of a crate, and what they use of each other.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use syn::{
    Attribute, Item, UseTree, Visibility,
    buffer::{Cursor, TokenBuffer},
    visit::{self, Visit},
};

/// A path from the crate's root: `["outbox", "lanes", "Lanes"]`.
type ModulePath = Vec<String>;

/// The non-test modules of a crate, by path; the path of the root is empty.
pub(super) struct Modules(BTreeMap<ModulePath, Module>);

/// What a module's file declares and uses.
#[derive(Default)]
struct Module {
    children: BTreeSet<String>,
    /// The source of each imported name, as a path from the crate's root.
    imports: BTreeMap<String, ModulePath>,
    /// The imported names that are re-exported.
    re_exported: BTreeSet<String>,
    /// The modules all of whose items are re-exported.
    globs: BTreeSet<ModulePath>,
    /// The names of the items that are defined here.
    items: BTreeSet<String>,
    /// All used items, as paths from the crate's root.
    used: BTreeSet<ModulePath>,
}

/// A use of an item of another module.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Reference {
    pub(super) from: String,
    /// The module that defines the item.
    pub(super) to: String,
    pub(super) what: String,
    /// The module that re-exports the item, if it was imported from there.
    pub(super) through: Option<String>,
}

impl Modules {
    /// Reads the crate whose sources are in `folder`.
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let root = ["lib.rs", "main.rs"].map(|name| folder.join(name)).into_iter().find(|file| file.exists());
        let mut modules = BTreeMap::new();
        read(&root.with_context(|| format!("no crate root in {}", folder.display()))?, folder, &[], &mut modules)?;
        Ok(Self(modules))
    }

    /// A crate with these files: the path of each module, and its text.
    #[cfg(test)]
    pub(super) fn of<S: AsRef<str>>(files: &[(S, S)]) -> Self {
        let module = |(name, text): &(S, S)| {
            let path: ModulePath = name.as_ref().split("::").map(str::to_owned).collect();
            let (module, _) = parse(text.as_ref(), &path).unwrap();
            (path, module)
        };
        Self(files.iter().map(module).collect())
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn references(&self) -> BTreeSet<Reference> {
        let mut references = BTreeSet::new();
        for (from, module) in &self.0 {
            for used in &module.used {
                let Some((owner, what, through)) = self.resolve(used, None, 0) else { continue };
                if owner != *from {
                    let through = through.filter(|through| through != from).map(|through| through.join("::"));
                    let through = through.map(|through| if through.is_empty() { "lib.rs".to_owned() } else { through });
                    references.insert(Reference { from: from.join("::"), to: owner.join("::"), what, through });
                }
            }
        }
        references
    }

    /// Resolves a path to the module that defines the item, the item's name, and the module that re-exports it. `None` if
    /// the path names a module or an item of another crate.
    fn resolve(
        &self,
        path: &[String],
        through: Option<ModulePath>,
        depth: usize,
    ) -> Option<(ModulePath, String, Option<ModulePath>)> {
        let length = (0..=path.len()).rev().find(|length| self.0.contains_key(&path[..*length]))?;
        let (module, rest) = (&path[..length], &path[length..]);
        let name = rest.first()?;
        match self.0[module].imports.get(name) {
            Some(source) if depth < 8 && self.0[module].re_exported.contains(name) => {
                let source: ModulePath = source.iter().chain(&rest[1..]).cloned().collect();
                self.resolve(&source, through.or_else(|| Some(module.to_vec())), depth + 1)
            }
            _ => match self.glob_with(module, name) {
                Some(owner) => Some((owner.clone(), name.clone(), through.or_else(|| Some(module.to_vec())))),
                None => Some((module.to_vec(), name.clone(), through)),
            },
        }
    }

    /// The module whose items are all re-exported by `module`, and one of which has this name.
    fn glob_with(&self, module: &[String], name: &str) -> Option<&ModulePath> {
        let is_there = |glob: &&ModulePath| self.0.get(*glob).is_some_and(|inner| inner.items.contains(name));
        self.0[module].globs.iter().find(is_there)
    }
}

fn read(file: &Path, folder: &Path, path: &[String], modules: &mut BTreeMap<ModulePath, Module>) -> Result<()> {
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let (module, files) = parse(&text, path).with_context(|| format!("cannot parse {}", file.display()))?;
    modules.insert(path.to_vec(), module);
    for (name, path_attribute) in files {
        let inner = folder.join(&name);
        let candidates = [folder.join(format!("{name}.rs")), inner.join("mod.rs")];
        let file: Option<PathBuf> =
            path_attribute.map(|path| folder.join(path)).or_else(|| candidates.into_iter().find(|file| file.exists()));
        let file = file.with_context(|| format!("the module {name} has no file in {}", folder.display()))?;
        read(&file, &inner, &[path, &[name]].concat(), modules)?;
    }
    Ok(())
}

/// A child module in a file of its own: its name, and the file of a `#[path]` attribute.
type ChildFile = (String, Option<String>);

/// The module with this text, and its children in files of their own.
fn parse(text: &str, path: &[String]) -> syn::Result<(Module, Vec<ChildFile>)> {
    let parsed = syn::parse_file(text)?;
    let mut reader = Reader { path, module: Module::default(), files: Vec::new() };
    reader.visit_file(&parsed);
    let Reader { mut module, files, .. } = reader;
    // Resolves a path that begins with an imported name or a child module.
    let resolve_relative = |used: &ModulePath| match module.imports.get(&used[0]) {
        Some(source) => source.iter().chain(&used[1..]).cloned().collect(),
        None if module.children.contains(&used[0]) => path.iter().chain(used).cloned().collect(),
        None => Vec::new(),
    };
    let (absolute, relative): (BTreeSet<ModulePath>, BTreeSet<ModulePath>) =
        std::mem::take(&mut module.used).into_iter().partition(|used| used[0].is_empty());
    let absolute = absolute.into_iter().map(|used| used[1..].to_vec());
    let used = absolute.chain(relative.iter().map(resolve_relative)).filter(|used| !used.is_empty()).collect();
    module.used = used;
    Ok((module, files))
}

/// Visits a file. While it does, paths from the crate's root begin with an empty name; the other paths do not.
struct Reader<'a> {
    path: &'a [String],
    module: Module,
    files: Vec<ChildFile>,
}

impl Reader<'_> {
    /// Converts a path to one from the crate's root; `None` if it does not begin with `crate`, `self` or `super`.
    fn absolute(&self, path: &[String]) -> Option<ModulePath> {
        let mut base: ModulePath = match path.first()?.as_str() {
            "crate" => Vec::new(),
            "self" => self.path.to_vec(),
            "super" => self.path[..self.path.len().saturating_sub(1)].to_vec(),
            _ => return None,
        };
        let mut rest = &path[1..];
        while let Some((first, more)) = rest.split_first().filter(|(first, _)| *first == "super") {
            let _ = first;
            base.pop();
            rest = more;
        }
        Some(base.into_iter().chain(rest.iter().cloned()).collect())
    }

    fn add_use_tree(&mut self, tree: &UseTree, before: &[String], is_re_exported: bool) {
        let with = |name: String| before.iter().cloned().chain([name]).collect::<ModulePath>();
        match tree {
            UseTree::Path(path) => self.add_use_tree(&path.tree, &with(path.ident.to_string()), is_re_exported),
            UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.add_use_tree(tree, before, is_re_exported));
            }
            UseTree::Name(name) if name.ident == "self" => {
                self.add_import(before, before.last().cloned(), is_re_exported);
            }
            UseTree::Name(name) => {
                self.add_import(&with(name.ident.to_string()), Some(name.ident.to_string()), is_re_exported);
            }
            UseTree::Rename(rename) => {
                self.add_import(&with(rename.ident.to_string()), Some(rename.rename.to_string()), is_re_exported);
            }
            UseTree::Glob(_) => {
                self.add_import(&with("*".to_owned()), None, is_re_exported);
                if let Some(source) = self.absolute(before).filter(|_| is_re_exported) {
                    self.module.globs.insert(source);
                }
            }
        }
    }

    fn add_import(&mut self, source: &[String], name: Option<String>, is_re_exported: bool) {
        let is_child = source.first().is_some_and(|first| self.module.children.contains(first));
        let here = || self.path.iter().chain(source).cloned().collect();
        let Some(source) = self.absolute(source).or_else(|| is_child.then(here)) else { return };
        self.module.used.insert([String::new()].into_iter().chain(source.clone()).collect());
        if let Some(name) = name {
            if is_re_exported {
                self.module.re_exported.insert(name.clone());
            }
            self.module.imports.insert(name, source);
        }
    }

    fn add_path(&mut self, names: ModulePath) {
        let used = match self.absolute(&names) {
            Some(absolute) => [String::new()].into_iter().chain(absolute).collect(),
            None => names,
        };
        self.module.used.insert(used);
    }

    /// Adds the paths in tokens that only a macro can parse. In an attribute, a text can be a path, also of a module:
    /// `#[serde(with = "crate::time")]`.
    fn add_tokens(&mut self, mut rest: Cursor<'_>, is_attribute: bool) {
        while let Some((_, mut next)) = rest.token_tree() {
            if let Some((inside, ..)) = rest.any_group() {
                self.add_tokens(inside, is_attribute);
            } else if let Some((path, after)) = path_at(rest) {
                self.add_path(path);
                next = after;
            } else if is_attribute
                && let Some((literal, _)) = rest.literal()
                && let Ok(text) = syn::parse_str::<syn::LitStr>(&literal.to_string())
                && let Ok(path) = text.parse::<syn::Path>()
            {
                self.add_path(names(&path).chain(["*".to_owned()]).collect());
            }
            rest = next;
        }
    }
}

fn names(path: &syn::Path) -> impl Iterator<Item = String> {
    path.segments.iter().map(|segment| segment.ident.to_string())
}

/// The path that begins here, and what follows it.
fn path_at(tokens: Cursor<'_>) -> Option<(ModulePath, Cursor<'_>)> {
    let (first, mut rest) = tokens.ident()?;
    let mut names = vec![first.to_string()];
    while let Some((name, after)) = name_after_colons(rest) {
        names.push(name);
        rest = after;
    }
    Some((names, rest))
}

fn name_after_colons(tokens: Cursor<'_>) -> Option<(String, Cursor<'_>)> {
    let (first, rest) = tokens.punct()?;
    let (second, rest) = rest.punct()?;
    let (name, rest) = rest.ident()?;
    (first.as_char() == ':' && second.as_char() == ':').then(|| (name.to_string(), rest))
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_file(&mut self, file: &'ast syn::File) {
        for item in &file.items {
            let defined = match item {
                Item::Mod(module) => {
                    self.module.children.insert(module.ident.to_string());
                    continue;
                }
                Item::Const(item) => &item.ident,
                Item::Enum(item) => &item.ident,
                Item::Fn(item) => &item.sig.ident,
                Item::Static(item) => &item.ident,
                Item::Struct(item) => &item.ident,
                Item::Trait(item) => &item.ident,
                Item::Type(item) => &item.ident,
                _ => continue,
            };
            self.module.items.insert(defined.to_string());
        }
        visit::visit_file(self, file);
    }

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if is_test(&module.attrs) {
            return;
        }
        if module.content.is_none() {
            self.files.push((module.ident.to_string(), path_attribute(&module.attrs)));
        }
        visit::visit_item_mod(self, module);
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if !is_test(&item.attrs) {
            self.add_use_tree(&item.tree, &[], !matches!(item.vis, Visibility::Inherited));
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if !is_test(&item.attrs) {
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.add_path(names(path).collect());
        visit::visit_path(self, path);
    }

    fn visit_meta_list(&mut self, list: &'ast syn::MetaList) {
        self.visit_path(&list.path);
        self.add_tokens(TokenBuffer::new2(list.tokens.clone()).begin(), true);
    }

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        self.visit_path(&called.path);
        self.add_tokens(TokenBuffer::new2(called.tokens.clone()).begin(), false);
    }
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Meta>().is_ok_and(|meta| match meta {
                syn::Meta::Path(path) => path.is_ident("test"),
                syn::Meta::List(list) => list.path.is_ident("all") && list.tokens.to_string().starts_with("test"),
                syn::Meta::NameValue(_) => false,
            })
    })
}

/// The file that `#[path = "…"]` names.
fn path_attribute(attributes: &[Attribute]) -> Option<String> {
    attributes.iter().filter(|attribute| attribute.path().is_ident("path")).find_map(|attribute| {
        match &attribute.meta {
            syn::Meta::NameValue(syn::MetaNameValue { value: syn::Expr::Lit(literal), .. }) => match &literal.lit {
                syn::Lit::Str(text) => Some(text.value()),
                _ => None,
            },
            _ => None,
        }
    })
}
