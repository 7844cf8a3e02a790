//! JSONPath templates as kubectl reads them: `{.replicas}`, `{.conditions[?(@.type=="Ready")].status}`.
//!
//! This is the dialect of `k8s.io/client-go/util/jsonpath`: text around actions in braces, steps by field, index,
//! slice, union, wildcard, recursive descent and filter, and `{range …}…{end}`. Numbers are written in plain decimal
//! where they are whole; Go writes large ones with an exponent, which no label can hold.
//!
//! Not here: regular expressions in filters, and `&&` and `||`, which the original does not have either.

mod eval;
mod parse;

use std::str::FromStr;

use serde_json::Value;

/// Longest template, in bytes.
pub const TEMPLATE_BYTES_MAX: usize = 4096;
/// Most values that one step may give.
pub const VALUES_MAX: usize = 10_000;

/// What is wrong with a template, or with the object it is applied to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// The template does not read.
    #[error("at byte {at}: {message}")]
    Syntax {
        /// Where, from 0.
        at: usize,
        /// What is wrong, and what would be right.
        message: String,
    },
    /// A field or element is not there.
    #[error("{0} is not found")]
    Missing(String),
    /// More values than a label could ever hold.
    #[error("it gives more than {VALUES_MAX} values")]
    TooMany,
}

/// A template that reads.
#[derive(Clone, Debug, PartialEq)]
pub struct Template(Vec<Node>);

/// A part of a template.
#[derive(Clone, Debug, PartialEq)]
enum Node {
    /// Printed as it is.
    Text(String),
    /// What a path leads to, several values with a space between them.
    Path(Vec<Step>),
    /// The nodes once for each value of the path.
    Range(Vec<Step>, Vec<Node>),
}

/// One step of a path.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    /// `$`: the whole object.
    Root,
    /// `.name` or `['name']`.
    Field(String),
    /// `*`.
    Wildcard,
    /// `..`: the value and everything below it.
    Descend,
    /// `[1]`, `[-1]`.
    Index(i64),
    /// `[from:to:by]`, each may be left out.
    Slice(Option<i64>, Option<i64>, Option<i64>),
    /// `[0,2]`, `['a','b']`: what each step gives.
    Union(Vec<Step>),
    /// `[?(left op right)]`, or `[?(left)]`: elements for which it holds.
    Filter(Operand, Option<(Comparison, Operand)>),
}

/// One side of a filter.
#[derive(Clone, Debug, PartialEq)]
enum Operand {
    /// From the element (`@`) or the whole object (`$`).
    Path(Vec<Step>),
    /// A text, number or boolean.
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

impl Template {
    /// The text that the template makes of an object. A path that leads nowhere is an error.
    pub fn evaluate(&self, object: &Value) -> Result<String, PathError> {
        eval::print(&self.0, object)
    }
}

#[cfg(test)]
mod tests;
