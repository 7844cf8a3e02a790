//! Stand-in for the controller of Deployments and for kubelet: processes as the pods of a Deployment describe them.
//!
//! Each pod has its own root folder with the files of its image, and the volumes, arguments, variables and user of its
//! specification. Pods share the network of this machine: each has a loopback address of its own, which takes the place
//! of 0.0.0.0, and the name of the Service is replaced by an address. Limits of resources and network policies are not
//! enforced. A process that ends is not restarted, and fails the scenario.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use rustix::process::Signal;
use serde_json::Value;

use super::service::{self, Service};
use crate::federation::{Federation, http_response};
use crate::process::Process;
use crate::wait;

/// Namespace of the Deployment.
pub(super) const NAMESPACE: &str = "karmada-system";
/// Folder of the account's token in a pod.
const ACCOUNT: &str = "var/run/secrets/kubernetes.io/serviceaccount";
/// Time limit for a pod to become ready, and to end.
const LIMIT: Duration = Duration::from_mins(1);

/// Folders of images by reference. Each has the files in `root`, and the configuration in `config.json`.
pub(super) type Images = BTreeMap<String, PathBuf>;

/// Pods of the Deployment `bulkhead`. Their processes end when this is dropped.
pub(super) struct Pods {
    images: Images,
    folder: PathBuf,
    service: Service,
    running: Vec<Pod>,
    /// Number of pods so far.
    started: u8,
}

struct Pod {
    /// Template that it was made from.
    template: Value,
    address: String,
    process: Process,
}

impl Pods {
    /// Prepares the pods of a federation, without any yet. They have their folders in `folder`.
    pub(super) async fn new(images: Images, folder: PathBuf) -> anyhow::Result<Self> {
        Ok(Self {
            images,
            folder,
            service: Service::start().await?,
            running: Vec::new(),
            started: 0,
        })
    }

    /// Replaces the pods by those of the Deployment as it is now: one more than its replicas at most, and each old one
    /// only when a new one has been ready for `minReadySeconds`.
    pub(super) async fn follow(&mut self, federation: &Federation<'_>) -> anyhow::Result<()> {
        let text = federation.kubectl(&["get", "deployment", "bulkhead", "-n", NAMESPACE, "-o", "json"])?;
        let deployment: Value = serde_json::from_str(&text)?;
        let spec = &deployment["spec"];
        let replicas = spec["replicas"].as_u64().context("the Deployment has no replicas")?;
        let settles = Duration::from_secs(spec["minReadySeconds"].as_u64().unwrap_or_default());
        let template = &spec["template"];
        let current = self.running.iter().filter(|pod| pod.template == *template).count();
        for _ in current as u64..replicas {
            let pod = self.start(federation, template).await?;
            self.service.add(&pod.address);
            self.running.push(pod);
            tokio::time::sleep(settles).await;
            if let Some(old) = self.running.iter().position(|pod| pod.template != *template) {
                let old = self.running.remove(old);
                self.service.remove(&old.address);
                end(old).await?;
            }
        }
        Ok(())
    }

    /// Ends all pods.
    pub(super) async fn remove(&mut self) -> anyhow::Result<()> {
        for pod in std::mem::take(&mut self.running) {
            self.service.remove(&pod.address);
            end(pod).await?;
        }
        Ok(())
    }

    /// Checks that no pod has ended by itself.
    pub(super) fn check(&mut self) -> anyhow::Result<()> {
        for pod in &mut self.running {
            ensure!(
                !pod.process.ended(),
                "{}: {}",
                pod.process.log().display(),
                pod.process.last_words()
            );
        }
        Ok(())
    }

