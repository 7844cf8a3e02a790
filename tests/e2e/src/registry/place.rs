//! Registry of a scenario, with the keys and credentials of its users, and the tools that they run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail, ensure};
use kube::Config;
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256};
use serde_json::{Map, Value, json};

use crate::certificates::{Issued, issue};
use crate::command::{output, said};
use crate::control_plane::free_ports;
use crate::distribution::{Distribution, Protection};
use crate::site::{Site, set_aside};
use crate::tools::Tools;

/// `user:password` in base64.
const AUTH: &str = "dXNlcjpwYXNzd29yZA==";
/// The user `user` with the password `password`, in bcrypt.
const HTPASSWD: &str = "user:$2y$05$abcdefghijklmnopqrstuuWG29KuyeAicPCJODk1zjyGvyQUU2awu\n";
/// Names of the keys without a password.
const KEYS: [&str; 2] = ["team", "other"];
/// Password of the keys that cosign makes.
const KEY_PASSWORD: &str = "correct horse";
/// Size of a large component in bytes, as those in Python have.
const LARGE_BYTES: usize = 35 << 20;

/// A registry, and a folder with the files of its users: the keys `team` and `other`, and a trust file.
pub(super) struct Place<'s> {
    pub(super) registry: Distribution,
    site: &'s Site,
    tools: &'s Tools,
    folder: PathBuf,
    /// Certificate of the authority in DER.
    authority: Vec<u8>,
    /// Addresses at which the registry is reached.
    hosts: Vec<String>,
}

impl<'s> Place<'s> {
    /// Starts a registry. `name` is part of the name of its folder, which is among the logs.
    ///
    /// # Errors
    ///
    /// The tools are not named, or the registry does not start.
    pub(super) fn start(site: &'s Site, name: &str) -> anyhow::Result<Self> {
        let tools = site.registry_tools.as_ref().context("the tools are not named")?;
        let folder = site.logs().join(format!("registry-{name}"));
        if folder.exists() {
            set_aside(&folder, &site.logs().join(format!("registry-{name}-before")))?;
        }
        for part in ["registry", "docker", "cache"] {
            let path = folder.join(part);
            fs::create_dir_all(&path).with_context(|| format!("creating {}", path.display()))?;
        }
        let authority = certificates(&folder)?;
        let protection = Protection {
            certificate: folder.join("server.pem"),
            key: folder.join("server.key"),
            htpasswd: folder.join("htpasswd"),
        };
        fs::write(&protection.htpasswd, HTPASSWD).context("writing the passwords")?;
        let [port] = free_ports()?;
        let address = format!("127.0.0.1:{port}");
        let data = folder.join("registry");
        let registry = Distribution::start(&tools.registry, &data, &address, Some(&protection))?;
        let mut place = Self {
            registry,
            site,
            tools,
            folder,
            authority,
            hosts: Vec::new(),
        };
        for name in KEYS {
            let pair = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
            place.write(&format!("{name}.key"), pair.serialize_pem())?;
            place.write(&format!("{name}.pub"), pair.public_key_pem())?;
        }
        place.add_host(&address)?;
        Ok(place)
    }

    /// Adds an address of the registry to the credentials and to the rules of later trust files.
    pub(super) fn add_host(&mut self, host: &str) -> anyhow::Result<()> {
        self.hosts.push(host.to_owned());
        let of_host = |host: &String| (host.clone(), json!({"auth": AUTH}));
        let auths: Map<String, Value> = self.hosts.iter().map(of_host).collect();
        self.write("docker/config.json", json!({"auths": auths}).to_string())
    }

    /// Returns the configuration of a proxy in front of the registry.
    pub(super) fn upstream(&self) -> anyhow::Result<Config> {
        let mut config = Config::new(format!("https://{}", self.registry.address()).parse()?);
        config.root_cert = Some(vec![self.authority.clone()]);
        Ok(config)
    }

    /// Changes the password of the user: the credentials of all tools are rejected from then on.
    pub(super) fn replace_password(&self) -> anyhow::Result<()> {
        self.write("htpasswd", HTPASSWD.replace("user:", "another:"))
    }

    /// Restores the password of the user.
    pub(super) fn restore_password(&self) -> anyhow::Result<()> {
        self.write("htpasswd", HTPASSWD)
    }

    /// Returns the path of a file.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Returns the program `bulkhead`.
    pub(super) fn program(&self) -> &Path {
        &self.site.program
    }

    /// Writes a file.
    pub(super) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> anyhow::Result<()> {
        let path = self.path(name);
        fs::write(&path, content).with_context(|| format!("writing {}", path.display()))
    }

    /// Writes a trust file: one of the keys must have signed each image.
    pub(super) fn trust(&self, keys: &[&str]) -> anyhow::Result<()> {
        let of_key = |name: &&str| json!({"name": name, "file": format!("{name}.pub")});
        let keys: Vec<_> = keys.iter().map(of_key).collect();
        let rules: Vec<_> = self
            .hosts
            .iter()
            .map(|host| json!({"images": host, "keys": keys}))
            .collect();
        let file = json!({"apiVersion": "bulkhead.dev/v1alpha1", "kind": "PluginTrust", "rules": rules});
        self.write("trust.yaml", file.to_string())
    }

    /// Returns the reference of an image, such as `127.0.0.1:5000/plugins/hold:1`.
    pub(super) fn image(&self, rest: &str) -> String {
        format!("{}/{rest}", self.registry.address())
    }

    /// Writes an example component under a name, and returns its code.
    pub(super) fn guest(&self, guest: &str, name: &str) -> anyhow::Result<Vec<u8>> {
        let path = self.site.root.join("target/guests").join(format!("{guest}.wasm"));
        let code = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        self.write(name, &code)?;
        Ok(code)
    }

