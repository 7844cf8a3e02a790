//! Clients of API servers: the name of this program, and the priorities of its writes.

use std::sync::Arc;

use bulkhead_runtime::connection::{self, Program, ResponseCounts, WritePermit};
use bulkhead_runtime::write_priority::{Priority, WriteTarget};
use kube::{Client, Config};

/// Name of this program for API servers: manager of the fields that it writes.
pub const FIELD_MANAGER: &str = "bulkhead";

const PROGRAM: Program = Program {
    user_agent: concat!("bulkhead/", env!("CARGO_PKG_VERSION")),
    priority_of: write_priority,
};

/// Creates a client, see [`connection::connect`]. Bindings and clusters are written first: evictions, placements,
/// releases, taints, readiness.
///
/// # Errors
///
/// If the configuration cannot be used, for example because a certificate does not parse.
pub fn connect(config: Config, permit: &WritePermit, responses: &Arc<ResponseCounts>) -> kube::Result<Client> {
    connection::connect(&PROGRAM, config, permit, responses)
}

fn write_priority(target: WriteTarget<'_>) -> Priority {
    match target.resource {
        "failoverrecords" | "clusterfailoverrecords" => Priority::Low,
        _ if target.is_new => Priority::Normal,
        "clusters" => Priority::High,
        "resourcebindings" | "clusterresourcebindings" if !target.is_status => Priority::High,
        _ => Priority::Normal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placements_go_before_their_results() {
        let check = |resource: &str, is_status: bool, expected: Priority| {
            let changed = WriteTarget {
                resource,
                is_status,
                is_new: false,
            };
            assert_eq!(write_priority(changed), expected, "{resource} {is_status}");
        };
        check("resourcebindings", false, Priority::High);
        check("resourcebindings", true, Priority::Normal);
        check("clusterresourcebindings", false, Priority::High);
        check("clusters", true, Priority::High);
        check("works", false, Priority::Normal);
        check("failoverrecords", false, Priority::Low);
        let create = |resource: &str| {
            write_priority(WriteTarget {
                resource,
                is_status: false,
                is_new: true,
            })
        };
        assert_eq!(create("resourcebindings"), Priority::Normal);
        assert_eq!(create("clusterfailoverrecords"), Priority::Low);
    }
}
