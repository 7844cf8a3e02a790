//! Gathers the trust in images of plugins: the trust file, and the objects of the control plane.

use bulkhead_api::PluginTrust;
use bulkhead_core::manifest::trust::object::{ReadTrust, read_objects};
use bulkhead_oci::trust;
use bulkhead_runtime::controller::is_not_found;
use bulkhead_server::RunArguments;
use kube::{Api, Client};

use crate::doctor::checks;
use crate::doctor::facts::{Facts, Trust, TrustObject};

/// Returns the facts about the trust file. A file that cannot be read is reported with the plugins.
pub(super) fn of_file(arguments: &RunArguments) -> Trust {
    let path = arguments.trust_file();
    let read = path.and_then(|path| trust::Trust::read(path).ok());
    Trust {
        file: path.map(|path| path.display().to_string()),
        images: read
            .iter()
            .flat_map(trust::Trust::prefixes)
            .map(str::to_owned)
            .collect(),
        objects: Vec::new(),
    }
}

/// Lists the objects and records the facts about them. Returns `None` if they cannot be listed.
pub(super) async fn of_objects(client: &Client, facts: &mut Facts) -> Option<Vec<PluginTrust>> {
    let listed = Api::<PluginTrust>::all(client.clone()).list(&Default::default()).await;
    let objects = match listed {
        Ok(list) => list.items,
        // A control plane that does not serve the kind has none.
        Err(error) if is_not_found(&error) => Vec::new(),
        Err(error) => {
            facts.unread(checks::PLUGINS, "plugintrusts", &error);
            return None;
        }
    };
    let object = |read: ReadTrust| TrustObject {
        name: read.name,
        images: read.rules.into_iter().map(|rule| rule.prefix).collect(),
        mistakes: read.mistakes.iter().map(ToString::to_string).collect(),
    };
    let read: Vec<_> = objects.iter().map(PluginTrust::to_object).collect();
    facts.trust.objects = read_objects(&read).into_iter().map(object).collect();
    Some(objects)
}
