//! Faults of the control plane in the middle of a storm.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig};
use rustix::process::Signal;
use serde_json::json;

use crate::control_plane::{Audited, CANDIDATES};
use crate::federation::{Federation, Plan, QUICK};
use crate::process::Process;
use crate::proxy::{Fault, Proxy};
use crate::site::Site;
use crate::soundness::wait_for_line;
use crate::{losses, storm, wait};

/// Lease settings short enough for a test.
pub(crate) const LEASE: &[&str] = &[
    "--leader-elect-lease-duration=6s",
    "--leader-elect-renew-deadline=4s",
    "--leader-elect-retry-period=1s",
];
/// Number of Deployments to evict. Together with [`RATE`], the storm lasts longer than the faults.
const DEPLOYMENTS: usize = 40;
/// Maximum number of evictions in progress at any time.
const UNDER_WAY: usize = 10;
const RATE: &str = "--resource-eviction-rate=3";
/// Duration of the overload: long enough for the lease to expire several times.
const OVERLOAD: Duration = Duration::from_mins(1);

/// The storm completes although watches are cut, the control plane rejects all requests for a while, the lease is
/// taken away, and etcd and the API server restart. Processes that end are restarted, as a Deployment does.
pub(crate) async fn control_plane(site: &Site) -> anyhow::Result<()> {
    let settings: Vec<_> = QUICK[..QUICK.len() - 1]
        .iter()
        .chain(LEASE)
        .copied()
        .chain([RATE])
        .collect();
    let plan = Plan {
        settings: &settings,
        ..Plan::default()
    };
    let mut federation = Box::pin(Federation::start(site, "faults", plan)).await?;
    let upstream = Config::from_custom_kubeconfig(
        Kubeconfig::read_from(federation.hub.kubeconfig())?,
        &KubeConfigOptions::default(),
    )
    .await?;
    let proxy = Proxy::start(upstream).await?;
    let through = federation.hub.kubeconfig_for(&proxy.url())?;
    // From here on all processes connect through the proxy.
    if let Some(first) = federation.processes().first_mut() {
        first.kill();
    }
    let supervisor = federation.supervise(&through, 2)?;
    federation
        .apply_example_when_admitted("nginx-divided", &["taint-policy.yaml"])
        .await?;
    storm::prepare(&federation, DEPLOYMENTS).await?;
    let recorder = storm::Recorder::start(&federation.client, "member1");

    federation.member("member1")?.kill_api_server();
    some_left(&federation, 3).await?;
    proxy.cut();
    some_left(&federation, 8).await?;

    proxy.fail("", Fault::Overloaded);
    let before = storm::left(&federation.client, "member1").await?;
    tokio::time::sleep(OVERLOAD).await;
    let after = storm::left(&federation.client, "member1").await?;
    ensure!(
        proxy.refused() > 0,
        "nobody asked while the control plane was overloaded"
    );
    // In-flight writes may still have succeeded.
    ensure!(
        after <= before + 2,
        "{before} had left, and {after} while every write was refused"
    );
    proxy.recover();
    some_left(&federation, before + 4).await?;

    // Another holder takes the lease: the leader stops, and no process writes until the lease has expired.
    let ended = supervisor.ended();
    federation.patch_lease(&stolen())?;
    wait::until("whoever lost the lease ends", Duration::from_secs(30), async || {
        if supervisor.ended() > ended {
            Ok(())
        } else {
            Err("everybody runs".to_owned())
        }
    })
    .await?;
    some_left(&federation, before + 10).await?;

    // While disconnected the recorder misses events, including the ends of tasks that are in progress.
    let seen = storm::left(&federation.client, "member1")
        .await?
        .saturating_sub(UNDER_WAY);
    federation.hub.restart().await?;
    storm::everything_on(&federation.client, DEPLOYMENTS, "member2").await?;
    supervisor.stop().await;
    recorder.check(DEPLOYMENTS, seen).await
}

