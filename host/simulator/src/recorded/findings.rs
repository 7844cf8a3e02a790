//! Findings of each kind of decision, as a tree.

mod graceful_eviction;

use bulkhead_core::decide::application_failover::HealthHistories;
use bulkhead_core::decide::application_failover::health_history;
use bulkhead_core::decide::eviction::taint_based::{self, Tolerance};
use bulkhead_core::decide::eviction::{PauseScope, PreCheck, Priority, has_target, paused};
use bulkhead_core::decide::failback::Home;
use bulkhead_core::journal::{DecisionInput, DecisionRecord, PolicySlot, RecordedCall, RecordedReply};
use bulkhead_core::model::{Binding, Cluster, TaintEffect};
use bulkhead_core::names::keys::EVICTION_PRIORITY;

use self::graceful_eviction::graceful_eviction;
use super::diff::{place, reason, text};
use super::finding::Finding;

/// Returns the findings of a decision. `cluster` restricts them to the member cluster of a record.
pub(super) fn of(decision: &DecisionRecord, cluster: Option<&str>) -> Vec<Finding> {
    match &decision.input {
        DecisionInput::Taint { .. } => taint(decision),
        DecisionInput::Evict { .. } => evict(decision),
        DecisionInput::Schedule { binding, .. } => schedule(decision, binding),
        DecisionInput::GracefulEviction { binding, .. } => graceful_eviction(decision, binding, cluster),
        DecisionInput::Failover { binding, .. } => failover(decision, binding, cluster),
        DecisionInput::Failback { binding, .. } => failback(decision, binding),
        DecisionInput::Health { .. } => health(decision),
    }
}

fn finding(gate: impl Into<String>, verdict: impl Into<String>) -> Finding {
    Finding {
        gate: gate.into(),
        verdict: verdict.into(),
        ..Finding::default()
    }
}

/// Returns the recorded replies to calls about `about`, or all replies.
pub(super) fn answers(decision: &DecisionRecord, about: Option<&str>) -> Vec<Finding> {
    let concerns = |asked: &&RecordedCall| about.is_none_or(|about| asked.about == about);
    decision
        .calls
        .iter()
        .filter(concerns)
        .map(|asked| answer(decision, asked))
        .collect()
}

fn answer(decision: &DecisionRecord, asked: &RecordedCall) -> Finding {
    let slot = decision.policies.get(asked.slot);
    let gate = slot.map_or_else(|| format!("policy {}", asked.slot), gate_of);
    let (verdict, observed) = describe_answer(&asked.reply);
    Finding {
        observed,
        ..finding(gate, verdict)
    }
}

/// Returns the policy of a slot with its version, its image and the signer of the image, and its mode.
fn gate_of(slot: &PolicySlot) -> String {
    let mode = if slot.mode.as_str() == "enforce" {
        String::new()
    } else {
        format!(" [{}]", slot.mode.as_str())
    };
    let version = slot.build.as_ref().map_or_else(String::new, |build| {
        let image = build
            .image
            .as_ref()
            .map_or_else(String::new, |image| format!(", {image}"));
        format!(", version {}{image}", slot.policy.version)
    });
    format!("{}{version}{mode}", slot.policy)
}

fn describe_answer(answer: &RecordedReply) -> (String, String) {
    use bulkhead_core::call::{EvictionVerdict, TaintChange};
    match answer {
        RecordedReply::Health(verdict) => (verdict.health.as_str().to_owned(), verdict.reason.to_string()),
        RecordedReply::ClusterTaint(changes) if changes.is_empty() => ("no change".to_owned(), String::new()),
        RecordedReply::ClusterTaint(changes) => {
            let one = |change: &TaintChange| match change {
                TaintChange::Add { taint, reason } => (format!("+{taint}"), reason.to_string()),
                TaintChange::Remove { key, effect, reason } => {
                    (format!("-{key}:{}", effect.as_str()), reason.to_string())
                }
            };
            let (changes, reasons): (Vec<_>, Vec<_>) = changes.iter().map(one).unzip();
            (changes.join(", "), reasons.join("; "))
        }
        RecordedReply::Filter(filtered) => {
            let fit = filtered.clusters - filtered.unfit.len().min(filtered.clusters);
            (format!("{fit} of {} clusters fit", filtered.clusters), String::new())
        }
        RecordedReply::Score(runs) => {
            let one = |(score, count): &(i64, usize)| {
                if *count == 1 {
                    score.to_string()
                } else {
                    format!("{score} ×{count}")
                }
            };
            (
                format!("scores {}", runs.iter().map(one).collect::<Vec<_>>().join(", ")),
                String::new(),
            )
        }
        RecordedReply::EvictionCheck(EvictionVerdict::Release(reason)) => ("release".to_owned(), reason.to_string()),
        RecordedReply::EvictionCheck(EvictionVerdict::Hold { reason, .. }) => ("hold".to_owned(), reason.to_string()),
        RecordedReply::EvictionCheck(EvictionVerdict::Abstain) => ("no opinion".to_owned(), String::new()),
        RecordedReply::Fault { kind, message } => (format!("no answer ({})", kind.code()), message.clone()),
    }
}

