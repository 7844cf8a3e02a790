//! Field managers that wrote a field last, from `metadata.managedFields`.

use std::collections::BTreeSet;

use bulkhead_apiserver::json::{array, text};
use serde_json::Value;

/// Returns the managers that own one of these paths of an object, in order of name. A path ends at its first list,
/// whose items managers own by their keys.
pub(super) fn writers<'a>(object: &Value, paths: impl Iterator<Item = &'a str>) -> Vec<String> {
    let entries = array(object, "/metadata/managedFields");
    let mut found = BTreeSet::new();
    for path in paths {
        let parts: Vec<_> = path.split('[').next().unwrap_or_default().split('.').collect();
        let owns = |entry: &&Value| {
            let mut fields = entry.get("fieldsV1");
            for part in &parts {
                fields = fields.and_then(|fields| fields.get(format!("f:{part}")));
            }
            fields.is_some()
        };
        let latest = entries.iter().filter(owns).max_by_key(|entry| text(*entry, "/time"));
        found.extend(latest.map(|entry| text(entry, "/manager").to_owned()));
    }
    found.into_iter().collect()
}
