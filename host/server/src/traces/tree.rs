//! Spans of one reconcile.

use super::evictions::Subject;
use super::recorded::Recorded;

/// Maximum number of spans of one reconcile; further ones are dropped.
pub(super) const SPANS_MAX: usize = 512;

/// Span `reconcile`, with the spans in it. A decision outside of a reconcile is a tree of its own.
#[derive(Debug, Default)]
pub(super) struct Tree {
    /// Number of spans that were opened.
    pub(super) opened: usize,
    /// Closed spans. The outermost one is closed last.
    pub(super) spans: Vec<Recorded>,
    /// Object and evictions that the tree is about.
    pub(super) subject: Subject,
}

impl Tree {
    /// Returns the outermost span.
    pub(super) fn root(&self) -> Option<&Recorded> {
        self.spans.last().filter(|span| span.parent.is_none())
    }

    /// Returns the spans of decisions.
    pub(super) fn decisions(&self) -> impl Iterator<Item = &Recorded> {
        self.spans.iter().filter(|span| span.name == "decision")
    }
}