/// The leader is paused for longer than its lease while bindings move. It resumes after another process took over,
/// writes nothing more, and exits.
pub(crate) async fn paused(site: &Site) -> anyhow::Result<()> {
    let settings: Vec<_> = QUICK[..QUICK.len() - 1]
        .iter()
        .chain(LEASE)
        .copied()
        .chain([RATE])
        .collect();
    let plan = Plan {
        settings: &settings,
        ..Plan::default()
    };
    let mut federation = Box::pin(Federation::start(site, "paused", plan)).await?;
    // From here on the audit log distinguishes the processes by user.
    let mut holder = losses::holder(&federation)?;
    federation.signal(0, Signal::TERM)?;
    for user in CANDIDATES {
        let kubeconfig = federation.hub.write_kubeconfig(user, user)?;
        federation.start_bulkhead_with(&kubeconfig, &["--webhook-bind-address=127.0.0.1:0"])?;
        if user == CANDIDATES[0] {
            holder = losses::next_holder(&federation, &holder).await?;
        }
    }
    federation
        .apply_example_when_admitted("nginx-divided", &["taint-policy.yaml"])
        .await?;
    storm::prepare(&federation, DEPLOYMENTS).await?;
    let recorder = storm::Recorder::start(&federation.client, "member1");
    federation.member("member1")?.kill_api_server();
    some_left(&federation, 5).await?;
    federation.signal(1, Signal::STOP)?;
    let before = storm::left(&federation.client, "member1").await?;
    losses::next_holder(&federation, &holder).await?;
    some_left(&federation, before + 3).await?;
    federation.signal(1, Signal::CONT)?;
    federation.wait_ended(1).await?;
    storm::everything_on(&federation.client, DEPLOYMENTS, "member2").await?;
    recorder.check(DEPLOYMENTS, DEPLOYMENTS - UNDER_WAY).await?;

    let (robbed, next) = (
        federation.hub.audited(CANDIDATES[0])?,
        federation.hub.audited(CANDIDATES[1])?,
    );
    let is_taken = |request: &&Audited| request.resource == "leases" && request.verb == "update" && request.code == 200;
    let taken = next
        .iter()
        .filter(is_taken)
        .map(|request| &request.received)
        .min()
        .context("nobody took the lease")?;
    let wrote = |request: &&Audited| request.is_write() && request.resource != "leases";
    ensure!(
        robbed.iter().any(|request| wrote(&request)),
        "the audit log has no write of the first leader"
    );
    // The first leader may still try to renew its lease, without success.
    let late: Vec<_> = robbed
        .iter()
        .filter(|request| request.received > *taken && (wrote(request) || is_taken(request)))
        .collect();
    ensure!(
        late.is_empty(),
        "the lease was another's from {taken} on, and the first leader wrote {late:?}"
    );
    Ok(())
}

fn stolen() -> String {
    // The renew time stays unchanged: candidates count the lease duration from the moment they observe the change.
    r#"{"spec": {"holderIdentity": "a-thief", "leaseDurationSeconds": 3}}"#.to_owned()
}

/// Waits until bindings have left `member1`.
pub(crate) async fn some_left(federation: &Federation<'_>, count: usize) -> anyhow::Result<()> {
    wait::until(&format!("{count} have left"), Duration::from_secs(90), async || {
        let left = storm::left(&federation.client, "member1")
            .await
            .map_err(|error| error.to_string())?;
        if left >= count {
            Ok(())
        } else {
            Err(format!("{left} have"))
        }
    })
    .await
    .map(drop)
}

/// The process picks up replaced tokens and certificates while it runs. A member whose certificate is not trusted is
/// not ready, is reported by `doctor`, and can be joined again.
pub(crate) async fn credentials(site: &Site) -> anyhow::Result<()> {
    let mut federation = Box::pin(Federation::start(
        site,
        "credentials",
        Plan {
            members: 1,
            ..Plan::default()
        },
    ))
    .await?;
    let deployment = storm::deployment(0, 1, &json!({}));
    for object in [policy(), deployment] {
        federation.kubectl_with(&["apply", "-f", "-"], &object.to_string())?;
    }
    federation.wait_placed("app-0-deployment", &[("member1", 1)]).await?;
    federation.start_bulkhead_in("report", &[]).await?;
    wait_for_line(&mut federation, 1, "control plane https").await?;
    ready(&federation, "with the first token").await?;

    // Use another token of the account, and revoke the first one.
    federation.kubectl_with(&["apply", "-f", "-"], SECOND_TOKEN)?;
    let token = federation.account_token("bulkhead-second").await?;
    federation.hub.write_kubeconfig("bulkhead", &token)?;
    federation.kubectl(&["delete", "secret", "bulkhead-token", "-n", "karmada-system"])?;
    wait_for_line(&mut federation, 1, "the credentials of the control plane were replaced").await?;

    // Use another certificate of the API server, from another authority.
    let log = federation
        .processes()
        .get(1)
        .map(|process| process.log().to_path_buf())
        .context("no second process")?;
    let replaced = |text: &str| text.matches("credentials of the control plane were replaced").count();
    let before = replaced(&fs::read_to_string(&log)?);
    federation.hub.replace_certificate().await?;
    federation.client = federation.hub.client().await?;
    wait::until("it trusts the new certificate", Duration::from_mins(1), async || {
        let now = fs::read_to_string(&log).map_err(|error| error.to_string())?;
        if replaced(&now) > before {
            Ok(())
        } else {
            Err(now.lines().last().unwrap_or_default().to_owned())
        }
    })
    .await?;
    let answered = "bulkhead_api_answers_total{server=\"control-plane\",code=\"200\"}";
    let before = federation.metric(1, answered).await?;
    wait::until(
        "it reads with the new certificate",
        Duration::from_mins(1),
        async || {
            let now = federation
                .metric(1, answered)
                .await
                .map_err(|error| error.to_string())?;
            if now > before {
                Ok(())
            } else {
                Err(format!("{now} answers"))
            }
        },
    )
    .await?;
    // The first process may have lost its lease and exited. A Deployment would restart it.
    if federation.processes().first_mut().is_some_and(Process::ended) {
        federation.start_bulkhead(&[])?;
    }

    // A member with another certificate.
    federation.member("member1")?.replace_certificate().await?;
    federation.wait_ready("member1", false).await?;
    let kubeconfig = federation.hub.kubeconfig().display().to_string();
    let (code, said) = federation.bulkhead_with_code(&["doctor", "--kubeconfig", &kubeconfig, "--mode=all"])?;
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    ensure!(
        code == Some(1) && words.contains("is not trusted by the Secret of the cluster"),
        "{said}"
    );
    // The member's own controllers eventually write the new authority into the account's Secret.
    wait::until("it is ready again", Duration::from_secs(90), async || {
        federation.rejoin("member1").map_err(|error| error.to_string())?;
        tokio::time::sleep(Duration::from_secs(3)).await;
        federation.is_ready("member1", true).await
    })
    .await?;
    // The member's informers are connected again: a status change there reaches the binding.
    let replicas = |federation: &Federation<'_>| {
        let path = "jsonpath={.status.aggregatedStatus[0].status.readyReplicas}";
        federation.kubectl(&["get", "resourcebinding", "app-0-deployment", "-o", path])
    };
    ensure!(
        replicas(&federation)? == "1",
        "the binding tells {}",
        replicas(&federation)?
    );
    federation.kubectl(&["scale", "deployment", "app-0", "--replicas=2"])?;
    wait::until("the new status is at the binding", Duration::from_mins(1), async || {
        let output = replicas(&federation).map_err(|error| error.to_string())?;
        if output == "2" {
            Ok(())
        } else {
            Err(format!("{output} replicas are ready"))
        }
    })
    .await
    .map(drop)
}

