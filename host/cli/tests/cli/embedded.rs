//! `bulkhead run --embedded`: use with kubectl, and recovery after a kill.

mod propagation;
mod refusals;
mod takeover;
mod traces;

use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::bulkhead;
use crate::transcript::{self, Outcome};

/// Timeout of every wait, long enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// Running process with a folder of its own, which is killed on drop.
pub(crate) struct Program {
    child: Child,
    folder: PathBuf,
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Program {
    /// Starts a command, with its log in a folder.
    pub(crate) fn spawn(folder: &Path, arguments: &[&str]) -> Self {
        Self::spawn_with(folder, arguments, &[])
    }

    /// Starts a command with environment variables.
    fn spawn_with(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        std::fs::create_dir_all(folder).unwrap();
        let log = File::create(folder.join("log")).unwrap();
        let mut command = bulkhead();
        command
            .args(arguments)
            .envs(variables.iter().copied())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .stdin(Stdio::null());
        Self {
            child: command.spawn().unwrap(),
            folder: folder.to_path_buf(),
        }
    }

    /// Starts a control plane, and waits for its kubeconfig and readiness.
    pub(crate) fn start(folder: &Path, arguments: &[&str]) -> Self {
        Self::start_with(folder, arguments, &[])
    }

    /// Starts a control plane like [`Self::start`], with environment variables.
    pub(crate) fn start_with(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let kubeconfig = folder.join("kubeconfig");
        let _ = std::fs::remove_file(&kubeconfig);
        let kubeconfig = kubeconfig.display().to_string();
        let of_run = [
            "run",
            "--embedded",
            "--health-probe-bind-address=127.0.0.1:0",
            "--write-kubeconfig",
            &kubeconfig,
        ];
        let mut embedded = Self::spawn_with(folder, &[&of_run[..], arguments].concat(), variables);
        embedded.until("it serves", |embedded| {
            embedded.kubeconfig().exists() && embedded.kubectl(&["get", "--raw", "/readyz"]).status.success()
        });
        embedded
    }

    /// Waits until the members are ready, and applies files of the example `nginx-divided`.
    pub(crate) fn apply_example(&self, files: &[&str]) {
        self.kubectl_output(&["wait", "--for=condition=Ready", "cluster", "--all", "--timeout=60s"]);
        for file in files {
            let path = root().join("examples/nginx-divided").join(file);
            self.kubectl_output(&["apply", "-f", &path.display().to_string()]);
        }
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.folder.join("kubeconfig")
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.join("log")).unwrap()
    }

    /// Returns the metrics in the format that a client with this `Accept` header gets.
    pub(crate) fn scrape(&self, accept: &str) -> Option<String> {
        let log = self.log();
        let address = log
            .lines()
            .find_map(|line| line.split("health and metrics at http://").nth(1))?;
        let mut stream = TcpStream::connect(address.trim()).ok()?;
        stream
            .write_all(format!("GET /metrics HTTP/1.0\r\nAccept: {accept}\r\n\r\n").as_bytes())
            .ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        text.split_once("\r\n\r\n").map(|(_, body)| body.to_owned())
    }

    fn kubectl(&self, arguments: &[&str]) -> Output {
        let cache = self.folder.join("cache");
        let mut command = Command::new("kubectl");
        command
            .arg("--kubeconfig")
            .arg(self.kubeconfig())
            .args(arguments)
            .env("KUBECACHEDIR", cache);
        command.output().unwrap()
    }

    /// Returns the output of a kubectl command that has to succeed.
    #[track_caller]
    pub(crate) fn kubectl_output(&self, arguments: &[&str]) -> String {
        let output = self.kubectl(arguments);
        let (message, complaint) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        assert!(
            output.status.success(),
            "kubectl {arguments:?}: {message}{complaint}\n{}",
            self.log()
        );
        message.into_owned()
    }