    async fn start(&mut self, federation: &Federation<'_>, template: &Value) -> anyhow::Result<Pod> {
        self.started += 1;
        let (name, address) = (format!("pod-{}", self.started), format!("127.0.88.{}", self.started));
        let (spec, container) = (&template["spec"], &template["spec"]["containers"][0]);
        let image = text(&container["image"])?;
        let files = self
            .images
            .get(image)
            .with_context(|| format!("no image {image}; there are {:?}", self.images.keys()))?;
        let root = self.folder.join(&name).join("root");
        copy(&files.join("root"), &root)?;
        let user = Owner::of(&spec["securityContext"])?;
        for mount in list(&container["volumeMounts"]) {
            let volume = list(&spec["volumes"]).find(|volume| volume["name"] == mount["name"]);
            let volume = volume.with_context(|| format!("no volume {}", mount["name"]))?;
            fill(volume, &inside(&root, text(&mount["mountPath"])?), &user)?;
        }
        if spec["automountServiceAccountToken"] == true {
            account(
                federation,
                text(&spec["serviceAccountName"])?,
                &root.join(ACCOUNT),
                &user,
            )?;
        }
        let config = fs::read(files.join("config.json")).context("reading the configuration of the image")?;
        let config: Value = serde_json::from_slice(&config)?;
        let variables = variables(federation, container, &config, &address)?;
        let mut arguments = vec!["-i".to_owned()];
        arguments.extend(variables.iter().map(|(name, value)| format!("{name}={value}")));
        arguments.extend([
            chroot()?.to_owned(),
            format!("--userspec={}:{}", user.user, user.group),
            root.display().to_string(),
        ]);
        let entry = if container["command"].is_array() {
            &container["command"]
        } else {
            &config["config"]["Entrypoint"]
        };
        for part in list(entry).chain(list(&container["args"])) {
            let argument = expanded(text(part)?, &variables).replace("0.0.0.0", &address);
            arguments.push(argument.replace(service::NAME, &self.service.address));
        }
        let log = self.folder.join(format!("{name}.log"));
        let mut process = Process::start(Path::new("/usr/bin/env"), &arguments, log)?;
        let probe = &container["readinessProbe"]["httpGet"];
        let (path, port) = (text(&probe["path"])?, port(container, &probe["port"])?);
        let at = format!("{address}:{port}");
        wait::until(&format!("{name} with {image} is ready"), LIMIT, async || {
            if process.ended() {
                return Err(format!("it ended: {}", process.last_words()));
            }
            ready(&at, path).await.map_err(|error| format!("{error:#}"))
        })
        .await?;
        Ok(Pod {
            template: template.clone(),
            address,
            process,
        })
    }
}

/// User and group of the files and the process of a pod.
struct Owner {
    user: u32,
    group: u32,
}

impl Owner {
    fn of(context: &Value) -> anyhow::Result<Self> {
        let id = |field: &str| -> anyhow::Result<u32> {
            let id = context[field].as_u64().with_context(|| format!("no {field}"))?;
            Ok(u32::try_from(id)?)
        };
        let owner = Self {
            user: id("runAsUser")?,
            group: id("runAsGroup")?,
        };
        ensure!(
            owner.user != 0 && id("fsGroup")? == owner.group,
            "the pod runs as {}",
            owner.user
        );
        Ok(owner)
    }

    /// Gives a file or folder to root and the group, as kubelet does.
    fn grant(&self, path: &Path, mode: u32) -> anyhow::Result<()> {
        let about = || format!("changing owner and mode of {}, which needs root", path.display());
        chown(path, Some(0), Some(self.group)).with_context(about)?;
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).with_context(about)
    }
}

/// Ends a pod as kubelet does, and waits for its end.
async fn end(mut pod: Pod) -> anyhow::Result<()> {
    pod.process.signal(Signal::TERM)?;
    let log = pod.process.log().display().to_string();
    wait::until(&format!("the process of {log} ends"), LIMIT, async || {
        if pod.process.ended() {
            Ok(())
        } else {
            Err(pod.process.last_words())
        }
    })
    .await
    .map(drop)
}

/// Copies the files of an image, as links.
fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(to).with_context(|| format!("creating {}", to.display()))?;
    let status = Command::new("cp").arg("-al").arg(from.join(".")).arg(to).status();
    ensure!(
        status.context("starting cp")?.success(),
        "copying {} failed",
        from.display()
    );
    Ok(())
}

/// Creates the folder of a volume.
fn fill(volume: &Value, at: &Path, owner: &Owner) -> anyhow::Result<()> {
    ensure!(
        volume["emptyDir"].is_object(),
        "volume {} has a source that the stand-in does not know",
        volume["name"]
    );
    fs::create_dir_all(at).with_context(|| format!("creating {}", at.display()))?;
    owner.grant(at, 0o2777)
}

