//! Gathers the facts from control plane, members and files, without judging them and without writing.

mod certificates;
mod health;
mod leases;
mod members;
mod server;
mod trust;
mod webhooks;
mod writers;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bulkhead_api::{
    Cluster, ClusterPropagationPolicy, ClusterTaintPolicy, EvictionPause, PluginTrust, PropagationPolicy,
    ResourceInterpreterCustomization, ResourceInterpreterWebhookConfiguration,
};
use bulkhead_controllers::{hook_for, install_customizations};
use bulkhead_core::call::{Call, CallKind, HealthCall};
use bulkhead_core::time::Time;
use bulkhead_plugin::{LoadStage, PluginStatus, Refused, Registry};
use bulkhead_runtime::connection::WritePermit;
use bulkhead_runtime::kinds::{Kinds, ObjectKind};
use bulkhead_server::access::{self, Uses};
use bulkhead_server::connect_error::ConnectError;
use bulkhead_server::hub::{Hub, in_time};
use bulkhead_server::unimplemented::{self as karmada_only, NotListed};
use bulkhead_server::{Checked, RunArguments, federation};
use bulkhead_simulator::takeover::{self, ControlPlaneCopy};
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::json;

use super::checks;
use super::facts::{
    Facts, Installation, KindInUse, Name, Pause, Permission, Plugin, PluginImage, Policy, Served, Server, ServerError,
    TaintPolicy, Unread,
};

/// Facts, with the input of a rehearsal.
pub(super) struct Gathered {
    pub(super) facts: Facts,
    /// Copy of the objects and the policies of the installation; absent if there is no rehearsal.
    pub(super) copy: Option<(ControlPlaneCopy, Arc<Registry>)>,
}

/// Gathers all facts about an installation. Each request has the time limit, and a failed one ends no other.
/// `copies` asks for a copy of the objects that the controllers read.
///
/// # Errors
///
/// The arguments contradict each other. All other problems are recorded as facts.
pub(super) async fn facts(
    arguments: &RunArguments,
    user: Option<&str>,
    limit: Duration,
    copies: bool,
) -> anyhow::Result<Gathered> {
    let checked = arguments.check()?;
    let now = Time::new(bulkhead_server::now());
    let installation = Installation {
        modes: checked.modes.all().iter().map(|mode| mode.name().to_owned()).collect(),
        controllers: checked.wanted.iter().map(|&name| name.to_owned()).collect(),
        lease: checked.elects.then(|| {
            let uses = arguments.uses(&checked);
            Name {
                namespace: uses.lease_namespace.to_owned(),
                name: uses.lease_name.to_owned(),
            }
        }),
        flags: checked.flags.clone(),
    };
    let mut facts = Facts {
        now,
        installation,
        control_plane: Server::default(),
        permissions: Vec::new(),
        served: Vec::new(),
        leases: Vec::new(),
        unimplemented: Vec::new(),
        writers: Vec::new(),
        certificates: certificates::of_kubeconfig(arguments.hub()).await,
        plugins: Vec::new(),
        trust: trust::of_file(arguments),
        plugin_error: None,
        webhooks: Vec::new(),
        kinds: Vec::new(),
        policies: Vec::new(),
        taint_policies: Vec::new(),
        pauses: Vec::new(),
        members: Vec::new(),
        unknown_health: Vec::new(),
        rehearsal: None,
        unread: Vec::new(),
    };
    let hub = match Hub::connect_within(arguments.hub(), &WritePermit::report_only(), limit).await {
        Ok(hub) => hub,
        Err(error) => {
            plugins(arguments, &checked, &Objects::default(), &mut facts)?;
            facts.control_plane = server::out_of_reach(arguments.hub(), &error).await;
            return Ok(Gathered { facts, copy: None });
        }
    };
    let client = &hub.reader(limit);
    facts.control_plane = server::ask(client, &hub.address, &hub.version).await;
    if facts.control_plane.error.is_some() {
        plugins(arguments, &checked, &Objects::default(), &mut facts)?;
        return Ok(Gathered { facts, copy: None });
    }
    served(client, &mut facts).await;
    policies(client, &mut facts).await;
    let objects = Objects {
        plugins: listed(client, checks::PLUGINS, &mut facts).await,
        trust: trust::of_objects(client, &mut facts).await,
    };
    let registry = plugins(arguments, &checked, &objects, &mut facts)?;
    kinds(client, &registry, &mut facts).await;
    health::gather(client, &mut facts).await;
    let asking = in_time(hub.unguarded.clone(), limit);
    permissions(arguments, &checked, &asking, user.map(|user| (user, limit)), &mut facts).await;
    leases::gather(client, &mut facts).await;
    unimplemented(client, &mut facts).await;
    writers::gather(client, &mut facts).await;
    certificates::of_webhook(arguments, client, &mut facts).await;
    webhooks::gather(client, &mut facts).await;
    let clusters = listed::<Cluster>(client, checks::MEMBERS, &mut facts).await;
    members::gather(client, clusters, limit, &mut facts).await;
    let copy = if copies { copy(client, &mut facts).await } else { None };
    let copy = copy.map(|copy| (copy, registry));
    Ok(Gathered { facts, copy })
}

