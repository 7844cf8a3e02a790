//! Interpreter operations that own their arguments, to be evaluated on another thread.

use std::sync::Arc;

use bulkhead_core::call::Operation;
use bulkhead_core::model::AggregatedStatusItem;
use serde_json::Value;

/// An [`Operation`] whose arguments are shared instead of borrowed.
pub(crate) enum OwnedOperation {
    Replicas {
        object: Arc<Value>,
    },
    Components {
        object: Arc<Value>,
    },
    Revise {
        object: Arc<Value>,
        replicas: i64,
    },
    Retain {
        desired: Arc<Value>,
        observed: Arc<Value>,
    },
    ReflectStatus {
        object: Arc<Value>,
    },
    AggregateStatus {
        object: Arc<Value>,
        items: Vec<AggregatedStatusItem>,
    },
    Dependencies {
        object: Arc<Value>,
    },
}

impl From<&Operation<'_>> for OwnedOperation {
    fn from(operation: &Operation<'_>) -> Self {
        match *operation {
            Operation::Replicas { object } => Self::Replicas {
                object: Arc::clone(object),
            },
            Operation::Components { object } => Self::Components {
                object: Arc::clone(object),
            },
            Operation::Revise { object, replicas } => Self::Revise {
                object: Arc::clone(object),
                replicas,
            },
            Operation::Retain { desired, observed } => Self::Retain {
                desired: Arc::clone(desired),
                observed: Arc::clone(observed),
            },
            Operation::ReflectStatus { object } => Self::ReflectStatus {
                object: Arc::clone(object),
            },
            Operation::AggregateStatus { object, items } => Self::AggregateStatus {
                object: Arc::clone(object),
                items: items.to_vec(),
            },
            Operation::Dependencies { object } => Self::Dependencies {
                object: Arc::clone(object),
            },
        }
    }
}

impl OwnedOperation {
    /// Returns the operation with borrowed arguments.
    pub(crate) fn borrow(&self) -> Operation<'_> {
        match self {
            Self::Replicas { object } => Operation::Replicas { object },
            Self::Components { object } => Operation::Components { object },
            Self::Revise { object, replicas } => Operation::Revise {
                object,
                replicas: *replicas,
            },
            Self::Retain { desired, observed } => Operation::Retain { desired, observed },
            Self::ReflectStatus { object } => Operation::ReflectStatus { object },
            Self::AggregateStatus { object, items } => Operation::AggregateStatus { object, items },
            Self::Dependencies { object } => Operation::Dependencies { object },
        }
    }
}
