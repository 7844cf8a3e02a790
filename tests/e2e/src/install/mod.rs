//! A release on real control planes, from nothing but its files: by chart with an upgrade and a rollback in a storm of
//! evictions, then by kustomize with a failover.

mod pods;
mod service;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::{Map, Value, json};

use self::pods::{Images, NAMESPACE, Pods};
use crate::faults::some_left;
use crate::federation::{Federation, QUICK};
use crate::losses::{BINDING, DIVIDED};
use crate::site::Site;
use crate::{storm, wait};

/// Number of Deployments to evict, one per second, so that the storm lasts longer than the changes of versions.
const DEPLOYMENTS: usize = 120;
const RATE: &str = "--resource-eviction-rate=1";
/// Numbers of bindings that have left when the version changes: upgrade, rollback, upgrade.
const CHANGES_AT: [usize; 3] = [4, 24, 48];
/// Time limit for a leader to be elected and to answer.
const ELECTED_MAX: Duration = Duration::from_mins(1);
/// Tag of the previous version's image.
const PREVIOUS_TAG: &str = "previous";

/// Release to install, and the version before it.
#[derive(clap::Args)]
pub(crate) struct Release {
    /// Folder with the files of the release.
    folder: PathBuf,
    /// Version of the release.
    #[arg(long)]
    tag: String,
    /// Repository of the image that its chart and its kustomize folders name.
    #[arg(long)]
    repository: String,
    /// Reference of its image in a registry, with a digest.
    #[arg(long)]
    image: String,
    /// Folder with the unpacked image: `root` and `config.json`.
    #[arg(long)]
    image_files: PathBuf,
    /// Reference of its chart in a registry.
    #[arg(long)]
    chart: String,
    /// Folder with an image of the previous version.
    #[arg(long)]
    previous: PathBuf,
    /// Checkout of the previous version.
    #[arg(long)]
    previous_root: PathBuf,
}

/// Runs the scenario, and prints its figures. Returns true if it passed.
pub(crate) async fn run(site: &Site, release: &Release) -> anyhow::Result<bool> {
    let started = Instant::now();
    let previous = release.previous.join("root/usr/local/bin/bulkhead");
    let previous = site.of_version(&previous, &release.previous_root)?;
    let outcome = Box::pin(installed(site, &previous, release)).await;
    let seconds = started.elapsed().as_secs();
    match outcome {
        Ok(()) => println!("ok    installed by chart and by kustomize, upgraded and rolled back ({seconds} s)"),
        Err(error) => {
            println!(
                "FAIL  installation ({seconds} s)\n      {error:#}\nlogs in {}",
                site.logs().display()
            );
            return Ok(false);
        }
    }
    Ok(true)
}

async fn installed(site: &Site, previous: &Site, release: &Release) -> anyhow::Result<()> {
    let mut federation = Box::pin(Federation::start_planes(previous, "install", 2, &[])).await?;
    let images = Images::from([
        (format!("bulkhead:{PREVIOUS_TAG}"), release.previous.clone()),
        (release.image.clone(), release.image_files.clone()),
    ]);
    let mut pods = Pods::new(images, federation.logs().join("pods")).await?;
    for namespace in [NAMESPACE, "karmada-cluster"] {
        federation.kubectl(&["create", "namespace", namespace])?;
    }
    let helm = Helm::new(site, &federation, release)?;
    by_chart(site, &mut federation, &mut pods, &helm).await?;
    by_kustomize(&mut federation, &mut pods, release).await
}