/// Copies the objects that the controllers of the installation read. A failure is recorded as a fact.
pub(super) async fn copy(client: &Client, facts: &mut Facts) -> Option<ControlPlaneCopy> {
    let controllers: Vec<_> = facts.installation.controllers.iter().map(String::as_str).collect();
    match takeover::read(client, &controllers).await {
        Ok(copy) => Some(copy),
        Err(error) => {
            facts.unread(checks::REHEARSAL, &error.what, &error.source);
            None
        }
    }
}

/// Lists all objects of a kind; a failure is recorded as a fact.
async fn listed<K>(client: &Client, check: &str, facts: &mut Facts) -> Vec<K>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
{
    match Api::<K>::all(client.clone()).list(&Default::default()).await {
        Ok(list) => list.items,
        Err(error) => {
            facts.unread(check, &K::plural(&()), &error);
            Vec::new()
        }
    }
}

impl Facts {
    /// Records a read that failed. Kinds that are not served (404) are skipped, because another check reports them.
    fn unread(&mut self, check: &str, what: &str, error: &kube::Error) {
        let (why, answered) = match error {
            kube::Error::Api(status) if status.code == 404 => return,
            kube::Error::Api(status) if status.code < 500 => (status.message.clone(), true),
            kube::Error::Api(status) => (format!("{} ({})", status.message.trim(), status.code), false),
            other => (bulkhead_runtime::causes::causes(other), false),
        };
        self.unread.push(Unread {
            check: check.to_owned(),
            what: what.to_owned(),
            why,
            answered,
        });
    }
}

/// Records the objects whose controllers of Karmada mode `all` replaces without a counterpart.
async fn unimplemented(client: &Client, facts: &mut Facts) {
    if !facts.installation.has("all") {
        return;
    }
    let controllers: Vec<_> = facts.installation.controllers.iter().map(String::as_str).collect();
    match karmada_only::find(client, &controllers).await {
        Ok(objects) => facts.unimplemented = objects,
        Err(NotListed { what, source }) => facts.unread(checks::OWNERS, &what, &source),
    }
}

/// Objects that plugins depend on.
#[derive(Default)]
struct Objects {
    plugins: Vec<bulkhead_api::Plugin>,
    /// Trust in images; none if it cannot be read.
    trust: Option<Vec<PluginTrust>>,
}

