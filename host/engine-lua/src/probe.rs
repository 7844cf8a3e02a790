//! One function of a script with plain values, without a kind of call around it: what the language and its libraries
//! do, for tools and for comparisons with other engines.

use std::sync::Arc;

use bulkhead_core::policy::{Fault, FaultKind};
use bulkhead_core::time::Time;
use bulkhead_plugin::Budget;
use serde_json::Value;

use crate::LuaEngine;
use crate::encode::Empties;
use crate::engine::Script;
use crate::machine::{Global, Setting};
use crate::mentioned::Mentioned;
use crate::pool::Pool;

/// A question to a script.
#[derive(Clone, Copy, Debug)]
pub struct Probe<'a> {
    /// The text of the script.
    pub script: &'a str,
    /// Name of the global function.
    pub function: &'a str,
    /// What it is given; null is nil.
    pub arguments: &'a [Value],
    /// How many results are wanted; missing ones are null.
    pub results: usize,
    /// What the call may cost.
    pub budget: Budget,
    /// The time that the script is told.
    pub now: Time,
}

impl LuaEngine {
    /// Runs the script's top level and calls the function. A script that does not compile is a fault too.
    pub fn probe(&self, probe: &Probe<'_>) -> Result<Vec<Value>, Fault> {
        let origin = "script";
        let not_loaded = |message: String| Fault::new(FaultKind::NotLoaded, message);
        let bytecode = self.bytecode(origin, probe.script.as_bytes()).map_err(not_loaded)?;
        let mentioned = Mentioned::read(probe.script.as_bytes());
        let script = Script { origin: origin.to_owned(), bytecode, mentioned };
        let pool = Pool::new(Arc::clone(self.library()), vec![script], probe.budget);
        let setting = Setting { script: 0, config: &Value::Null, now: Some(probe.now) };
        pool.session(&setting, |session| {
            session.run()?;
            let Global::Function(function) = session.global(probe.function) else {
                let message = format!("the script defines no global function {}", probe.function);
                return Err(Fault::new(FaultKind::MissingExport, message));
            };
            let told = session.call(&function, probe.arguments)?;
            let mut results = vec![Value::Null; probe.results];
            for (slot, result) in results.iter_mut().zip(&told) {
                *slot = session.encode(result, &Empties::Kept, probe.budget.reply_bytes).map_err(|error| {
                    Fault::new(FaultKind::BadReply, format!("{} returned a bad value: {error}", probe.function))
                })?;
            }
            Ok(results)
        })
    }
}