/// Installs the previous version, upgrades it in a storm of evictions, rolls back, and upgrades again.
async fn by_chart<'s>(
    site: &'s Site,
    federation: &mut Federation<'s>,
    pods: &mut Pods,
    helm: &Helm<'_>,
) -> anyhow::Result<()> {
    federation.apply_definitions()?;
    helm.previous()?;
    pods.follow(federation).await?;
    federation.join_all(&[]).await?;
    println!("      the previous version is installed by its chart");
    // Without the webhook, policies have no ids and apply to nothing.
    federation
        .apply_example_when_admitted("nginx-divided", &["taint-policy.yaml"])
        .await?;
    storm::prepare(federation, DEPLOYMENTS).await?;
    let recorder = storm::Recorder::start(&federation.client, "member1");
    federation.member("member1")?.kill_api_server();
    for (position, count) in CHANGES_AT.into_iter().enumerate() {
        some_left(federation, count).await?;
        let begun = Instant::now();
        let change = if position == 1 {
            helm.run(&["rollback", "bulkhead", "1"])?;
            "rolled back"
        } else {
            // Definitions first, from the files of the release: Helm does not change them.
            federation.switch_to(site);
            helm.definitions(federation)?;
            helm.current()?;
            "upgraded"
        };
        pods.follow(federation).await?;
        let left = storm::left(&federation.client, "member1").await?;
        println!(
            "      {change} in {:.0} s, after {count} and before {left} of {DEPLOYMENTS} had left",
            begun.elapsed().as_secs_f32()
        );
        ensure!(left < DEPLOYMENTS, "the storm ended before the change did");
        if position != 1 {
            // After a change of the leader, the Lease has no address until the next one is elected.
            wait::until("the leader answers kubectl bulkhead top", ELECTED_MAX, async || {
                top(site, federation).map_err(|error| format!("{error:#}"))
            })
            .await?;
        }
    }
    storm::everything_on(&federation.client, DEPLOYMENTS, "member2").await?;
    recorder.check(DEPLOYMENTS, DEPLOYMENTS).await?;
    recorder.check_replaced()?;
    let revisions = helm.run(&["history", "bulkhead", "-o", "json"])?;
    let revisions: Value = serde_json::from_str(&revisions)?;
    let count = revisions.as_array().map_or(0, Vec::len);
    ensure!(count == 4, "helm history has {count} revisions: {revisions}");
    federation.member("member1")?.start_api_server().await?;
    federation.wait_ready("member1", true).await?;
    for number in [0, DEPLOYMENTS - 1] {
        federation
            .wait_deployed("member1", &format!("app-{number}"), None)
            .await?;
    }
    pods.check()?;
    helm.run(&["uninstall", "bulkhead"])?;
    pods.remove().await
}

/// Installs the release from its kustomize folders. A member is lost, and its workload moves.
async fn by_kustomize(federation: &mut Federation<'_>, pods: &mut Pods, release: &Release) -> anyhow::Result<()> {
    let folder = federation.logs().join("kustomize");
    fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    let name = format!("bulkhead-{}-kustomize", release.tag);
    let archive = release.folder.join(format!("{name}.tar.gz"));
    let status = Command::new("tar")
        .arg("-xzf")
        .arg(&archive)
        .current_dir(&folder)
        .status();
    ensure!(
        status.context("starting tar")?.success(),
        "unpacking {} failed",
        archive.display()
    );
    let (repository, digest) = release.image.split_once('@').context("the image has no digest")?;
    let add = |flag: &&str| json!({"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": flag});
    let components = ["journal", "webhook"].map(|part| format!("../{name}/kustomize/{part}"));
    let overlay = json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [format!("../{name}/kustomize/in-cluster")],
        "components": components,
        "images": [{"name": release.repository, "newName": repository, "digest": digest}],
        "patches": [{
            "target": {"kind": "Deployment", "name": "bulkhead"},
            "patch": Value::from(QUICK.iter().map(add).collect::<Vec<_>>()).to_string(),
        }],
    });
    let path = folder.join("overlay");
    fs::create_dir_all(&path)?;
    fs::write(path.join("kustomization.yaml"), overlay.to_string()).context("writing the overlay")?;
    federation.kubectl(&["apply", "-k", &path.display().to_string()])?;
    pods.follow(federation).await?;
    federation.wait_ready("member1", true).await?;
    println!("      the release is installed by kustomize");
    federation.apply_example_when_admitted("nginx-divided", DIVIDED).await?;
    federation
        .wait_placed(BINDING, &[("member1", 1), ("member2", 2)])
        .await?;
    federation.member("member1")?.kill_api_server();
    let lost = Instant::now();
    federation.wait_placed(BINDING, &[("member2", 3)]).await?;
    println!(
        "      a workload moved within {:.0} s of the loss",
        lost.elapsed().as_secs_f32()
    );
    // The Deployments of the storm stay where they are.
    let left = storm::left(&federation.client, "member2").await?;
    ensure!(left == 0, "{left} bindings left member2");
    pods.check()?;
    pods.remove().await
}