/// Loads the plugins as `run` would.
fn plugins(
    arguments: &RunArguments,
    checked: &Checked,
    objects: &Objects,
    facts: &mut Facts,
) -> anyhow::Result<Arc<Registry>> {
    let engines = arguments.engines().start(checked.flags.pod_detail())?;
    let registry = Arc::new(bulkhead_defaults::registry::build(&checked.flags, engines));
    let loaded = arguments.plugins().and_then(|sources| {
        let catalog = sources.objects();
        catalog.set(objects.plugins.iter().map(bulkhead_api::Plugin::to_object).collect());
        if let Some(trust) = &objects.trust {
            sources.trust().set(trust.iter().map(PluginTrust::to_object).collect());
        }
        federation::load(&registry, sources, &catalog)
    });
    match loaded {
        Err(error) => facts.plugin_error = Some(format!("{error:#}")),
        Ok(plugins) => {
            facts.plugins = plugins.status().into_iter().map(plugin).collect();
        }
    }
    Ok(registry)
}

/// Returns the facts about a plugin.
fn plugin(status: PluginStatus) -> Plugin {
    let texts = |kinds: BTreeSet<CallKind>| kinds.into_iter().map(|kind| kind.to_string()).collect();
    // A registry that does not answer refuses no version: that of the cache is loaded.
    let is_unreachable = |refused: &Refused| refused.stage == LoadStage::Fetched && status.image.is_some();
    let (unreachable, refused) = match status.refused {
        Some(refused) if is_unreachable(&refused) => (Some(refused.message), None),
        refused => (None, refused),
    };
    let image = status.image.map(|image| PluginImage {
        listed: status.listed_image.unwrap_or_default(),
        loaded: image.reference,
        signer: image.signer,
        unreachable,
        answers: texts(status.answers.into_iter().collect()),
        permitted: status.permitted.map(texts),
    });
    Plugin {
        name: status.name,
        refused: refused.map(|refused| format!("refused at {}: {}", refused.stage, refused.message)),
        image,
    }
}

/// Records the served versions and resources of the groups that the program uses.
async fn served(client: &Client, facts: &mut Facts) {
    let wanted: BTreeSet<_> = bulkhead_api::REGISTERED.iter().map(|info| info.group).collect();
    let groups = match client.list_api_groups().await {
        Ok(groups) => groups.groups,
        Err(error) => return facts.unread(checks::KINDS, "API groups", &error),
    };
    for group in groups.into_iter().filter(|group| wanted.contains(group.name.as_str())) {
        for version in group.versions {
            match client.list_api_group_resources(&version.group_version).await {
                Ok(list) => facts.served.push(Served {
                    group: group.name.clone(),
                    version: version.version,
                    resources: list.resources.into_iter().map(|resource| resource.name).collect(),
                }),
                Err(error) => facts.unread(checks::KINDS, &version.group_version, &error),
            }
        }
    }
}

async fn policies(client: &Client, facts: &mut Facts) {
    let name = |namespace: Option<String>, name: String| Name {
        namespace: namespace.unwrap_or_default(),
        name,
    };
    for policy in listed::<PropagationPolicy>(client, checks::FAILOVER, facts).await {
        let name = name(policy.namespace(), policy.name_any());
        facts.policies.push(Policy {
            kind: "PropagationPolicy".to_owned(),
            name,
            spec: policy.spec,
        });
    }
    for policy in listed::<ClusterPropagationPolicy>(client, checks::FAILOVER, facts).await {
        let name = name(None, policy.name_any());
        facts.policies.push(Policy {
            kind: "ClusterPropagationPolicy".to_owned(),
            name,
            spec: policy.spec,
        });
    }
    for policy in listed::<ClusterTaintPolicy>(client, checks::FAILOVER, facts).await {
        facts.taint_policies.push(TaintPolicy {
            name: policy.name_any(),
            spec: policy.spec,
        });
    }
    for pause in listed::<EvictionPause>(client, checks::FAILOVER, facts).await {
        facts.pauses.push(Pause {
            name: pause.name_any(),
            spec: pause.spec,
        });
    }
}

