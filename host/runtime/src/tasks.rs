//! Background tasks with an owner.

use std::sync::{Mutex, PoisonError};

use tokio::runtime::Handle;
use tokio::task::{AbortHandle, JoinSet};

/// Tasks that are cancelled when their owner is dropped.
#[derive(Default)]
pub struct Tasks(Mutex<JoinSet<()>>);

impl Tasks {
    /// Runs a task until it ends or the owner is dropped.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).spawn(task)
    }

    /// Runs a task on another runtime until it ends or the owner is dropped.
    pub fn spawn_on(&self, task: impl Future<Output = ()> + Send + 'static, runtime: &Handle) -> AbortHandle {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .spawn_on(task, runtime)
    }
}
