//! Addresses of the endpoint in the Lease of the leader election.
//!
//! The Lease has the address of the leader, and those of the leaders before it: their processes may still run, and
//! have the journals of their decisions.

use std::collections::BTreeMap;

use k8s_openapi::api::coordination::v1::Lease;
use serde::{Deserialize, Serialize};

/// Annotation of the Lease with the addresses, the current leader's first.
pub const ANNOTATION: &str = "bulkhead.dev/queries";
/// Maximum number of addresses, that of the leader included.
const ADDRESSES_MAX: usize = 4;

/// Address of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Advertised {
    /// URL without a path.
    pub url: String,
    /// Authority of its certificate, in PEM.
    pub ca: String,
}

impl Advertised {
    /// Returns the addresses of a Lease, the current leader's first. An annotation that cannot be read has none.
    pub fn of(lease: &Lease) -> Vec<Self> {
        lease.metadata.annotations.as_ref().map(Self::read).unwrap_or_default()
    }

    fn read(annotations: &BTreeMap<String, String>) -> Vec<Self> {
        let annotation = annotations.get(ANNOTATION);
        annotation
            .and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or_default()
    }

    /// Writes the address of a leader into the annotations of its Lease. A leader without the endpoint leaves those of
    /// the others.
    pub(crate) fn write(own: Option<&Self>, annotations: &mut BTreeMap<String, String>) {
        let Some(own) = own else { return };
        let others = Self::read(annotations).into_iter().filter(|other| other.url != own.url);
        let all: Vec<_> = std::iter::once(own.clone()).chain(others).take(ADDRESSES_MAX).collect();
        if let Ok(text) = serde_json::to_string(&all) {
            annotations.insert(ANNOTATION.to_owned(), text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(number: usize) -> Advertised {
        Advertised {
            url: format!("https://10.0.0.{number}:10371"),
            ca: "pem".to_owned(),
        }
    }

    #[test]
    fn a_lease_has_the_endpoints_of_the_last_leaders_the_current_one_first() {
        let mut lease = Lease::default();
        let mut lead = |number: usize| {
            let annotations = lease.metadata.annotations.get_or_insert_default();
            Advertised::write(Some(&endpoint(number)), annotations);
            // The leader renews its Lease.
            Advertised::write(Some(&endpoint(number)), annotations);
            let urls = Advertised::of(&lease).into_iter().map(|endpoint| endpoint.url);
            urls.map(|url| {
                url.trim_start_matches("https://10.0.0.")
                    .trim_end_matches(":10371")
                    .to_owned()
            })
            .collect::<Vec<_>>()
        };
        assert_eq!(lead(1), ["1"]);
        assert_eq!(lead(2), ["2", "1"]);
        assert_eq!(lead(1), ["1", "2"]);
        assert_eq!(lead(3), ["3", "1", "2"]);
        assert_eq!(lead(4), ["4", "3", "1", "2"]);
        assert_eq!(lead(5), ["5", "4", "3", "1"]);
    }

    #[test]
    fn a_leader_without_an_endpoint_and_a_broken_annotation_are_no_errors() {
        let mut lease = Lease::default();
        let annotations = lease.metadata.annotations.get_or_insert_default();
        annotations.insert(ANNOTATION.to_owned(), "{".to_owned());
        assert_eq!(Advertised::of(&lease), []);
        let annotations = lease.metadata.annotations.get_or_insert_default();
        Advertised::write(None, annotations);
        assert_eq!(annotations[ANNOTATION], "{");
        Advertised::write(Some(&endpoint(1)), annotations);
        assert_eq!(Advertised::of(&lease), [endpoint(1)]);
    }
}