fn ready_of(cluster: &Cluster, decision: &DecisionRecord) -> String {
    cluster.ready().map_or_else(
        || "no Ready condition".to_owned(),
        |ready| {
            let since = ready.last_transition_time.map_or_else(String::new, |since| {
                format!(" for {} s", decision.now.millis_since(since).max(0) / 1000)
            });
            format!("Ready is {}{since} ({})", ready.status.as_str(), ready.reason)
        },
    )
}

fn taint(decision: &DecisionRecord) -> Vec<Finding> {
    let Some(cluster) = decision.clusters.first() else {
        return Vec::new();
    };
    let taints: Vec<_> = cluster.spec.taints.iter().map(ToString::to_string).collect();
    let taints = if taints.is_empty() {
        "no taints".to_owned()
    } else {
        taints.join(", ")
    };
    let verdicts = answers(decision, None)
        .into_iter()
        .filter(|finding| finding.verdict != "no change")
        .collect();
    vec![
        Finding {
            observed: format!("{}; {taints}", ready_of(cluster, decision)),
            ..finding("cluster", cluster.name.clone())
        },
        Finding {
            would_change: "another Ready condition, or another rule".to_owned(),
            within: verdicts,
            ..finding("taint rules", format!("{} were called", decision.policies.len()))
        },
    ]
}

fn evict(decision: &DecisionRecord) -> Vec<Finding> {
    let DecisionInput::Evict {
        binding,
        cluster,
        options,
        pre_check,
        pauses,
        limits,
        priority,
    } = &decision.input
    else {
        return Vec::new();
    };
    let Some(source) = decision.cluster(cluster) else {
        return vec![finding("cluster", format!("{cluster} is gone"))];
    };
    let mut findings = vec![tolerations(decision, binding, source, *options)];
    let scope = PauseScope {
        cluster,
        workload: &binding.spec.resource,
    };
    findings.push(match paused(pauses, scope, decision.now) {
        Some(paused) => Finding {
            would_change: format!("deleting EvictionPause {}", paused.by),
            ..finding("pause", paused.attribution().reason.message)
        },
        None => Finding {
            observed: format!("none of {} EvictionPauses in force covers it", pauses.len()),
            ..finding("pause", "none")
        },
    });
    let placement = taint_based::placement_in(&binding.annotations).unwrap_or_default();
    let open = has_target(
        *pre_check,
        &binding.spec,
        &placement,
        cluster,
        &decision.clusters,
        decision.now,
    );
    let possible: Vec<_> = decision
        .clusters
        .iter()
        .filter(|other| other.name != *cluster)
        .filter(|other| {
            let alone = [std::sync::Arc::clone(other)];
            has_target(*pre_check, &binding.spec, &placement, cluster, &alone, decision.now)
        })
        .map(|other| other.name.as_str())
        .collect();
    let possible = if possible.is_empty() {
        "none on its own".to_owned()
    } else {
        possible.join(", ")
    };
    findings.push(Finding {
        observed: format!("clusters that could take it: {possible}"),
        threshold: format!("eviction-pre-check {}", canonical_word(pre_check)),
        would_change: target_hint(*pre_check, open).to_owned(),
        ..finding("target available", if open { "yes" } else { "no" })
    });
    let rates = [
        ("all", Some(limits.per_second)),
        ("group", limits.group_per_second),
        ("cluster", limits.cluster_per_second),
    ];
    let rates = rates
        .iter()
        .filter_map(|(of, rate)| Some(format!("{of} {}/s", (*rate)?)));
    findings.push(Finding {
        observed: limits.brake.clone(),
        threshold: rates.collect::<Vec<_>>().join(", "),
        ..finding("rate", "a slot was free")
    });
    findings.extend(priority.map(|Priority { score, class }| Finding {
        observed: format!("score of plugins {score}, number of the label or the priority class {class}"),
        would_change: format!("the order only: {EVICTION_PRIORITY} on the workload, or a plugin that orders evictions"),
        ..finding(
            "priority",
            (if score == 0 { i64::from(class) } else { score }).to_string(),
        )
    }));
    findings
}

