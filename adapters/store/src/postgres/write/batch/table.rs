//! Rows as values of a statement: an array for each column.

use sqlx::AssertSqlSafe;
use uuid::Uuid;

use crate::postgres::values::Statement;

/// The type of a column.
#[derive(Clone, Copy, Debug)]
pub(super) enum Type {
    Number,
    Id,
    Flag,
    Text,
    Bytes,
}

/// A part of a statement, with the columns of its rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Section {
    pub(super) columns: &'static [(&'static str, Type)],
    /// `{rows}` is the table `x` of the rows, with their order as `ord`.
    pub(super) sql: &'static str,
    /// Cases in which a request is not done.
    pub(super) guard: &'static str,
    /// Conditions that fail if the part did not do what it should.
    pub(super) check: &'static str,
}

impl Section {
    pub(super) const EMPTY: Self = Self { columns: &[], sql: "", guard: "", check: "" };
}

/// A value in a row.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Number(Option<i64>),
    Id(Option<Uuid>),
    Flag(bool),
    Text(Option<String>),
    Bytes(Option<Vec<u8>>),
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Flag(value)
    }
}

impl From<Option<i64>> for Value {
    fn from(value: Option<i64>) -> Self {
        Self::Number(value)
    }
}

impl From<Option<Uuid>> for Value {
    fn from(value: Option<Uuid>) -> Self {
        Self::Id(value)
    }
}

impl From<Option<&str>> for Value {
    fn from(value: Option<&str>) -> Self {
        Self::Text(value.map(str::to_owned))
    }
}

impl From<Option<&[u8]>> for Value {
    fn from(value: Option<&[u8]>) -> Self {
        Self::Bytes(value.map(<[u8]>::to_vec))
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::from(Some(value))
    }
}

impl From<Uuid> for Value {
    fn from(value: Uuid) -> Self {
        Self::from(Some(value))
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::from(Some(value))
    }
}

/// A row of these values, which are taken by reference and are what statements take.
macro_rules! row {
    ($($value:expr),* $(,)?) => {
        [$($crate::postgres::write::batch::table::Value::from($crate::postgres::values::Bound::bound(&$value))),*]
    };
}
pub(super) use row;

#[derive(Debug)]
enum Array {
    Numbers(Vec<Option<i64>>),
    Ids(Vec<Option<Uuid>>),
    Flags(Vec<bool>),
    Texts(Vec<Option<String>>),
    Bytes(Vec<Option<Vec<u8>>>),
}

impl Array {
    const fn new(kind: Type) -> Self {
        match kind {
            Type::Number => Self::Numbers(Vec::new()),
            Type::Id => Self::Ids(Vec::new()),
            Type::Flag => Self::Flags(Vec::new()),
            Type::Text => Self::Texts(Vec::new()),
            Type::Bytes => Self::Bytes(Vec::new()),
        }
    }

    /// The name of its type in a statement.
    const fn name(&self) -> &'static str {
        match self {
            Self::Numbers(_) => "bigint[]",
            Self::Ids(_) => "uuid[]",
            Self::Flags(_) => "boolean[]",
            Self::Texts(_) => "text[]",
            Self::Bytes(_) => "bytea[]",
        }
    }

    fn push(&mut self, value: Value) {
        match (self, value) {
            (Self::Numbers(values), Value::Number(value)) => values.push(value),
            (Self::Ids(values), Value::Id(value)) => values.push(value),
            (Self::Flags(values), Value::Flag(value)) => values.push(value),
            (Self::Texts(values), Value::Text(value)) => values.push(value),
            (Self::Bytes(values), Value::Bytes(value)) => values.push(value),
            (array, value) => unreachable!("a column of {} has no {value:?}", array.name()),
        }
    }
}

/// The rows of a section.
#[derive(Debug)]
pub(super) struct Table {
    section: Section,
    arrays: Vec<Array>,
    rows: usize,
}

impl Table {
    pub(super) fn new(section: Section) -> Self {
        let arrays = section.columns.iter().map(|(_, kind)| Array::new(*kind)).collect();
        Self { section, arrays, rows: 0 }
    }

    pub(super) fn push<const COLUMNS: usize>(&mut self, row: [Value; COLUMNS]) {
        debug_assert_eq!(COLUMNS, self.arrays.len(), "a row has a value for each column");
        for (array, value) in self.arrays.iter_mut().zip(row) {
            array.push(value);
        }
        self.rows += 1;
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.rows == 0
    }
}

/// A statement that is made of sections.
#[derive(Debug, Default)]
pub(super) struct Composed {
    parts: Vec<String>,
    /// Of the sections until now.
    guards: String,
    checks: String,
    values: Vec<Array>,
}

impl Composed {
    /// Adds a section with its rows.
    pub(super) fn add(&mut self, Table { section, arrays, .. }: Table) {
        let first = self.values.len() + 1;
        let arguments: Vec<String> =
            arrays.iter().enumerate().map(|(at, array)| format!("${}::{}", first + at, array.name())).collect();
        let names: Vec<&str> = section.columns.iter().map(|(name, _)| *name).collect();
        let rows = format!("unnest({}) with ordinality as x ({}, ord)", arguments.join(", "), names.join(", "));
        self.values.extend(arrays);
        self.add_with(section, &rows);
    }

    /// Adds a section with its rows, if there are any.
    pub(super) fn add_some(&mut self, table: Table) {
        if !table.is_empty() {
            self.add(table);
        }
    }

    /// Adds a section that has no rows of its own.
    pub(super) fn add_section(&mut self, section: Section) {
        self.add_with(section, "");
    }

    fn add_with(&mut self, section: Section, rows: &str) {
        if !section.sql.is_empty() {
            let guards =
                if section.sql.contains("{guards}") { std::mem::take(&mut self.guards) } else { String::new() };
            self.parts.push(section.sql.replace("{rows}", rows).replace("{guards}", &guards));
        }
        self.guards.push_str(section.guard);
        self.checks.push_str(section.check);
    }

    /// The conditions of the sections.
    pub(super) fn checks(&self) -> &str {
        &self.checks
    }

    /// The statement that ends with `select`.
    pub(super) fn statement(self, select: &str) -> Statement<'static> {
        let text = format!("with {}{select}", self.parts.join(", "));
        let statement = sqlx::query(AssertSqlSafe(text));
        self.values.into_iter().fold(statement, |statement, array| match array {
            Array::Numbers(values) => statement.bind(values),
            Array::Ids(values) => statement.bind(values),
            Array::Flags(values) => statement.bind(values),
            Array::Texts(values) => statement.bind(values),
            Array::Bytes(values) => statement.bind(values),
        })
    }
}
