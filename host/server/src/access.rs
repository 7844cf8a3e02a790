//! Permissions that an installation needs on the control plane, and their review.
//!
//! The rules come from the table in `bulkhead_controllers::permissions`, from which the roles are generated too.

use std::collections::BTreeMap;

use bulkhead_controllers::controller_names;
use bulkhead_controllers::permissions::{Mode, Place, Rule};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec, SubjectAccessReviewStatus,
};
use kube::api::PostParams;
use kube::{Api, Client};
use tokio::task::JoinSet;

/// Name in the table of the Lease and of registered objects; arguments may change it.
const DEFAULT_NAME: &str = "bulkhead";

/// Parts of its modes that an installation uses.
pub struct Uses<'a> {
    /// Modes of the installation.
    pub modes: &'a [Mode],
    /// Controllers that run.
    pub controllers: &'a [&'static str],
    /// True if no argument names the modes.
    pub default_mode: bool,
    /// True if leader election is on.
    pub elects: bool,
    /// Namespace of the Lease.
    pub lease_namespace: &'a str,
    /// Name of the Lease, and of registered objects.
    pub lease_name: &'a str,
    /// True if the webhook is registered.
    pub webhook: bool,
    /// True if the process answers queries.
    pub queries: bool,
    /// True if Bulkhead keeps the webhook's certificate in its own Secret.
    pub own_certificate: bool,
    /// True if accurate estimators are queried.
    pub estimators: bool,
    /// Group and plural of each template kind in use. Rules about all kinds expand to these; `None` drops such rules,
    /// because a role may name kinds one by one.
    pub templates: Option<&'a [(String, String)]>,
}

/// Permission that is needed: one verb on one kind of object, with the reasons.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// Verb, such as `patch`.
    pub verb: &'static str,
    /// API group; empty for the core group.
    pub group: String,
    /// Plural, with `/status` for the subresource.
    pub resource: String,
    /// Empty for all namespaces.
    pub namespace: String,
    /// Name of the only object concerned; `None` for all objects.
    pub object: Option<String>,
    /// Parts of the program that need it, each with its purpose.
    pub why: Vec<String>,
}

impl Need {
    /// Returns plural and group, joined by a dot.
    pub fn kind(&self) -> String {
        if self.group.is_empty() {
            self.resource.clone()
        } else {
            format!("{}.{}", self.resource, self.group)
        }
    }
}

/// Writes verb and kind, with object name and namespace if they are set.
impl std::fmt::Display for Need {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.verb, self.kind())?;
        if let Some(object) = &self.object {
            write!(f, "/{object}")?;
        }
        if self.namespace.is_empty() {
            Ok(())
        } else {
            write!(f, " in {}", self.namespace)
        }
    }
}

/// Returns all needed permissions, without duplicates, in the order of the table.
pub fn needs(uses: &Uses<'_>) -> Vec<Need> {
    let mut found: Vec<Need> = Vec::new();
    let mut known: BTreeMap<(String, String, String, Option<String>, &str), usize> = BTreeMap::new();
    let duties = uses.modes.iter().flat_map(|mode| mode.duties());
    for duty in duties.filter(|duty| uses.takes(duty.name)) {
        for rule in duty
            .rules
            .iter()
            .filter(|rule| uses.estimators || !is_about_estimators(rule))
        {
            for (group, resource) in uses.kinds_of(rule) {
                let namespace = match rule.place {
                    Place::Everywhere => String::new(),
                    Place::LeaseNamespace => uses.lease_namespace.to_owned(),
                    Place::Namespace(name) => name.to_owned(),
                };
                let object = rule
                    .object
                    .map(|name| if name == DEFAULT_NAME { uses.lease_name } else { name }.to_owned());
                let why = format!("{}: {}", duty.name, rule.why);
                for verb in rule.verbs {
                    let key = (
                        group.clone(),
                        resource.clone(),
                        namespace.clone(),
                        object.clone(),
                        *verb,
                    );
                    let index = *known.entry(key).or_insert_with(|| {
                        let (group, resource) = (group.clone(), resource.clone());
                        let (namespace, object) = (namespace.clone(), object.clone());
                        found.push(Need {
                            verb,
                            group,
                            resource,
                            namespace,
                            object,
                            why: Vec::new(),
                        });
                        found.len() - 1
                    });
                    if let Some(need) = found.get_mut(index).filter(|need| !need.why.contains(&why)) {
                        need.why.push(why.clone());
                    }
                }
            }
        }
    }
    found
}

fn is_about_estimators(rule: &Rule) -> bool {
    rule.resource == "services" && rule.place != Place::Everywhere
}

impl Uses<'_> {
    /// Returns true if a part of the program is in use. Parts that are not controllers depend on the arguments.
    fn takes(&self, duty: &str) -> bool {
        match duty {
            "leader election" => self.elects,
            "default mode" => self.default_mode,
            "admission" | "interpreter webhook" => self.webhook,
            "queries" => self.queries,
            "webhook certificate" => self.webhook && self.own_certificate,
            name if controller_names().any(|known| known == name) => self.controllers.contains(&name),
            _ => true,
        }
    }

    /// Returns the groups and resources that a rule stands for.
    fn kinds_of(&self, rule: &Rule) -> Vec<(String, String)> {
        if rule.group != "*" {
            return vec![(rule.group.to_owned(), rule.resource.to_owned())];
        }
        let subresource = rule.resource.strip_prefix('*').unwrap_or_default();
        let templates = self.templates.unwrap_or_default().iter();
        templates
            .map(|(group, plural)| (group.clone(), format!("{plural}{subresource}")))
            .collect()
    }
}