    /// Polls until a condition holds.
    #[track_caller]
    #[expect(clippy::disallowed_methods, reason = "it waits for another process")]
    pub(crate) fn until(&mut self, what: &str, holds: impl Fn(&Self) -> bool) {
        let started = Instant::now();
        while !holds(self) {
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "it ended with {ended:?}:\n{}", self.log());
            assert!(
                started.elapsed() < PATIENCE,
                "not within {PATIENCE:?}: {what}\n{}",
                self.log()
            );
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// Stops the process with SIGTERM. Returns its exit code.
    pub(crate) fn stop(mut self) -> Option<i32> {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        self.child.wait().unwrap().code()
    }
}

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}

/// Creates the folder of a test, empty.
pub(crate) fn folder(name: &str) -> PathBuf {
    crate::folder(&format!("embedded/{name}"))
}

/// Returns true if kubectl is installed; prints that the test is skipped otherwise.
pub(crate) fn has_kubectl(test: &str) -> bool {
    let found = Command::new("kubectl")
        .args(["version", "--client"])
        .output()
        .is_ok_and(|output| output.status.success());
    if !found {
        eprintln!("skipped: {test} needs kubectl");
    }
    found
}

#[test]
fn kubectl_works_as_against_any_cluster() {
    if !has_kubectl("kubectl_works_as_against_any_cluster") {
        return;
    }
    let embedded = Program::start(&folder("transcript"), &["--members", "1"]);
    let steps = transcript::steps(root());
    assert!(steps.len() > 70, "the transcript has {} commands", steps.len());
    let outcomes = transcript::run(root(), &steps, &embedded.kubeconfig(), &embedded.folder.join("cache"));
    let shown = |outcome: &Outcome| {
        let Outcome {
            command,
            code,
            output,
            problems,
        } = outcome;
        format!("$ {command}\n{output}=> {code:?}: {}\n", problems.join("; "))
    };
    let failed: Vec<_> = outcomes
        .iter()
        .filter(|outcome| !outcome.problems.is_empty())
        .map(shown)
        .collect();
    assert!(
        failed.is_empty(),
        "{} of {} commands failed:\n{}",
        failed.len(),
        steps.len(),
        failed.join("\n")
    );
    assert_eq!(embedded.stop(), Some(0));
}

/// Settings of a failover that takes seconds.
pub(crate) const FAILOVER: &[&str] = &[
    "--feature-gates=Failover=true",
    "--enable-no-execute-taint-eviction",
    "--allow-no-execute-taint-policy",
    "--cluster-status-update-frequency=1s",
    "--cluster-failure-threshold=2s",
    "--cluster-success-threshold=2s",
    "--resource-eviction-rate=100",
];