/// Returns the change that would reverse the verdict of the target gate.
fn target_hint(pre_check: PreCheck, open: bool) -> &'static str {
    match (pre_check, open) {
        (PreCheck::Feasible, true) => "no other cluster that is ready, selected and tolerated",
        (PreCheck::Feasible, false) => {
            "another cluster that is ready, selected by the placement and without an untolerated taint"
        }
        (PreCheck::Proposal, true) => "no other cluster that the placement selects",
        (PreCheck::Proposal, false) => {
            "another cluster that the placement selects, or as many as the minimum of its spread constraint; for Divided \
             without replicas of the workload"
        }
        (PreCheck::None, _) => "eviction-pre-check feasible or proposal",
    }
}

fn canonical_word<T: serde::Serialize>(value: &T) -> String {
    text(&bulkhead_core::journal::canonical(value))
}

fn tolerations(
    decision: &DecisionRecord,
    binding: &Binding,
    source: &Cluster,
    options: taint_based::EvictOptions,
) -> Finding {
    let evicting = || source.spec.taints.iter().filter(|taint| options.evicts(taint));
    let is_preferred = evicting().any(|taint| taint.effect == TaintEffect::PreferNoExecute);
    let is_only_preferred = evicting().all(|taint| taint.effect == TaintEffect::PreferNoExecute) && is_preferred;
    let aged = |taint: &bulkhead_core::model::Taint| {
        let age = taint
            .time_added
            .map(|since| decision.now.millis_since(since).max(0) / 1000);
        age.map_or_else(|| taint.to_string(), |age_s| format!("{taint} for {age_s} s"))
    };
    let taints: Vec<_> = evicting().map(aged).collect();
    let asked = binding
        .spec
        .failover
        .as_ref()
        .and_then(|failover| failover.cluster.as_ref());
    let placement = taint_based::placement_in(&binding.annotations).unwrap_or_default();
    let (verdict, would_change) =
        match taint_based::tolerance(&source.spec.taints, &placement.cluster_tolerations, decision.now) {
            Tolerance::Not(taint) => (
                "not tolerated".to_owned(),
                format!(
                    "a toleration of {} in the placement, or the removal of the taint",
                    taint.key
                ),
            ),
            Tolerance::For { remaining_ms: 0 } => (
                "the toleration has expired".to_owned(),
                "a longer tolerationSeconds in the placement".to_owned(),
            ),
            Tolerance::For { remaining_ms } => (
                format!("tolerated for {} s more", remaining_ms / 1000),
                "the time, or the removal of the taint".to_owned(),
            ),
            Tolerance::Forever => (
                "tolerated without a time limit".to_owned(),
                "a placement without that toleration".to_owned(),
            ),
            Tolerance::Untainted if taints.is_empty() => (
                "no taint that evicts".to_owned(),
                "a NoExecute taint on the cluster".to_owned(),
            ),
            Tolerance::Untainted => {
                let change = match asked {
                    Some(_) => {
                        "a longer tolerationSeconds in failover.cluster of the policy, or the removal of the taint"
                    }
                    None => "failover.cluster of the policy",
                };
                ("preferred to leave".to_owned(), change.to_owned())
            }
        };
    let hard = placement
        .cluster_tolerations
        .iter()
        .filter(|toleration| toleration.effect != Some(TaintEffect::NoSchedule));
    // Tolerations of a placement do not concern PreferNoExecute.
    let of_placement = (!is_only_preferred).then(|| format!("{} tolerations in the applied placement", hard.count()));
    let of_failover = is_preferred.then(|| match asked.map(|cluster| cluster.toleration_seconds) {
        Some(Some(seconds)) => format!("tolerationSeconds {seconds} of failover.cluster"),
        Some(None) => "the default tolerationSeconds of failover.cluster".to_owned(),
        None => "no failover.cluster, so PreferNoExecute evicts nothing".to_owned(),
    });
    Finding {
        observed: if taints.is_empty() {
            String::new()
        } else {
            format!("{}: {}", source.name, taints.join(", "))
        },
        threshold: of_placement
            .into_iter()
            .chain(of_failover)
            .collect::<Vec<_>>()
            .join(", "),
        would_change,
        ..finding("taints", verdict)
    }
}

