//! Comparison of kubectl commands on a real API server and on an embedded control plane.

use std::time::Duration;

use anyhow::ensure;

use crate::federation::{Federation, Plan};
use crate::process::Process;
use crate::site::Site;
use crate::transcript::{self, Outcome};
use crate::wait;

/// Runs the transcript on both servers and compares the outputs.
pub(crate) async fn compared(site: &Site) -> anyhow::Result<()> {
    let federation = Box::pin(Federation::start(
        site,
        "kubectl",
        Plan {
            members: 1,
            ..Plan::default()
        },
    ))
    .await?;
    let kubeconfig = federation.logs().join("kubeconfig-embedded");
    let arguments = [
        "run".to_owned(),
        "--embedded".to_owned(),
        "--members=1".to_owned(),
        "--health-probe-bind-address=127.0.0.1:0".to_owned(),
        format!("--write-kubeconfig={}", kubeconfig.display()),
    ];
    let _embedded = Process::start(&site.program, &arguments, federation.logs().join("embedded.log"))?;
    wait::until(
        "the embedded control plane serves",
        Duration::from_secs(30),
        async || {
            if kubeconfig.exists() {
                Ok(())
            } else {
                Err("there is no kubeconfig".to_owned())
            }
        },
    )
    .await?;
    let steps = transcript::steps(&site.root);
    let real = federation.hub.kubeconfig();
    let run = |kubeconfig: &std::path::Path, cache: &str| {
        transcript::run(&site.root, &steps, kubeconfig, &federation.logs().join(cache))
    };
    let (real, embedded) = (run(&real, "cache-real"), run(&kubeconfig, "cache-embedded"));
    let mut problems = Vec::new();
    for ((real, embedded), step) in real.iter().zip(&embedded).zip(&steps) {
        for (server, outcome) in [("real", real), ("embedded", embedded)] {
            let Outcome {
                command,
                output,
                problems: found,
                ..
            } = outcome;
            problems.extend(
                found
                    .iter()
                    .map(|problem| format!("$ {command}\n{server}: {problem}:\n{output}")),
            );
        }
        let (left, right) = (
            transcript::normalised(&real.output),
            transcript::normalised(&embedded.output),
        );
        if step.is_compared && (real.code, &left) != (embedded.code, &right) {
            problems.push(format!(
                "$ {}\nreal ({:?}):\n{left}\nembedded ({:?}):\n{right}",
                real.command, real.code, embedded.code
            ));
        }
    }
    ensure!(
        problems.is_empty(),
        "{} differences:\n{}",
        problems.len(),
        problems.join("\n\n")
    );
    Ok(())
}
