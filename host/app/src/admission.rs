//! What surrounds an object that is to be stored, for the rules of admission.

use bulkhead_api::admission::Surroundings;
use bulkhead_core::time::Time;
use bulkhead_engine_lua::check_portable;
use serde_json::Value;

/// Where ids, time and neighbours come from; scripts are compiled here.
pub struct Around<'a> {
    /// Makes up permanent ids.
    pub ids: &'a mut dyn FnMut() -> String,
    /// The time.
    pub now: Time,
    /// Every stored object of the kind.
    pub others: &'a dyn Fn() -> Vec<Value>,
}

impl Surroundings for Around<'_> {
    fn new_id(&mut self) -> String {
        (self.ids)()
    }

    fn now(&self) -> Time {
        self.now
    }

    fn others(&self) -> Vec<Value> {
        (self.others)()
    }

    fn script_error(&self, script: &str) -> Option<String> {
        check_portable(script).err().map(|mistake| mistake.to_string())
    }
}