/// Runs `kubectl bulkhead top` with the program of the release as plugin of kubectl.
fn top(site: &Site, federation: &Federation<'_>) -> anyhow::Result<()> {
    let folder = federation.logs().join("plugin");
    fs::create_dir_all(&folder)?;
    let link = folder.join("kubectl-bulkhead");
    if !link.exists() {
        std::os::unix::fs::symlink(&site.program, &link).context("linking the plugin")?;
    }
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("kubectl")
        .args(["bulkhead", "top", "--once", "-o", "json", "--kubeconfig"])
        .arg(federation.hub.kubeconfig())
        .env("PATH", format!("{}:{path}", folder.display()))
        .output()
        .context("starting kubectl")?;
    let (text, errors) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    ensure!(output.status.success(), "kubectl bulkhead top: {text}{errors}");
    let view: Value = serde_json::from_str(&text).with_context(|| format!("kubectl bulkhead top: {text}"))?;
    let names: Vec<_> = view["clusters"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|row| &row["name"])
        .collect();
    ensure!(names == ["member1", "member2"], "kubectl bulkhead top shows {names:?}");
    let problem = &view["queueProblem"];
    let queued = view["queued"].as_array();
    let queued = queued.with_context(|| format!("kubectl bulkhead top shows no queue of the leader: {problem}"))?;
    println!(
        "      kubectl bulkhead top: {} clusters, {} evictions queued, {} in progress",
        names.len(),
        queued.len(),
        view["tasks"].as_array().map_or(0, Vec::len)
    );
    Ok(())
}

/// Helm on the hub, with folders of its own.
struct Helm<'r> {
    program: PathBuf,
    kubeconfig: PathBuf,
    folder: PathBuf,
    release: &'r Release,
}

impl<'r> Helm<'r> {
    fn new(site: &Site, federation: &Federation<'_>, release: &'r Release) -> anyhow::Result<Self> {
        let folder = federation.logs().join("helm");
        fs::create_dir_all(&folder)?;
        Ok(Self {
            program: site.servers.programs.join("helm"),
            kubeconfig: federation.hub.kubeconfig(),
            folder,
            release,
        })
    }

    /// Installs the chart of the previous version's checkout.
    fn previous(&self) -> anyhow::Result<()> {
        let chart = self.release.previous_root.join("host/deploy/chart");
        let values = self.values("previous", &json!({"image": {"tag": PREVIOUS_TAG}}))?;
        self.run(&["install", "bulkhead", &text(&chart), "--values", &values])
            .map(drop)
    }

    /// Applies the definitions of the release: those of `bulkhead.dev` from its file, and Karmada's from its program.
    fn definitions(&self, federation: &Federation<'_>) -> anyhow::Result<()> {
        let name = format!("bulkhead-{}-crds.yaml", self.release.tag);
        let file = text(&self.release.folder.join(name));
        federation.kubectl(&["apply", "--server-side", "-f", &file])?;
        federation.apply_definitions()
    }

    /// Upgrades to the chart of the release in the registry, whose image the registry has too. The values of the
    /// previous version stay, as on the page about upgrades.
    fn current(&self) -> anyhow::Result<()> {
        let (repository, _) = self.release.image.split_once('@').context("the image has no digest")?;
        let more = json!({"image": {"repository": repository}, "queries": {"enabled": true}});
        let values = self.write("current", &more)?;
        let (chart, version) = (&self.release.chart, &self.release.tag);
        let arguments = [
            "upgrade",
            "bulkhead",
            chart,
            "--version",
            version,
            "--plain-http",
            "--reset-then-reuse-values",
            "--values",
        ];
        self.run(&[&arguments[..], &[&values]].concat()).map(drop)
    }

    /// Writes the values of an installation, and returns the path.
    fn values(&self, name: &str, more: &Value) -> anyhow::Result<String> {
        let flags = QUICK[..QUICK.len() - 1].iter().chain([&RATE]);
        let settings = flags.map(|flag| {
            let flag = flag.trim_start_matches("--");
            let (name, value) = flag.split_once('=').unwrap_or((flag, "true"));
            (name.to_owned(), json!(value))
        });
        let mut values = json!({
            "mode": "all",
            "controlPlane": {"inCluster": true},
            "webhook": {"enabled": true},
            "settings": settings.collect::<Map<_, _>>(),
        });
        if let (Value::Object(values), Value::Object(more)) = (&mut values, more) {
            values.extend(more.clone());
        }
        self.write(name, &values)
    }

    /// Writes values into a file, and returns its path.
    fn write(&self, name: &str, values: &Value) -> anyhow::Result<String> {
        let path = self.folder.join(format!("{name}.json"));
        fs::write(&path, values.to_string()).with_context(|| format!("writing {}", path.display()))?;
        Ok(text(&path))
    }

    fn run(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let output = Command::new(&self.program)
            .args(arguments)
            .args(["--namespace", NAMESPACE, "--kubeconfig"])
            .arg(&self.kubeconfig)
            .envs(["CACHE", "CONFIG", "DATA"].map(|kind| (format!("HELM_{kind}_HOME"), self.folder.join(kind))))
            .output()
            .context("starting helm")?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "helm {}: {errors}", arguments.join(" "));
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

fn text(path: &Path) -> String {
    path.display().to_string()
}