/// Asks the control plane whether each need is allowed. Results keep the order of `needs`; an error says why the
/// answer is unknown.
pub async fn review(client: &Client, needs: &[Need]) -> Vec<Result<bool, String>> {
    let mut asking = JoinSet::new();
    for (index, need) in needs.iter().enumerate() {
        let (api, review) = (Api::<SelfSubjectAccessReview>::all(client.clone()), review_of(need));
        asking.spawn(async move { (index, api.create(&PostParams::default(), &review).await) });
    }
    let mut answers: Vec<_> = needs.iter().map(|_| Err("no answer".to_owned())).collect();
    while let Some(joined) = asking.join_next().await {
        let Ok((index, answer)) = joined else { continue };
        let answer = answer
            .map_err(|error| error.to_string())
            .and_then(|review| allowed(review.status));
        if let Some(place) = answers.get_mut(index) {
            *place = answer;
        }
    }
    answers
}

fn review_of(need: &Need) -> SelfSubjectAccessReview {
    let (resource, subresource) = need.resource.split_once('/').unwrap_or((&need.resource, ""));
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let attributes = ResourceAttributes {
        group: text(&need.group),
        resource: text(resource),
        subresource: text(subresource),
        namespace: text(&need.namespace),
        name: need.object.clone(),
        verb: Some(need.verb.to_owned()),
        ..ResourceAttributes::default()
    };
    let spec = SelfSubjectAccessReviewSpec {
        resource_attributes: Some(attributes),
        ..Default::default()
    };
    SelfSubjectAccessReview {
        spec,
        ..SelfSubjectAccessReview::default()
    }
}

fn allowed(status: Option<SubjectAccessReviewStatus>) -> Result<bool, String> {
    let status = status.ok_or("the answer has no status")?;
    match status.evaluation_error.filter(|_| !status.allowed) {
        Some(error) if status.reason.is_none() => Err(error),
        _ => Ok(status.allowed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALONE: Uses<'static> = Uses {
        modes: &[Mode::Finish],
        controllers: &["gracefulEviction"],
        default_mode: false,
        elects: true,
        lease_namespace: "failover",
        lease_name: "second",
        webhook: false,
        queries: true,
        own_certificate: true,
        estimators: false,
        templates: None,
    };

    fn texts(uses: &Uses<'_>) -> Vec<String> {
        needs(uses).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_mode_needs_what_it_uses_and_each_thing_once() {
        let finish = texts(&ALONE);
        assert!(
            finish.contains(&"update leases.coordination.k8s.io/second in failover".to_owned()),
            "{finish:?}"
        );
        assert!(finish.contains(&"patch resourcebindings.work.karmada.io".to_owned()));
        let registers =
            |need: &String| need.starts_with("patch mutatingwebhookconfigurations") || need.contains("secrets");
        assert!(!finish.iter().any(registers), "{finish:?}");
        let webhook = texts(&Uses {
            webhook: true,
            elects: false,
            ..ALONE
        });
        assert!(
            webhook.contains(&"get secrets/bulkhead-webhook in failover".to_owned()),
            "{webhook:?}"
        );
        let leases: Vec<_> = webhook.iter().filter(|need| need.contains("leases")).collect();
        assert_eq!(leases, ["list leases.coordination.k8s.io in failover"]);
        let mut several = texts(&Uses {
            modes: &[Mode::Finish, Mode::Report],
            ..ALONE
        });
        several.sort();
        several.dedup();
        assert_eq!(several.len(), finish.len());
    }

    #[test]
    fn rules_about_all_kinds_are_about_those_in_use() {
        let all: Vec<_> = controller_names().collect();
        let uses = Uses {
            modes: &[Mode::All],
            controllers: &all,
            ..ALONE
        };
        assert!(
            !texts(&uses).iter().any(|need| need.contains('*')),
            "{:?}",
            texts(&uses)
        );
        let templates = [("apps".to_owned(), "deployments".to_owned())];
        let named = texts(&Uses {
            templates: Some(&templates),
            ..uses
        });
        for need in [
            "list deployments.apps",
            "patch deployments.apps",
            "patch deployments/status.apps",
        ] {
            assert!(named.contains(&need.to_owned()), "{need}: {named:?}");
        }
        assert!(
            !named.iter().any(|need| need.contains("in karmada-system")),
            "estimators are not asked"
        );
        // Karmada's Leases are in its own namespace, also if that of Bulkhead is another one.
        let of_karmada = "get leases.coordination.k8s.io/karmada-scheduler in karmada-system".to_owned();
        assert!(
            !named.contains(&of_karmada)
                && texts(&Uses {
                    default_mode: true,
                    ..uses
                })
                .contains(&of_karmada)
        );
    }
}
