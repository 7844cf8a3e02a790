//! Diagnosis of incomplete installations by `bulkhead doctor` and `bulkhead run`.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::Value;

use crate::federation::{ACCOUNT, Federation, Plan, QUICK};
use crate::losses::DIVIDED;
use crate::site::Site;
use crate::wait;

/// A required permission for each mode: mode, resource, group and verb.
const LACKING: &[(&str, &str, &str, &str)] = &[
    ("report", "clusters", "cluster.karmada.io", "list"),
    (
        "interpret",
        "resourceinterpreterwebhookconfigurations",
        "config.karmada.io",
        "create",
    ),
    ("finish", "resourcebindings", "work.karmada.io", "patch"),
    ("evict", "clusters", "cluster.karmada.io", "patch"),
    ("all", "clusters/status", "cluster.karmada.io", "update"),
];

/// Verdict of `doctor`: overall result, and the places of its errors.
struct Verdict {
    sound: bool,
    errors: Vec<String>,
}

fn ask(federation: &Federation<'_>, more: &[&str]) -> anyhow::Result<Verdict> {
    let kubeconfig = federation.hub.kubeconfig().display().to_string();
    let words: Vec<_> = ["doctor", "--kubeconfig", &kubeconfig, "-o", "json"]
        .into_iter()
        .chain(more.iter().copied())
        .collect();
    let (code, text) = federation.bulkhead_with_code(&words)?;
    let output: Value = serde_json::from_str(&text).with_context(|| format!("doctor says {text}"))?;
    let findings = output["checks"]
        .as_array()
        .into_iter()
        .flatten()
        .flat_map(|check| check["findings"].as_array().cloned().unwrap_or_default());
    let errors = findings.filter(|finding| finding["severity"] == "error");
    let errors: Vec<_> = errors
        .map(|finding| {
            format!(
                "{}: {}",
                finding["where"].as_str().unwrap_or_default(),
                finding["what"].as_str().unwrap_or_default()
            )
        })
        .collect();
    let sound = output["sound"] == true;
    ensure!(
        code == Some(i32::from(!sound)),
        "exit code {code:?} of an installation with sound: {sound}"
    );
    Ok(Verdict { sound, errors })
}

/// A complete installation has no errors. For an incomplete one, the missing verb or kind is reported.
pub(crate) async fn doctor(site: &Site) -> anyhow::Result<()> {
    let federation = Box::pin(Federation::start(
        site,
        "doctor",
        Plan {
            members: 1,
            ..Plan::default()
        },
    ))
    .await?;
    federation.apply_example("nginx-divided", DIVIDED)?;
    federation.apply_role("all")?;
    let all: Vec<_> = ["--mode=all", "--as", ACCOUNT]
        .into_iter()
        .chain(QUICK.iter().copied())
        .collect();
    let sound = ask(&federation, &all)?;
    ensure!(sound.sound, "a sound installation has errors: {:?}", sound.errors);

    federation.take_verb("all", "clusters/status", "cluster.karmada.io", "update")?;
    let lacking = ask(&federation, &all)?;
    let names = |errors: &[String], place: &str| errors.iter().any(|error| error.starts_with(place));
    ensure!(
        lacking.errors.len() == 1 && names(&lacking.errors, "update clusters/status.cluster.karmada.io"),
        "{:?}",
        lacking.errors
    );
    federation.apply_role("all")?;

    federation.kubectl(&["delete", "crd", "evictionpauses.bulkhead.dev"])?;
    let lacking = ask(&federation, &all)?;
    ensure!(
        names(
            &lacking.errors,
            "evictionpauses.bulkhead.dev: the control plane does not serve"
        ),
        "{:?}",
        lacking.errors
    );

    // Another mode on the same Lease, and an unreachable control plane.
    let other = ask(&federation, &["--mode=finish"])?;
    ensure!(
        names(&other.errors, "Lease karmada-system/bulkhead"),
        "{:?}",
        other.errors
    );
    let nowhere = federation.hub.kubeconfig_for("https://127.0.0.1:1")?;
    let (code, text) = federation.bulkhead_with_code(&["doctor", "--kubeconfig", &nowhere.display().to_string()])?;
    ensure!(code == Some(2) && text.contains("does not answer"), "{code:?}: {text}");
    Ok(())
}

/// Without one of its verbs, each mode reports that verb, is not ready if the verb is a read, and recovers once it is
/// granted.
pub(crate) async fn roles(site: &Site) -> anyhow::Result<()> {
    let mut federation = Box::pin(Federation::start(
        site,
        "roles",
        Plan {
            members: 0,
            ..Plan::default()
        },
    ))
    .await?;
    // `bulkhead join` would create this namespace; the role of mode all includes a Role there.
    federation.kubectl(&["create", "namespace", "karmada-cluster"])?;
    for (mode, resource, group, verb) in LACKING {
        federation.apply_role(mode)?;
        federation.take_verb(mode, resource, group, verb)?;
        let webhook: &[&str] = if *mode == "interpret" {
            &["--webhook-bind-address=127.0.0.1:0"]
        } else {
            &[]
        };
        federation.start_bulkhead_as_account(mode, webhook).await?;
        let number = federation.processes().len() - 1;
        let missing = format!("missing permission: {verb} {resource}.{group}");
        wait_for_line(&mut federation, number, &missing).await?;
        if *verb == "list" {
            let ready = federation.readiness(number).await?;
            ensure!(
                ready.contains("not ready") && ready.contains(resource),
                "{mode}: {ready}"
            );
            federation.apply_role(mode)?;
            wait::until("it is ready with its whole role", Duration::from_mins(1), async || {
                let ready = federation.readiness(number).await.map_err(|error| error.to_string())?;
                if ready == "ok\n" { Ok(()) } else { Err(ready) }
            })
            .await?;
        } else if *mode != "all" {
            // The first process leads in mode all.
            wait_for_line(
                &mut federation,
                number,
                &format!("in mode all, and this process runs in mode {mode}"),
            )
            .await?;
        }
        if let Some(process) = federation.processes().get_mut(number) {
            process.kill();
        }
        federation.remove_role(mode)?;
    }
    Ok(())
}

/// Waits until the log of a process contains a text.
pub(crate) async fn wait_for_line(federation: &mut Federation<'_>, process: usize, part: &str) -> anyhow::Result<()> {
    let what = format!("process {process} says {part:?}");
    wait::until(&what, Duration::from_mins(1), async || {
        let process = federation.processes().get(process).ok_or("there is no such process")?;
        let said = std::fs::read_to_string(process.log()).map_err(|error| error.to_string())?;
        if said.contains(part) {
            Ok(())
        } else {
            Err(said.lines().last().unwrap_or_default().to_owned())
        }
    })
    .await?;
    Ok(())
}