fn schedule(decision: &DecisionRecord, binding: &Binding) -> Vec<Finding> {
    let now: Vec<_> = binding
        .spec
        .clusters
        .iter()
        .map(|target| format!("{}:{}", target.name, target.replicas))
        .collect();
    let before = if now.is_empty() {
        "nowhere".to_owned()
    } else {
        now.join(", ")
    };
    vec![Finding {
        observed: format!(
            "{} clusters, {} replicas, placed {before} before",
            decision.clusters.len(),
            binding.spec.replicas
        ),
        within: answers(decision, None),
        ..finding("scheduler", place(&decision.plan))
    }]
}

fn failover(decision: &DecisionRecord, binding: &Binding, cluster: Option<&str>) -> Vec<Finding> {
    let application = binding
        .spec
        .failover
        .as_ref()
        .and_then(|failover| failover.application.as_ref());
    let toleration = application.and_then(|application| application.decision_conditions.toleration_seconds);
    let remembered: HealthHistories = health_history::read(binding);
    let targets = binding.spec.clusters.iter().map(|target| target.name.as_str());
    targets
        .filter(|name| cluster.is_none_or(|cluster| cluster == *name))
        .map(|name| {
            let health = binding
                .status
                .aggregated_status
                .iter()
                .find(|item| item.cluster_name == name);
            let health = health
                .and_then(|item| item.health)
                .map_or("not reported", |health| health.as_str());
            let unhealthy_s = remembered
                .get(name)
                .map_or(0, |seen| seen.unhealthy_ms(decision.now) / 1000);
            let evicted = decision.plan["evicted"].as_array().into_iter().flatten();
            let leaves = evicted.filter(|item| item["task"]["fromCluster"] == name).count() > 0;
            let mut waits = ["paused", "withoutTarget"]
                .into_iter()
                .filter_map(|list| decision.plan[list].as_array())
                .flatten();
            let within = waits.find(|item| item["cluster"] == name).map(|item| Finding {
                would_change: "the end of the EvictionPause, or another cluster that could run it".to_owned(),
                ..finding("gate", reason(&item["because"]))
            });
            Finding {
                within: within.into_iter().collect(),
                observed: format!("{health}, unhealthy for {unhealthy_s} s so far"),
                threshold: format!("tolerationSeconds {}", toleration.unwrap_or(300)),
                would_change: "a healthy report in time, a longer toleration, or an EvictionPause".to_owned(),
                ..finding(
                    format!("application on {name}"),
                    if leaves { "leaves" } else { "stays for now" },
                )
            }
        })
        .collect()
}

fn failback(decision: &DecisionRecord, binding: &Binding) -> Vec<Finding> {
    let DecisionInput::Failback {
        stable,
        pauses,
        window_s,
        ..
    } = &decision.input
    else {
        return Vec::new();
    };
    let Some(home) = Home::read(&binding.annotations) else {
        return vec![finding("home", "none is recorded")];
    };
    let tried = format!("{} attempts so far, each doubles the window", home.tries);
    let mut findings: Vec<_> = home
        .clusters
        .keys()
        .map(|name| {
            let since = stable
                .get(name)
                .map(|stable| decision.now.millis_since(stable.since).max(0) / 1000);
            let ready = decision
                .cluster(name)
                .map_or_else(|| "it is gone".to_owned(), |known| ready_of(known, decision));
            Finding {
                observed: since.map_or_else(
                    || ready.clone(),
                    |since_s| format!("{ready}; unchanged for {since_s} s"),
                ),
                threshold: format!("failback-stabilization-window {window_s} s, {tried}"),
                would_change: "a failure of the cluster, or a change of its taints".to_owned(),
                ..finding(
                    format!("home {name}"),
                    if since.is_some() { "well" } else { "not well" },
                )
            }
        })
        .collect();
    findings.push(Finding {
        would_change: "an EvictionPause that covers it".to_owned(),
        ..finding("pause", format!("{} in force", pauses.len()))
    });
    let attribution = &decision.plan["return"]["because"];
    findings.push(Finding {
        observed: reason(attribution),
        ..finding(
            "result",
            if attribution.is_null() {
                "it waits"
            } else {
                "it goes back"
            },
        )
    });
    findings
}

fn health(decision: &DecisionRecord) -> Vec<Finding> {
    let rule = bulkhead_core::journal::canonical(&decision.composition.health);
    vec![Finding {
        threshold: format!("rule {}", text(&rule)),
        observed: reason(&decision.plan["because"]),
        would_change: "another report of the member cluster, or another interpreter".to_owned(),
        within: answers(decision, None),
        ..finding("health", text(&decision.plan["health"]))
    }]
}

#[cfg(test)]
mod tests;
