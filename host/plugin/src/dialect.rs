//! Conventions that scripts are written in.

use serde::{Deserialize, Serialize};

/// What a script expects of whoever runs it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Dialect {
    /// Functions with Karmada's names, and ours for the other kinds of plugin.
    #[default]
    Karmada,
    /// A `health.lua` of Argo CD: the script itself is the function, `obj` is the object, and it returns a table with
    /// `status` and `message`.
    ///
    /// | Argo CD | here |
    /// | --- | --- |
    /// | Healthy | Healthy |
    /// | Degraded, Missing | Unhealthy |
    /// | Progressing, Suspended, Unknown, anything else, nothing | Unknown |
    ///
    /// What progresses is not healthy, so nothing is released because of it; and it is not unhealthy either, so nothing
    /// is evicted because of it. What stops progressing becomes Degraded. The reason is the status as it was told.
    Argo,
}

/// Before a script of Argo CD, on the line that it begins on, so that the lines of errors are its own.
const ARGO_HEAD: &str = "function InterpretHealth(observedObj) local function body(obj) ";
/// After it.
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
    /// The script with the functions that an engine looks for, its lines where they were.
    pub fn translate(self, code: Vec<u8>) -> Vec<u8> {
        match self {
            Self::Karmada => code,
            Self::Argo => [ARGO_HEAD.as_bytes(), &code, ARGO_FOOT.as_bytes()].concat(),
        }
    }
}
