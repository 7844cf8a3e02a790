//! Credentials of registries, in the format of Docker's configuration file and of Secrets of the type
//! `kubernetes.io/dockerconfigjson`.
//!
//! A key of `auths` is a registry, or a registry and the start of a repository; the longest match counts, as in the
//! kubelet. The program runs credential helpers only if its owner permits it: a server must not start programs that a
//! Secret names.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use std::{fmt, fs, io};

use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_STANDARD_NO_PAD};
use serde::Deserialize;
use tokio::io::AsyncWriteExt as _;

use crate::Reference;
use crate::reference::is_below;

/// Time limit of a credential helper.
const HELPER_TIME: Duration = Duration::from_secs(30);
/// Maximum size of a configuration file in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// User name that stands for an identity token in the answer of a helper.
const TOKEN_USER: &str = "<token>";

/// Credentials for one registry.
#[derive(Clone, PartialEq, Eq)]
pub enum Credential {
    /// User and password.
    Basic {
        /// Name of the user.
        user: String,
        /// Password.
        password: String,
    },
    /// Refresh token, which the token server exchanges for access tokens.
    IdentityToken(String),
    /// Access token, sent as it is.
    RegistryToken(String),
}

/// Secrets are not printed.
impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Basic { .. } => "Basic",
            Self::IdentityToken(_) => "IdentityToken",
            Self::RegistryToken(_) => "RegistryToken",
        })
    }
}

/// Treatment of credential helpers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Helpers {
    /// They are refused by name.
    #[default]
    Refused,
    /// `docker-credential-NAME` is run.
    Run,
}

/// Credentials by registry.
#[derive(Clone, Debug, Default)]
pub struct Credentials {
    /// File or Secret, for messages.
    origin: String,
    config: Config,
    helpers: Helpers,
}

/// Error for a configuration that cannot be used. The message contains a remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{origin}: {message}")]
pub struct CredentialsError {
    /// File or Secret.
    pub origin: String,
    /// Cause and remedy, with the field.
    pub message: String,
}

/// The fields of Docker's configuration that concern registries.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Config {
    auths: BTreeMap<String, Auth>,
    creds_store: Option<String>,
    cred_helpers: BTreeMap<String, String>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default)]
struct Auth {
    auth: String,
    username: String,
    password: String,
    identitytoken: String,
    registrytoken: String,
}

/// Secrets are not printed.
impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Auth")
    }
}

/// Answer of a credential helper.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct HelperAnswer {
    username: String,
    secret: String,
}

impl Credentials {
    /// Reads a configuration file.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or an entry is invalid.
    pub fn read(path: &Path, helpers: Helpers) -> Result<Self, CredentialsError> {
        let origin = path.display().to_string();
        let error = |error: io::Error| CredentialsError {
            origin: origin.clone(),
            message: format!("cannot read the credentials of registries: {error}"),
        };
        let length = fs::metadata(path).map_err(error)?.len();
        if length > FILE_BYTES_MAX {
            return Err(CredentialsError {
                origin,
                message: format!("has {length} bytes, and credentials have at most {FILE_BYTES_MAX}"),
            });
        }
        let text = fs::read(path).map_err(error)?;
        Self::parse(&origin, &text, helpers)
    }

    /// Parses the content of a configuration file, or the value `.dockerconfigjson` of a Secret.
    ///
    /// # Errors
    ///
    /// An entry is invalid.
    pub fn parse(origin: &str, text: &[u8], helpers: Helpers) -> Result<Self, CredentialsError> {
        let error = |message: String| CredentialsError {
            origin: origin.to_owned(),
            message,
        };
        let config: Config = serde_json::from_slice(text).map_err(|problem| {
            error(format!(
                "is not a Docker configuration with {{\"auths\": …}}: {problem}"
            ))
        })?;
        for (key, auth) in &config.auths {
            auth.credential()
                .map_err(|message| error(format!("auths {key:?}: {message}")))?;
        }
        Ok(Self {
            origin: origin.to_owned(),
            config,
            helpers,
        })
    }

