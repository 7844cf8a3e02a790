//! Scope of a pause: clusters and namespaces, and the name that follows from them.

use anyhow::bail;
use bulkhead_core::model::EvictionPauseSpec;
use clap::Args;

/// Name of the pause without a scope.
const ALL: &str = "all-evictions";

/// Maximum length of the name of an object, in bytes (Kubernetes: DNS subdomain).
pub(super) const NAME_BYTES_MAX: usize = 253;

/// Scope of a pause.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct ScopeArguments {
    /// Cluster whose evictions are paused; a list separated by commas names several.
    #[arg(long = "cluster", value_name = "CLUSTER", value_delimiter = ',')]
    pub(super) clusters: Vec<String>,

    /// Namespace whose workloads stay; a list separated by commas names several.
    #[arg(short, long = "namespace", value_name = "NAMESPACE", value_delimiter = ',')]
    pub(super) namespaces: Vec<String>,

    /// Name of the EvictionPause; by default the name follows from the scope.
    #[arg(long, value_name = "NAME")]
    pub(super) name: Option<String>,
}

/// Checks that an object can have a name (Kubernetes: RFC 1123 subdomain).
///
/// # Errors
///
/// The name is too long, or has characters that are not allowed.
pub(super) fn check_name(name: &str) -> anyhow::Result<()> {
    if name.len() > NAME_BYTES_MAX {
        let (start, _) = name.split_at(name.floor_char_boundary(40));
        bail!(
            "the name of the EvictionPause, {start}…, has {} bytes, and at most {NAME_BYTES_MAX} are allowed; choose a \
             shorter one with --name, for `bulkhead resume` too",
            name.len()
        );
    }
    let is_end = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_label = |label: &str| {
        let bytes = label.as_bytes();
        let ends = bytes.first().zip(bytes.last());
        ends.is_some_and(|(first, last)| is_end(*first) && is_end(*last))
            && bytes.iter().all(|byte| is_end(*byte) || *byte == b'-')
    };
    if !name.split('.').all(is_label) {
        bail!(
            "{name:?} cannot be the name of an EvictionPause: it must be lower-case letters, digits, hyphens and dots, \
             with a letter or digit at both ends of each part; choose one with --name"
        );
    }
    Ok(())
}

impl ScopeArguments {
    /// Returns the given name, or the name that follows from the scope.
    pub(super) fn name(&self) -> String {
        let EvictionPauseSpec {
            clusters, namespaces, ..
        } = self.spec();
        let mut parts = Vec::new();
        for (kind, names) in [("cluster", clusters), ("namespace", namespaces)] {
            if !names.is_empty() {
                parts.push(kind.to_owned());
                parts.extend(names);
            }
        }
        if parts.is_empty() {
            parts.push(ALL.to_owned());
        }
        self.name.clone().unwrap_or_else(|| parts.join("-"))
    }

    /// Returns true if a cluster or a namespace is given.
    pub(super) fn is_narrow(&self) -> bool {
        !self.clusters.is_empty() || !self.namespaces.is_empty()
    }

    /// Returns a pause of this scope, without end and reason.
    pub(super) fn spec(&self) -> EvictionPauseSpec {
        let sorted = |list: &[String]| {
            let mut list = list.to_vec();
            list.sort();
            list.dedup();
            list
        };
        EvictionPauseSpec {
            clusters: sorted(&self.clusters),
            namespaces: sorted(&self.namespaces),
            ..EvictionPauseSpec::default()
        }
    }
}

/// Checks that an existing pause has the wanted scope.
pub(super) fn check_scope(name: &str, existing: &EvictionPauseSpec, wanted: &EvictionPauseSpec) -> anyhow::Result<()> {
    let sorted = |list: &[String]| {
        let mut list = list.to_vec();
        list.sort();
        list
    };
    let same = sorted(&existing.clusters) == sorted(&wanted.clusters)
        && sorted(&existing.namespaces) == sorted(&wanted.namespaces)
        && existing.workloads == wanted.workloads;
    if !same {
        bail!(
            "EvictionPause {name} holds {}, not {}; choose another --name",
            scope_of(existing),
            scope_of(wanted)
        );
    }
    Ok(())
}

/// Formats the scope of a pause.
pub(super) fn scope_of(spec: &EvictionPauseSpec) -> String {
    let workloads: Vec<_> = spec.workloads.iter().map(|workload| workload.name.clone()).collect();
    let lists = [
        (" from ", &spec.clusters),
        (" of namespace ", &spec.namespaces),
        (" of workload ", &workloads),
    ];
    let given = lists.iter().filter(|(_, names)| !names.is_empty());
    let parts: Vec<_> = given.map(|(by, names)| format!("{by}{}", names.join(", "))).collect();
    if parts.is_empty() {
        "all evictions".to_owned()
    } else {
        format!("evictions{}", parts.concat())
    }
}