#[test]
fn a_lost_member_is_failed_over_in_real_time_and_a_killed_process_goes_on() {
    if !has_kubectl("a_lost_member_is_failed_over_in_real_time_and_a_killed_process_goes_on") {
        return;
    }
    let folder = folder("failover");
    let data = folder.join("data").display().to_string();
    let arguments = [FAILOVER, &["--data-dir", &data]].concat();
    let mut embedded = Program::start(&folder, &arguments);
    embedded.apply_example(&["taint-policy.yaml", "policy.yaml", "nginx.yaml"]);
    let placed = |embedded: &Program| {
        let path = "jsonpath={range .spec.clusters[*]}{.name}={.replicas} {end}";
        let binding = embedded.kubectl(&["get", "resourcebinding", "nginx-deployment", "-o", path]);
        String::from_utf8_lossy(&binding.stdout).into_owned()
    };
    embedded.until("the replicas are divided", |embedded| {
        placed(embedded).split_whitespace().count() == 2
    });
    embedded.until("member1 runs its share", |embedded| {
        let pods = embedded.kubectl(&["--context", "member1", "get", "pods", "--no-headers"]);
        String::from_utf8_lossy(&pods.stdout).contains("Running")
    });

    // After a kill without warning, acknowledged objects are still there and resource versions continue.
    let version = |embedded: &Program| -> u64 {
        let list: Value =
            serde_json::from_str(&embedded.kubectl_output(&["get", "--raw", "/api/v1/namespaces"])).unwrap();
        list["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
    };
    let uid =
        |embedded: &Program| embedded.kubectl_output(&["get", "deployment", "nginx", "-o", "jsonpath={.metadata.uid}"]);
    let pods = |embedded: &Program| embedded.kubectl_output(&["--context", "member2", "get", "pods", "-o", "name"]);
    let before = (uid(&embedded), pods(&embedded), version(&embedded));
    drop(embedded);
    let mut embedded = Program::start(&folder, &arguments);
    assert_eq!((uid(&embedded), pods(&embedded)), (before.0, before.1));
    assert!(version(&embedded) >= before.2);
    assert_eq!(placed(&embedded).split_whitespace().count(), 2);

    embedded.kubectl_output(&["wait", "--for=condition=Ready", "cluster", "--all", "--timeout=60s"]);
    embedded.kubectl_output(&[
        "annotate",
        "cluster",
        "member1",
        "simulation.bulkhead.dev/state=unreachable",
    ]);
    embedded.until("all replicas are on member2", |embedded| {
        placed(embedded).trim() == "member2=3"
    });
    assert!(
        !embedded
            .kubectl(&["--context", "member1", "get", "pods"])
            .status
            .success()
    );
    let top = bulkhead()
        .args(["top", "--once", "-o", "json", "--kubeconfig"])
        .arg(embedded.kubeconfig())
        .output()
        .unwrap();
    let view: Value = serde_json::from_slice(&top.stdout).unwrap();
    assert_eq!(view["clusters"][0]["name"], "member1", "{view}");
    assert_ne!(view["clusters"][0]["ready"], "True", "{view}");
    assert_eq!(view["clusters"][1]["replicas"], 3, "{view}");
    assert_eq!(embedded.stop(), Some(0));
}

/// Returns a metric of the process, by its full name with labels.
pub(crate) fn metric(embedded: &Program, name: &str) -> Option<f64> {
    embedded
        .scrape("text/plain")?
        .lines()
        .find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
}

#[test]
fn a_broken_freeze_plugin_holds_evictions_after_a_start_until_it_loads() {
    if !has_kubectl("a_broken_freeze_plugin_holds_evictions_after_a_start_until_it_loads") {
        return;
    }
    let folder = folder("broken-plugin");
    let plugins = folder.join("plugins");
    std::fs::create_dir_all(&plugins).unwrap();
    let freeze = plugins.join("freeze.lua");
    std::fs::write(&freeze, "function EvictionCheck(binding, task, observed, now) retrun").unwrap();
    let directory = plugins.display().to_string();
    let arguments = [FAILOVER, &["--plugin-directory", &directory]].concat();
    let mut embedded = Program::start(&folder, &arguments);
    embedded.apply_example(&["policy.yaml", "nginx.yaml"]);
    let field = |embedded: &Program, path: &str| {
        let path = format!("jsonpath={path}");
        let binding = embedded.kubectl(&["get", "resourcebinding", "nginx-deployment", "-o", &path]);
        String::from_utf8_lossy(&binding.stdout).into_owned()
    };
    let healthy = |embedded: &Program| field(embedded, "{.status.aggregatedStatus[*].health}");
    embedded.until("both copies are healthy", |embedded| {
        healthy(embedded).trim() == "Healthy Healthy"
    });
    let drained = bulkhead()
        .args(["drain", "member1", "--kubeconfig"])
        .arg(embedded.kubeconfig())
        .output()
        .unwrap();
    assert!(drained.status.success(), "{}", String::from_utf8_lossy(&drained.stderr));
    let tasks = |embedded: &Program| field(embedded, "{.spec.gracefulEvictionTasks[*].fromCluster}");
    embedded.until("its replicas are on member2", |embedded| {
        tasks(embedded) == "member1"
            && field(
                embedded,
                "{.status.aggregatedStatus[?(@.clusterName==\"member2\")].status.availableReplicas}",
            ) == "3"
    });
    // The eviction is decided again several times with a healthy replacement, and held each time.
    let faults = |embedded: &Program| {
        metric(
            embedded,
            "bulkhead_plugin_faults_total{plugin=\"freeze\",kind=\"eviction-check\"}",
        )
        .unwrap_or(0.0)
    };
    let before = faults(&embedded);
    embedded.until("the plugin was asked", |embedded| faults(embedded) >= before + 2.0);
    assert_eq!(
        tasks(&embedded),
        "member1",
        "released without the plugin:\n{}",
        embedded.log()
    );
    let message =
        "plugin freeze is not active; until it is, every eviction-check call is a fault; the newest version was";
    assert!(embedded.log().contains(message), "{}", embedded.log());
    assert_eq!(
        metric(&embedded, "bulkhead_plugin_loaded{plugin=\"freeze\"}"),
        Some(0.0)
    );
    std::fs::write(
        &freeze,
        "function EvictionCheck(binding, task, observed, now) return { verdict = \"abstain\" } end",
    )
    .unwrap();
    embedded.until("the old copy is released", |embedded| tasks(embedded).is_empty());
    assert_eq!(embedded.stop(), Some(0));
}

#[test]
fn a_paused_namespace_is_drained_after_the_resume_and_not_before() {
    if !has_kubectl("a_paused_namespace_is_drained_after_the_resume_and_not_before") {
        return;
    }
    let folder = folder("pause");
    let journal = folder.join("journal").display().to_string();
    let arguments = [FAILOVER, &["--journal", &journal]].concat();
    let mut embedded = Program::start(&folder, &arguments);
    embedded.apply_example(&["policy.yaml", "nginx.yaml"]);
    let clusters = |embedded: &Program| {
        let path = "jsonpath={.spec.clusters[*].name}";
        let binding = embedded.kubectl(&["get", "resourcebinding", "nginx-deployment", "-o", path]);
        String::from_utf8_lossy(&binding.stdout).into_owned()
    };
    embedded.until("it is on both clusters", |embedded| {
        clusters(embedded).split_whitespace().count() == 2
    });
    let run = |embedded: &Program, words: &[&str]| {
        let output = bulkhead()
            .args(words)
            .arg("--kubeconfig")
            .arg(embedded.kubeconfig())
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{words:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let paused = run(&embedded, &["pause", "-n", "default", "--reason", "quarter end"]);
    assert!(
        paused.starts_with("EvictionPause namespace-default holds evictions of namespace default"),
        "{paused}"
    );
    run(&embedded, &["drain", "member1"]);
    embedded.until("the eviction waits", |_| {
        let output = bulkhead()
            .args(["history", "--decision", "EvictionsWait", "--journal", &journal])
            .output();
        String::from_utf8_lossy(&output.unwrap().stdout).contains("EvictionPaused")
    });
    assert!(
        clusters(&embedded).contains("member1"),
        "evicted in spite of the pause:\n{}",
        embedded.log()
    );
    let waiting = || {
        let output = bulkhead()
            .args(["explain", "--waiting", "--journal", &journal])
            .output();
        String::from_utf8_lossy(&output.unwrap().stdout).into_owned()
    };
    let waits = waiting();
    for line in [
        "ResourceBinding default/nginx-deployment on member1 waits to leave",
        "  opens  the deletion or the end of the EvictionPause",
    ] {
        assert!(waits.lines().any(|found| found == line), "{waits}");
    }
    let resumed = run(&embedded, &["resume", "-n", "default"]);
    assert!(resumed.contains("can evict now: drain of member1"), "{resumed}");
    embedded.until("the cluster is empty", |embedded| clusters(embedded) == "member2");
    assert!(!waiting().contains("EvictionPaused"), "{}", waiting());
    assert_eq!(embedded.stop(), Some(0));
}