    /// Returns the path of the user's configuration file, if there is one: `$DOCKER_CONFIG/config.json` or
    /// `~/.docker/config.json`.
    pub fn default_file() -> Option<PathBuf> {
        let named = std::env::var_os("DOCKER_CONFIG").map(PathBuf::from);
        let folder = named.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".docker")))?;
        Some(folder.join("config.json")).filter(|path| path.is_file())
    }

    /// Returns the credentials for a repository; none if the registry has to be used anonymously.
    ///
    /// # Errors
    ///
    /// A credential helper is refused or fails.
    pub async fn find(&self, image: &Reference) -> Result<Option<Credential>, CredentialsError> {
        let error = |message: String| CredentialsError {
            origin: self.origin.clone(),
            message,
        };
        let helper = self.config.cred_helpers.get(image.registry());
        if let Some(helper) = helper {
            return self.ask_helper(helper, image.registry()).await.map_err(error);
        }
        let name = image.name();
        let found = self
            .config
            .auths
            .iter()
            .filter(|(key, _)| is_below(&name, host_and_path(key)));
        let longest = found.max_by_key(|(key, _)| host_and_path(key).len());
        if let Some((key, auth)) = longest {
            let credential = auth.credential();
            let credential = credential.map_err(|message| error(format!("auths {key:?}: {message}")))?;
            if credential.is_some() {
                return Ok(credential);
            }
        }
        match &self.config.creds_store {
            Some(helper) => self.ask_helper(helper, image.registry()).await.map_err(error),
            None => Ok(None),
        }
    }

    async fn ask_helper(&self, helper: &str, registry: &str) -> Result<Option<Credential>, String> {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        if helper.is_empty() || !helper.bytes().all(is_name) {
            return Err(format!("{helper:?} is not the name of a credential helper"));
        }
        let program = format!("docker-credential-{helper}");
        if self.helpers == Helpers::Refused {
            return Err(format!(
                "registry {registry}: the credential helper {program} is not run here; add the credentials to auths"
            ));
        }
        let asked = tokio::time::timeout(HELPER_TIME, run_helper(&program, registry)).await;
        let late = |_| format!("{program} did not answer in {} s", HELPER_TIME.as_secs());
        let output = asked
            .map_err(late)?
            .map_err(|error| format!("cannot run {program}: {error}"))?;
        if !output.status.success() {
            let message = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            if message.contains("credentials not found") {
                return Ok(None);
            }
            return Err(format!(
                "{program} failed for {registry} ({}): {message}",
                output.status
            ));
        }
        // The answer is not part of the message, because it has the secret.
        let answer: HelperAnswer = serde_json::from_slice(&output.stdout)
            .map_err(|_| format!("{program} did not print Username and Secret as JSON"))?;
        Ok(Some(if answer.username == TOKEN_USER {
            Credential::IdentityToken(answer.secret)
        } else {
            Credential::Basic {
                user: answer.username,
                password: answer.secret,
            }
        }))
    }
}

async fn run_helper(program: &str, registry: &str) -> io::Result<std::process::Output> {
    let mut child = tokio::process::Command::new(program)
        .arg("get")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(registry.as_bytes()).await?;
    }
    child.wait_with_output().await
}

impl Auth {
    /// Returns the credentials; none for an entry without values, which stands for a helper.
    fn credential(&self) -> Result<Option<Credential>, String> {
        if !self.registrytoken.is_empty() {
            return Ok(Some(Credential::RegistryToken(self.registrytoken.clone())));
        }
        if !self.identitytoken.is_empty() {
            return Ok(Some(Credential::IdentityToken(self.identitytoken.clone())));
        }
        let basic = |user: &str, password: &str| {
            Some(Credential::Basic {
                user: user.to_owned(),
                password: password.to_owned(),
            })
        };
        if self.auth.is_empty() {
            let is_empty = self.username.is_empty() && self.password.is_empty();
            return Ok(if is_empty {
                None
            } else {
                basic(&self.username, &self.password)
            });
        }
        let decoded = BASE64_STANDARD
            .decode(&self.auth)
            .or_else(|_| BASE64_STANDARD_NO_PAD.decode(&self.auth));
        let text = decoded.ok().and_then(|bytes| String::from_utf8(bytes).ok());
        // Docker pads the text with zero bytes.
        match text
            .as_deref()
            .map(|text| text.trim_end_matches('\0'))
            .and_then(|text| text.split_once(':'))
        {
            Some((user, password)) => Ok(basic(user, password)),
            None => Err("auth must be USER:PASSWORD in base64".to_owned()),
        }
    }
}

