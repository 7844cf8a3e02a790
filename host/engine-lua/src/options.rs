//! Options of the engine.

use bulkhead_core::pod::Detail;

use crate::encode::Conversions;

/// Limits of the engine itself. The limits of a call are in the plugin's budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Maximum length of a script in bytes. Compilation is not metered; its cost grows with the length.
    pub script_bytes_max: usize,
    /// Fields that `kube.accuratePodRequirements` returns in addition to resources and the node claim.
    pub pod_detail: Detail,
    /// Conversion rules for results.
    pub conversions: Conversions,
    /// Argument of `AggregateStatus` if no cluster reports a status.
    pub no_items: EmptyItems,
}

/// Representation of an empty list of status items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EmptyItems {
    /// Nil, as in Karmada, where an empty list read back from the API is nil.
    #[default]
    Nil,
    /// An empty table.
    EmptyTable,
}

impl Default for Options {
    /// Returns options with a script limit of 1 MiB, which is more than an object in the API can hold.
    fn default() -> Self {
        Self {
            script_bytes_max: 1 << 20,
            pod_detail: Detail::Plain,
            conversions: Conversions::default(),
            no_items: EmptyItems::default(),
        }
    }
}