/// Records the kinds that policies select, each with the interpreter that determines its health: plugin,
/// customization, hook, library or native rule.
async fn kinds(client: &Client, registry: &Registry, facts: &mut Facts) {
    let customizations = listed::<ResourceInterpreterCustomization>(client, checks::INTERPRETERS, facts).await;
    install_customizations(registry, customizations.iter());
    let hooks = listed::<ResourceInterpreterWebhookConfiguration>(client, checks::INTERPRETERS, facts).await;
    let hooks: Vec<_> = hooks.into_iter().map(Arc::new).collect();
    let selectors = facts.policies.iter().flat_map(|policy| &policy.spec.resource_selectors);
    let in_use: BTreeSet<_> = selectors
        .map(|selector| ObjectKind::new(&selector.api_version, &selector.kind))
        .collect();
    let (known, policies) = (Kinds::new(client.clone()), registry.policies());
    for kind in in_use {
        let object = Arc::new(json!({"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "a"}}));
        let call = Call::Health(HealthCall {
            object: &object,
            now: facts.now,
        });
        let answering = policies
            .answering(&call)
            .next()
            .map(|member| member.policy.id().name.clone());
        let health = answering.or_else(|| hook_for(&hooks, &call).map(|(id, _)| id.name));
        let served = match known.resolve(&kind).await {
            Ok(_) => true,
            Err(error) => error.class() != bulkhead_runtime::controller::ErrorClass::NotFound && !is_missing(&error),
        };
        facts.kinds.push(KindInUse {
            api_version: kind.api_version,
            kind: kind.kind,
            served,
            health,
        });
    }
}

/// Returns true if discovery found no such kind.
fn is_missing(error: &bulkhead_runtime::controller::Error) -> bool {
    let bulkhead_runtime::controller::Error::Api { source, .. } = error else {
        return false;
    };
    matches!(&**source, kube::Error::Discovery(_))
}

async fn permissions(
    arguments: &RunArguments,
    checked: &Checked,
    client: &Client,
    user: Option<(&str, Duration)>,
    facts: &mut Facts,
) {
    let mut templates = Vec::new();
    let known = Kinds::new(client.clone());
    for kind in facts.kinds.iter().filter(|kind| kind.served) {
        if let Ok(kind) = known.resolve(&ObjectKind::new(&kind.api_version, &kind.kind)).await {
            templates.push((kind.resource.group.clone(), kind.resource.plural.clone()));
        }
    }
    let needs = access::needs(&Uses {
        templates: Some(&templates),
        ..arguments.uses(checked)
    });
    let asked = match user {
        None => Ok(client.clone()),
        Some((user, limit)) => server::impersonating(arguments.hub(), user, limit).await,
    };
    let asked = match asked {
        Ok(asked) => asked,
        Err(error) => {
            let (check, what) = (checks::PERMISSIONS.to_owned(), "--as".to_owned());
            return facts.unread.push(Unread {
                check,
                what,
                why: format!("{error:#}"),
                answered: true,
            });
        }
    };
    let answers = access::review(&asked, &needs).await;
    if let Some(why) = answers.iter().find_map(|answer| answer.as_ref().err()) {
        let what = "access reviews".to_owned();
        let check = checks::PERMISSIONS.to_owned();
        facts.unread.push(Unread {
            check,
            what,
            why: why.clone(),
            answered: true,
        });
    }
    let permission = |(need, answer): (access::Need, Result<bool, String>)| Permission {
        resource: need.kind(),
        verb: need.verb.to_owned(),
        why: need.why,
        namespace: need.namespace,
        object: need.object,
        allowed: answer.ok(),
    };
    facts.permissions = needs.into_iter().zip(answers).map(permission).collect();
}

/// Converts the reason why an API server cannot be used to a fact.
fn server_error(error: &anyhow::Error) -> ServerError {
    match error.downcast_ref::<ConnectError>() {
        Some(ConnectError {
            what,
            remedy,
            is_silent,
            ..
        }) => ServerError {
            what: what.clone(),
            remedy: remedy.clone(),
            is_silent: *is_silent,
        },
        None => ServerError {
            what: crate::exit::error_text(error),
            remedy: "fix the kubeconfig, or name another one".to_owned(),
            is_silent: false,
        },
    }
}
