//! JSONPath with kubectl's syntax, as templates and as bare paths: `{.replicas}`, `{.conditions[?(@.type=="Ready")].status}`.
//!
//! Implements the dialect of `k8s.io/client-go/util/jsonpath`: text around actions in braces and `{range …}…{end}`.
//! Steps are field, index, slice, union, wildcard, recursive descent and filter. Whole numbers are written in plain
//! decimal. Go writes large ones with an exponent, which is not a valid label value.
//!
//! Regular expressions in filters are not supported. `&&` and `||` are not supported either, as in the original.

mod eval;
mod parse;

use std::str::FromStr;

use serde_json::Value;

/// Maximum length of a template, in bytes.
pub const TEMPLATE_BYTES_MAX: usize = 4096;
/// Maximum number of values that one step may return.
pub const VALUES_MAX: usize = 10_000;

/// Error in a template, or in its application to an object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// The template cannot be parsed.
    #[error("at byte {at}: {message}")]
    Syntax {
        /// Byte offset of the error, from 0.
        at: usize,
        /// Error and expected syntax.
        message: String,
    },
    /// A field or element does not exist.
    #[error("{0} is not found")]
    Missing(String),
    /// A step returns more than [`VALUES_MAX`] values.
    #[error("it matches more than {VALUES_MAX} values")]
    TooMany,
}

/// Parsed template.
#[derive(Clone, Debug, PartialEq)]
pub struct Template(Vec<Node>);

/// Part of a template.
#[derive(Clone, Debug, PartialEq)]
enum Node {
    /// Literal text.
    Text(String),
    /// Values of a path, separated by spaces.
    Path(Vec<Step>),
    /// Nodes repeated for each value of a path.
    Range(Vec<Step>, Vec<Node>),
}

/// One step of a path.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    /// `$`: the root object.
    Root,
    /// `.name` or `['name']`.
    Field(String),
    /// `*`.
    Wildcard,
    /// `..`: the value and all its descendants.
    Descend,
    /// `[1]`, `[-1]`.
    Index(i64),
    /// `[from:to:by]`; each part is optional.
    Slice(Option<i64>, Option<i64>, Option<i64>),
    /// `[0,2]`, `['a','b']`: the results of all steps.
    Union(Vec<Step>),
    /// `[?(left op right)]` or `[?(left)]`: the elements that satisfy the condition.
    Filter(Operand, Option<(Comparison, Operand)>),
}

/// One side of a filter.
#[derive(Clone, Debug, PartialEq)]
enum Operand {
    /// Path from the element (`@`) or the root object (`$`).
    Path(Vec<Step>),
    /// String, number or boolean.
    Literal(Value),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl FromStr for Template {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        parse::template(text).map(Self)
    }
}

/// Parsed path without text around it, such as `.spec.replicas` in a printer column.
#[derive(Clone, Debug, PartialEq)]
pub struct Path(Vec<Step>);

impl FromStr for Path {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        parse::path(text).map(Self)
    }
}

impl Path {
    /// Returns the first value that the path selects; missing fields and elements are skipped. (Kubernetes:
    /// `AllowMissingKeys`, as the table converter of custom resources sets it.)
    pub fn first<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        eval::present(&self.0, object).into_iter().next()
    }
}

impl Template {
    /// Renders the template for an object. A missing field or element is an error.
    pub fn evaluate(&self, object: &Value) -> Result<String, PathError> {
        eval::print(&self.0, object)
    }
}

#[cfg(test)]
mod tests;