async fn ready(federation: &Federation<'_>, when: &str) -> anyhow::Result<()> {
    wait::until(&format!("it is ready {when}"), Duration::from_secs(30), async || {
        let ready = federation.readiness(1).await.map_err(|error| error.to_string())?;
        if ready == "ok\n" { Ok(()) } else { Err(ready) }
    })
    .await
    .map(drop)
}

/// Returns a policy that keeps all Deployments of a storm on one member.
fn policy() -> serde_json::Value {
    json!({
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": "stays", "namespace": "default"},
        "spec": {
            "resourceSelectors": [{
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "labelSelector": {"matchLabels": {"storm": "yes"}},
            }],
            "placement": {"clusterAffinity": {"clusterNames": ["member1"]}},
        },
    })
}

const SECOND_TOKEN: &str = "\
apiVersion: v1
kind: Secret
metadata:
  name: bulkhead-second
  namespace: karmada-system
  annotations: {kubernetes.io/service-account.name: bulkhead}
type: kubernetes.io/service-account-token
";

/// The process is killed at random moments of a storm, repeatedly. No task is lost, no action is repeated, timers
/// continue, and every decision in the journal can be replayed.
pub(crate) async fn kills(site: &Site) -> anyhow::Result<()> {
    const KILLS: usize = 50;
    const STORM: usize = 100;
    let alone = "--leader-elect=false";
    let settings: Vec<_> = QUICK[..QUICK.len() - 1]
        .iter()
        .copied()
        .chain([alone, "--resource-eviction-rate=1"])
        .collect();
    let plan = Plan {
        settings: &settings,
        ..Plan::default()
    };
    let mut federation = Box::pin(Federation::start(site, "kills", plan)).await?;
    storm::prepare(&federation, STORM).await?;
    let recorder = storm::Recorder::start(&federation.client, "member1");
    federation.member("member1")?.kill_api_server();
    let kubeconfig = federation.hub.kubeconfig();
    some_left(&federation, 1).await?;
    let journal = federation.logs().join("journal").display().to_string();
    let recorded = format!("--journal={journal}");
    let (mut chance, mut killed) = (Chance(7), 0);
    while killed < KILLS {
        ensure!(
            storm::left(&federation.client, "member1").await? < STORM,
            "the storm was over after {killed} kills"
        );
        if let Some(process) = federation.processes().last_mut() {
            process.kill();
            killed += 1;
        }
        federation.start_bulkhead_with(&kubeconfig, &["--webhook-bind-address=127.0.0.1:0", &recorded])?;
        tokio::time::sleep(Duration::from_millis(600 + chance.next(1_200))).await;
    }
    storm::everything_on(&federation.client, STORM, "member2").await?;
    println!("      killed {killed} times");
    recorder.check(STORM, STORM * 3 / 4).await?;
    let replayed = federation.bulkhead(&["replay", "--all", "--journal", &journal])?;
    let output = federation.bulkhead(&["history", "--journal", &journal])?;
    let evictions = output.lines().filter(|line| line.contains("Evicted")).count();
    ensure!(
        evictions + 5 >= STORM,
        "{evictions} of {STORM} evictions are in the journal; {replayed}"
    );
    println!("      {}", replayed.trim());
    Ok(())
}

/// Deterministic pseudorandom numbers.
struct Chance(u64);

impl Chance {
    /// Returns a number less than `below`.
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}
