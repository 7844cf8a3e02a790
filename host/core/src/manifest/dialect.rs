//! Conventions of scripts.

use serde::{Deserialize, Serialize};

/// Interface that a script is written for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Dialect {
    /// Karmada's functions, and Bulkhead's own for the other kinds of plugin.
    #[default]
    Karmada,
    /// A `health.lua` of Argo CD: the script itself is the function, `obj` is the object, and the result is a table
    /// with `status` and `message`.
    ///
    /// | Argo CD | here |
    /// | --- | --- |
    /// | Healthy | Healthy |
    /// | Degraded, Missing | Unhealthy |
    /// | Progressing, Suspended, Unknown, anything else, nothing | Unknown |
    ///
    /// A progressing object is not healthy, so no old copy is released because of it. It is not unhealthy either, so
    /// it is not evicted. An object that stalls becomes Degraded. The reason is the status as returned by the script.
    Argo,
}

/// Text inserted before a script of Argo CD. It is on the first line of the script, so that line numbers in errors
/// are correct.
const ARGO_HEAD: &str = "function InterpretHealth(observedObj) local function body(obj) ";
/// Text appended to the script.
const ARGO_FOOT: &str = r#"
end
local told = body(observedObj)
if told == nil then
  return { health = "Unknown", reason = "NothingReturned", message = "the script returned nothing" }
elseif type(told) ~= "table" or type(told.status) ~= "string" then
  error("a health script of Argo CD returns a table with a status, this one a " .. type(told), 0)
end
local known = { Healthy = "Healthy", Degraded = "Unhealthy", Missing = "Unhealthy", Progressing = "Unknown",
  Suspended = "Unknown", Unknown = "Unknown" }
local reason = told.status
if known[reason] == nil then
  reason = "UnknownStatus"
end
return { health = known[told.status] or "Unknown", reason = reason, message = told.message }
end
"#;

impl Dialect {
    /// Returns the script with the functions that an engine expects. Line numbers do not change.
    pub fn translate(self, code: Vec<u8>) -> Vec<u8> {
        match self {
            Self::Karmada => code,
            Self::Argo => [ARGO_HEAD.as_bytes(), &code, ARGO_FOOT.as_bytes()].concat(),
        }
    }
}