/// Writes token, authority and namespace of an account.
fn account(federation: &Federation<'_>, name: &str, at: &Path, owner: &Owner) -> anyhow::Result<()> {
    let token = federation.kubectl(&["create", "token", name, "-n", NAMESPACE])?;
    let authority = fs::read_to_string(federation.hub.certificate()).context("reading the certificate")?;
    fs::create_dir_all(at).with_context(|| format!("creating {}", at.display()))?;
    for (file, content) in [
        ("token", token.trim()),
        ("ca.crt", &authority),
        ("namespace", NAMESPACE),
    ] {
        fs::write(at.join(file), content).with_context(|| format!("writing {file}"))?;
        owner.grant(&at.join(file), 0o440)?;
    }
    owner.grant(at, 0o750)
}

/// Returns the variables of image, API server and container.
fn variables(
    federation: &Federation<'_>,
    container: &Value,
    config: &Value,
    address: &str,
) -> anyhow::Result<BTreeMap<String, String>> {
    let mut variables = BTreeMap::new();
    for variable in list(&config["config"]["Env"]) {
        let (name, value) = text(variable)?.split_once('=').context("a variable without a value")?;
        variables.insert(name.to_owned(), value.to_owned());
    }
    variables.insert("KUBERNETES_SERVICE_HOST".to_owned(), "127.0.0.1".to_owned());
    variables.insert("KUBERNETES_SERVICE_PORT".to_owned(), federation.hub.port().to_string());
    for variable in list(&container["env"]) {
        let name = text(&variable["name"])?;
        let value = match variable["valueFrom"]["fieldRef"]["fieldPath"].as_str() {
            Some("status.podIP") => address,
            Some(other) => bail!("variable {name} has the value of {other}, which the stand-in does not know"),
            None => text(&variable["value"])?,
        };
        variables.insert(name.to_owned(), value.to_owned());
    }
    Ok(variables)
}

/// Replaces `$(NAME)` by the value of a variable.
fn expanded(argument: &str, variables: &BTreeMap<String, String>) -> String {
    let replace = |text: String, (name, value): (&String, &String)| text.replace(&format!("$({name})"), value);
    variables.iter().fold(argument.to_owned(), replace)
}

/// Returns the number of a port of a container, which is given by name or by number.
fn port(container: &Value, port: &Value) -> anyhow::Result<u64> {
    let named = list(&container["ports"]).find(|named| named["name"] == *port);
    let number = named.map_or(port, |named| &named["containerPort"]);
    number.as_u64().with_context(|| format!("no port {port}"))
}

/// Asks an HTTP server, and returns an error unless the status is 200.
async fn ready(address: &str, path: &str) -> anyhow::Result<()> {
    let answer = http_response(address, path).await?;
    let status = answer.lines().next().unwrap_or_default();
    ensure!(status.split(' ').nth(1) == Some("200"), "{path} answers {status:?}");
    Ok(())
}

/// Returns the path of `chroot`. The variables of the pod have another search path.
fn chroot() -> anyhow::Result<&'static str> {
    let places = ["/usr/sbin/chroot", "/usr/bin/chroot"];
    let found = places.into_iter().find(|place| Path::new(place).exists());
    found.with_context(|| format!("no chroot in {places:?}"))
}

/// Returns a path of a pod as a path of this machine.
fn inside(root: &Path, path: &str) -> PathBuf {
    root.join(path.trim_start_matches('/'))
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> anyhow::Result<&str> {
    value.as_str().with_context(|| format!("{value} is no text"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn variables_in_arguments_are_replaced() {
        let variables = BTreeMap::from([("POD_IP".to_owned(), "127.0.88.1".to_owned())]);
        let url = expanded("--query-url=https://$(POD_IP):10371", &variables);
        assert_eq!(url, "--query-url=https://127.0.88.1:10371");
        assert_eq!(expanded("$(OTHER)", &variables), "$(OTHER)");
    }

    #[test]
    fn a_port_has_a_name_or_a_number() {
        let container = json!({"ports": [{"name": "metrics", "containerPort": 10370}]});
        assert_eq!(port(&container, &json!("metrics")).unwrap(), 10370);
        assert_eq!(port(&container, &json!(8080)).unwrap(), 8080);
        assert_eq!(
            port(&container, &json!("web")).unwrap_err().to_string(),
            "no port \"web\""
        );
    }

    #[test]
    fn a_pod_that_runs_as_root_is_refused() {
        let context = json!({"runAsUser": 0, "runAsGroup": 65532, "fsGroup": 65532});
        assert_eq!(Owner::of(&context).err().unwrap().to_string(), "the pod runs as 0");
        let error = Owner::of(&json!({"runAsUser": 65532})).err().unwrap().to_string();
        assert_eq!(error, "no runAsGroup");
    }
}