/// Returns a key without the scheme and the path of the API, which old versions of Docker write.
fn host_and_path(key: &str) -> &str {
    let rest = key.trim_start_matches("https://").trim_start_matches("http://");
    let rest = rest.trim_end_matches('/');
    rest.strip_suffix("/v1")
        .or_else(|| rest.strip_suffix("/v2"))
        .unwrap_or(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Credentials, CredentialsError> {
        Credentials::parse("Secret plugins/pull", text.as_bytes(), Helpers::Refused)
    }

    fn find(credentials: &Credentials, image: &str) -> Result<Option<Credential>, CredentialsError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(credentials.find(&image.parse().unwrap()))
    }

    #[expect(clippy::unnecessary_wraps, reason = "compared with the results of lookups")]
    fn basic(user: &str, password: &str) -> Option<Credential> {
        Some(Credential::Basic {
            user: user.to_owned(),
            password: password.to_owned(),
        })
    }

    #[test]
    fn the_longest_key_that_matches_counts() {
        let credentials = parse(
            r#"{"auths": {
                "https://r.io/v1/": {"auth": "b25lOnNlY3JldA=="},
                "r.io/team": {"username": "two", "password": "a:b"},
                "r.io/team/token": {"identitytoken": "refresh"},
                "r.io/access": {"registrytoken": "access"},
                "other.io": {"auth": "bm9wYWQ6eA"}
            }, "HttpHeaders": {"User-Agent": "x"}}"#,
        )
        .unwrap();
        let check = |image: &str, expected: Option<Credential>| {
            assert_eq!(find(&credentials, image), Ok(expected), "{image}");
        };
        check("r.io/a:1", basic("one", "secret"));
        check("r.io/team/a:1", basic("two", "a:b"));
        check("r.io/teams/a:1", basic("one", "secret"));
        check(
            "r.io/team/token:1",
            Some(Credential::IdentityToken("refresh".to_owned())),
        );
        check("r.io/access:1", Some(Credential::RegistryToken("access".to_owned())));
        check("other.io/a:1", basic("nopad", "x"));
        check("r.io.evil.io/a:1", None);
        check("r.io:444/a:1", None);
    }

    #[test]
    fn an_invalid_entry_is_named_and_its_secret_is_not() {
        let check = |text: &str, expected: &str| {
            let message = parse(text).unwrap_err().to_string();
            assert!(message.contains(expected), "no {expected:?} in: {message}");
        };
        check("{", "Secret plugins/pull: is not a Docker configuration");
        check(r#"{"auths": 3}"#, "is not a Docker configuration");
        check(
            r#"{"auths": {"r.io": {"auth": "?"}}}"#,
            "auths \"r.io\": auth must be USER:PASSWORD in base64",
        );
        check(
            r#"{"auths": {"r.io": {"auth": "c2VjcmV0"}}}"#,
            "auth must be USER:PASSWORD in base64",
        );
        let credentials = parse(r#"{"auths": {"r.io": {"username": "u", "password": "hidden"}}}"#).unwrap();
        assert!(!format!("{credentials:?}").contains("hidden"));
    }

    #[test]
    fn helpers_are_refused_by_name() {
        let check = |text: &str, expected: &str| {
            let message = find(&parse(text).unwrap(), "r.io/a:1").unwrap_err().to_string();
            assert!(message.contains(expected), "no {expected:?} in: {message}");
        };
        check(
            r#"{"credHelpers": {"r.io": "ecr-login"}, "auths": {"r.io": {"username": "u", "password": "p"}}}"#,
            "the credential helper docker-credential-ecr-login is not run here; add the credentials to auths",
        );
        check(
            r#"{"auths": {"r.io": {}}, "credsStore": "desktop"}"#,
            "docker-credential-desktop is not run here",
        );
        check(
            r#"{"credsStore": "../sh"}"#,
            "\"../sh\" is not the name of a credential helper",
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_helper_is_run_if_its_owner_permits_it() {
        let text = br#"{"credsStore": "bulkhead-test-that-does-not-exist"}"#;
        let credentials = Credentials::parse("config.json", text, Helpers::Run).unwrap();
        let message = find(&credentials, "r.io/a:1").unwrap_err().to_string();
        assert!(
            message.contains("cannot run docker-credential-bulkhead-test-that-does-not-exist"),
            "{message}"
        );
    }
}