    /// Writes a component of 35 MB under a name.
    pub(super) fn large_guest(&self, name: &str) -> anyhow::Result<()> {
        let code = self.guest("deployment-health", name)?;
        self.write(name, padded(code, LARGE_BYTES))
    }

    /// Checks that two files have the same content.
    pub(super) fn check_equal(&self, one: &str, other: &str) -> anyhow::Result<()> {
        let read = |name: &str| {
            let path = self.path(name);
            fs::read(&path).with_context(|| format!("reading {}", path.display()))
        };
        ensure!(read(one)? == read(other)?, "{one} and {other} differ");
        Ok(())
    }

    /// Returns the arguments of `bulkhead` for the registry.
    pub(super) fn access(&self) -> [String; 3] {
        [
            ("registry-ca", "ca.pem"),
            ("registry-config", "docker/config.json"),
            ("image-cache", "cache"),
        ]
        .map(|(argument, file)| format!("--{argument}={}", self.path(file).display()))
    }

    /// Runs `bulkhead plugin`, and returns its output without the last line break.
    pub(super) fn bulkhead(&self, arguments: &[&str]) -> anyhow::Result<String> {
        Ok(output(&mut self.plugin_command(arguments), "")?.trim_end().to_owned())
    }

    /// Checks that `bulkhead plugin` ends with a code and a message.
    pub(super) fn fails(&self, arguments: &[&str], code: i32, message: &str) -> anyhow::Result<()> {
        let (found, text) = said(&mut self.plugin_command(arguments))?;
        ensure!(
            found == Some(code) && text.contains(message),
            "{arguments:?} ended with {found:?}, not with {code} and {message:?}: {text}"
        );
        Ok(())
    }

    fn plugin_command(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(&self.site.program);
        command.arg("plugin").args(arguments);
        // The other commands use no registry.
        if !matches!(arguments.first(), Some(&"new" | &"test")) {
            command.args(self.access());
        }
        command
    }

    /// Runs `oras`, and returns its output without the last line break.
    pub(super) fn oras(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let mut command = self.command(&self.tools.oras);
        command.args(arguments).args(["--ca-file", "ca.pem"]);
        command.args(["--registry-config", "docker/config.json"]);
        Ok(output(&mut command, "")?.trim_end().to_owned())
    }

    /// Returns the manifest of an image, as `oras` reads it.
    pub(super) fn manifest(&self, image: &str) -> anyhow::Result<Value> {
        let text = self.oras(&["manifest", "fetch", image])?;
        serde_json::from_str(&text).with_context(|| format!("the manifest of {image}: {text}"))
    }

    /// Runs a command of `cosign` that uses the registry.
    pub(super) fn cosign(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let mut command = self.command(&self.tools.cosign);
        output(command.args(arguments).args(["--registry-cacert", "ca.pem"]), "")
    }

    /// Creates a pair of keys with a password, `cosign.key` and `cosign.pub`.
    pub(super) fn make_cosign_key(&self) -> anyhow::Result<()> {
        let mut command = self.command(&self.tools.cosign);
        output(command.arg("generate-key-pair"), "").map(drop)
    }

    /// Runs `wkg oci`.
    pub(super) fn wkg(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let Some(program) = &self.tools.wkg else {
            bail!("the program wkg is not named");
        };
        let mut command = self.command(program);
        let authority = self.path("ca.pem");
        output(command.arg("oci").args(arguments).env("SSL_CERT_FILE", authority), "")
    }

    /// Returns a command in the folder, with the credentials of the registry and the password of the keys.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(&self.folder)
            .env("DOCKER_CONFIG", self.path("docker"))
            .env("COSIGN_PASSWORD", KEY_PASSWORD);
        command
    }

    /// Returns the number of complete downloads of a blob, from the log of the registry.
    pub(super) fn downloads(&self, repository: &str, digest: &str) -> anyhow::Result<usize> {
        let request = format!("\"GET /v2/{repository}/blobs/{digest} ");
        let log = self.registry.log()?;
        let of_blob = |line: &&str| line.contains(&request) && line.contains("\" 200 ");
        Ok(log.lines().filter(of_blob).count())
    }
}

/// Writes the certificate of an authority, and a certificate and a key of the registry. Returns the first in DER.
fn certificates(folder: &Path) -> anyhow::Result<Vec<u8>> {
    let Issued {
        authority,
        certificate,
        key,
    } = issue()?;
    let files = [
        ("ca.pem", authority.pem()),
        ("server.pem", certificate.pem()),
        ("server.key", key.serialize_pem()),
    ];
    for (name, text) in files {
        let path = folder.join(name);
        fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(authority.der().to_vec())
}

/// Adds a custom section of this size to a component.
fn padded(mut component: Vec<u8>, bytes: usize) -> Vec<u8> {
    const NAME: &[u8] = b"padding";
    let content = (0..bytes).map(|at| (at % 251) as u8);
    // The section has the id 0, its size, and a name with its length.
    let mut size = NAME.len() + 1 + bytes;
    component.push(0);
    while size >= 0x80 {
        component.push((size % 0x80) as u8 | 0x80);
        size /= 0x80;
    }
    component.push(size as u8);
    component.push(NAME.len() as u8);
    component.extend_from_slice(NAME);
    component.extend(content);
    component
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_padded_component_has_one_more_section_of_the_given_size() {
        let padded = padded(b"\0asm".to_vec(), 300);
        // The size is 308, or 0b10_0110100: seven bits in each byte, the lowest first.
        assert_eq!(&padded[..15], b"\0asm\0\xb4\x02\x07padding");
        assert_eq!(padded.len(), 4 + 3 + 8 + 300);
    }
}
