//! Calls of a single script function with plain values, outside of any policy call. Used by tools and by comparisons
//! of the language and its libraries with other engines.

use std::sync::Arc;

use bulkhead_core::manifest::Budget;
use bulkhead_core::policy::{Fault, FaultKind};
use bulkhead_core::time::Time;
use serde_json::Value;

use crate::LuaEngine;
use crate::encode::EmptyTables;
use crate::machine::{CallSettings, Global};
use crate::mentioned::Mentioned;
use crate::pool::Pool;
use crate::script::Script;

/// Call of a script function.
#[derive(Clone, Copy, Debug)]
pub struct Probe<'a> {
    /// Text of the script.
    pub script: &'a str,
    /// Name of the global function.
    pub function: &'a str,
    /// Arguments of the function; null is nil.
    pub arguments: &'a [Value],
    /// Number of requested results; missing ones are null.
    pub results: usize,
    /// Limits of the call.
    pub budget: Budget,
    /// Time that the script sees.
    pub now: Time,
}

impl LuaEngine {
    /// Runs the script's top level and calls the function. A compilation error is a fault too.
    pub fn probe(&self, probe: &Probe<'_>) -> Result<Vec<Value>, Fault> {
        let origin = "script";
        let not_loaded = |message: String| Fault::new(FaultKind::NotLoaded, message);
        let bytecode = self.bytecode(origin, probe.script.as_bytes()).map_err(not_loaded)?;
        let mentioned = Mentioned::read(probe.script.as_bytes());
        let script = Script {
            origin: origin.to_owned(),
            bytecode,
            mentioned,
            text: probe.script.to_owned(),
        };
        let pool = Pool::new(Arc::clone(self.library()), vec![script], probe.budget);
        let setting = CallSettings {
            script: 0,
            config: &Value::Null,
            now: Some(probe.now),
        };
        pool.session(&setting, |session| {
            session.run()?;
            let Global::Function(function) = session.global(probe.function) else {
                let message = format!("the script defines no global function {}", probe.function);
                return Err(Fault::new(FaultKind::MissingExport, message));
            };
            let returned = session.call(&function, probe.arguments)?;
            let mut results = vec![Value::Null; probe.results];
            for (slot, result) in results.iter_mut().zip(&returned) {
                *slot = session
                    .encode(result, &EmptyTables::Kept, probe.budget.reply_bytes)
                    .map_err(|error| {
                        Fault::new(
                            FaultKind::BadReply,
                            format!("{} returned a bad value: {error}", probe.function),
                        )
                    })?;
            }
            Ok(results)
        })
    }
}
