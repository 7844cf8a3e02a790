//! The questions that Karmada's interpreter framework asks a webhook, posted over TLS as Karmada posts them
//! (Karmada: `pkg/resourceinterpreter/customized/webhook`), while the certificate is replaced.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use k8s_openapi::ByteString;
use kube::{Client, Config};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use serde_json::{Value, json};

use crate::federation::{Federation, Plan, Site};
use crate::wait;

/// Files are looked at every 30 seconds.
const REPLACED_MAX: Duration = Duration::from_secs(45);

/// Every operation is answered; a question without a plugin and an unknown operation are refused; and a certificate of
/// another authority is taken over while questions go on.
pub(crate) async fn operations(site: &Site) -> anyhow::Result<()> {
    let mut federation = Box::pin(Federation::start(site, "webhook", Plan { members: 0, ..Plan::default() })).await?;
    let (plugins, certificates) = (federation.logs().join("plugins"), federation.logs().join("certificates"));
    for (folder, file, text) in [(&plugins, "game.lua", GAME), (&plugins, "plugins.yaml", PLUGINS)] {
        fs::create_dir_all(folder)?;
        fs::write(folder.join(file), text)?;
    }
    let first = write_certificate(&certificates)?;
    let arguments = [
        format!("--plugin-directory={}", plugins.display()),
        "--webhook-bind-address=127.0.0.1:0".to_owned(),
        format!("--webhook-cert-dir={}", certificates.display()),
        "--leader-elect-resource-name=interpreter".to_owned(),
        "--mode=interpret".to_owned(),
    ];
    let kubeconfig = federation.hub.kubeconfig();
    federation.start_bulkhead_with(&kubeconfig, &arguments.iter().map(String::as_str).collect::<Vec<_>>())?;
    // Where Karmada reads it.
    let mut url = String::new();
    wait::until("the interpreter is registered", Duration::from_secs(30), async || {
        let path = "jsonpath={.webhooks[0].clientConfig.url}";
        let found = federation.kubectl(&["get", "resourceinterpreterwebhookconfiguration", "bulkhead", "-o", path]);
        url = found.map_err(|error| error.to_string())?;
        if url.is_empty() { Err("it has no URL".to_owned()) } else { Ok(()) }
    })
    .await?;
    let hook = Hook::new(&url, &first)?;
    for (operation, more, expected) in questions() {
        let answer = hook.ask(operation, more).await.with_context(|| format!("asking {operation}"))?;
        ensure!(answer["successful"] == true, "{operation} is answered {answer}");
        for (field, expected) in expected.as_object().into_iter().flatten() {
            let found = if field == "patch" { patch(&answer)? } else { answer[field].clone() };
            ensure!(found == *expected, "{operation}: {field} is {found}, not {expected}");
        }
    }
    let refused = hook.ask("InterpretComponent", json!({})).await?;
    ensure!(refused["successful"] == false && refused["status"]["code"] == 501, "nobody answers it: {refused}");
    let refused = hook.ask("Divine", json!({})).await?;
    ensure!(refused["successful"] == false && refused["status"]["code"] == 400, "there is no such thing: {refused}");

    // Another authority: at every moment one of the two is answered.
    let second = write_certificate(&certificates)?;
    let later = Hook::new(&url, &second)?;
    wait::until("questions are answered with the new certificate", REPLACED_MAX, async || {
        let Err(with_new) = later.ask("InterpretReplica", json!({})).await else { return Ok(()) };
        if hook.ask("InterpretReplica", json!({})).await.is_ok()
            || later.ask("InterpretReplica", json!({})).await.is_ok()
        {
            return Err(format!("{with_new:#}"));
        }
        Err(format!("nobody is answered: {with_new:#}"))
    })
    .await?;
    let path = "jsonpath={.webhooks[0].clientConfig.caBundle}";
    wait::until("Karmada is told the new authority", Duration::from_secs(30), async || {
        let bundle = federation
            .kubectl(&["get", "resourceinterpreterwebhookconfiguration", "bulkhead", "-o", path])
            .map_err(|error| error.to_string())?;
        let expected =
            serde_json::to_value(ByteString(second.clone().into_bytes())).map_err(|error| error.to_string())?;
        if expected == bundle.as_str() { Ok(()) } else { Err("it is another".to_owned()) }
    })
    .await
    .map(drop)
}

/// Each operation with what Karmada sends besides the object, and what has to be in the answer.
fn questions() -> Vec<(&'static str, Value, Value)> {
    let item = json!({"clusterName": "member1", "status": {"players": 3}, "applied": true, "health": "Healthy"});
    vec![
        ("InterpretReplica", json!({}), json!({"replicas": 2})),
        (
            "ReviseReplica",
            json!({"replicas": 5}),
            json!({"patchType": "JSONPatch", "patch": [{"op": "replace", "path": "/spec/rooms", "value": 5}]}),
        ),
        (
            "Retain",
            json!({"observedObject": game(7, json!({}))}),
            json!({"patch": [{"op": "replace", "path": "/spec/rooms", "value": 7}]}),
        ),
        (
            "AggregateStatus",
            json!({"aggregatedStatus": [item]}),
            json!({"patch": [{"op": "replace", "path": "/status/players", "value": 3}]}),
        ),
        ("InterpretStatus", json!({}), json!({"rawStatus": {"players": 1}})),
        ("InterpretHealth", json!({}), json!({"healthy": true})),
        (
            "InterpretDependency",
            json!({}),
            json!({"dependencies": [
                {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "rules"},
            ]}),
        ),
    ]
}

fn game(rooms: u32, status: Value) -> Value {
    json!({
        "apiVersion": "example.io/v1",
        "kind": "Game",
        "metadata": {"name": "chess", "namespace": "default"},
        "spec": {"rooms": rooms, "rules": "rules"},
        "status": status,
    })
}

/// The operations of a patch in an answer.
fn patch(answer: &Value) -> anyhow::Result<Value> {
    let bytes: ByteString = serde_json::from_value(answer["patch"].clone()).context("the patch is not base64")?;
    serde_json::from_slice(&bytes.0).context("the patch is not JSON")
}

/// A webhook, asked by somebody who trusts one authority.
struct Hook {
    client: Client,
    path: String,
}

impl Hook {
    fn new(url: &str, authority: &str) -> anyhow::Result<Self> {
        let url: http::Uri = url.parse().context("the webhook's URL")?;
        let path = url.path().to_owned();
        let mut config = Config::new(url);
        let authority = CertificateDer::from_pem_slice(authority.as_bytes()).context("the authority is not PEM")?;
        config.root_cert = Some(vec![authority.to_vec()]);
        config.default_retry = false;
        config.connect_timeout = Some(Duration::from_secs(5));
        // The path is that of the request.
        let origin = config.cluster_url.to_string();
        config.cluster_url = origin.trim_end_matches(path.as_str()).parse().context("the webhook's address")?;
        Ok(Self { client: Client::try_from(config)?, path })
    }

    /// Asks about the game, and returns the response.
    async fn ask(&self, operation: &str, more: Value) -> anyhow::Result<Value> {
        let mut body = json!({
            "apiVersion": "config.karmada.io/v1alpha1",
            "kind": "ResourceInterpreterContext",
            "request": {
                "uid": "2f6c1a4e-0000-4000-8000-000000000001",
                "kind": {"group": "example.io", "version": "v1", "kind": "Game"},
                "name": "chess",
                "namespace": "default",
                "operation": operation,
                "object": game(2, json!({"players": 1})),
                // Karmada sends it with every operation.
                "replicas": 0,
            },
        });
        for (field, value) in more.as_object().into_iter().flatten() {
            body["request"][field] = value.clone();
        }
        let request = http::Request::post(&self.path)
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(serde_json::to_vec(&body)?)?;
        let answer: Value = self.client.request(request).await.context("posting the question")?;
        let response = &answer["response"];
        ensure!(
            answer["kind"] == "ResourceInterpreterContext" && response["uid"] == body["request"]["uid"],
            "{answer}"
        );
        Ok(response.clone())
    }
}

/// Writes a certificate for this machine from an authority of its own, and returns the authority.
fn write_certificate(folder: &Path) -> anyhow::Result<String> {
    let key = rcgen::KeyPair::generate()?;
    let mut authority = rcgen::CertificateParams::default();
    authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let ca = authority.self_signed(&key)?.pem();
    let own_key = rcgen::KeyPair::generate()?;
    let own = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()])?;
    let certificate = own.signed_by(&own_key, &rcgen::Issuer::new(authority, key))?;
    fs::create_dir_all(folder)?;
    for (file, text) in [("tls.crt", certificate.pem()), ("tls.key", own_key.serialize_pem()), ("ca.crt", ca.clone())] {
        fs::write(folder.join(file), text)?;
    }
    Ok(ca)
}

const PLUGINS: &str = "\
apiVersion: bulkhead.dev/v1alpha1
kind: PluginList
plugins:
  - name: game
    lua: game.lua
    kinds: [{apiVersion: example.io/v1, kind: Game}]
";

const GAME: &str = "\
function GetReplicas(desiredObj)
  return desiredObj.spec.rooms
end

function ReviseReplica(desiredObj, desiredReplica)
  desiredObj.spec.rooms = desiredReplica
  return desiredObj
end

function Retain(desiredObj, observedObj)
  desiredObj.spec.rooms = observedObj.spec.rooms
  return desiredObj
end

function AggregateStatus(desiredObj, items)
  local players = 0
  for _, item in ipairs(items) do
    players = players + item.status.players
  end
  desiredObj.status.players = players
  return desiredObj
end

function ReflectStatus(observedObj)
  return observedObj.status
end

function InterpretHealth(observedObj)
  local players = type(observedObj.status) == 'table' and observedObj.status.players
  return type(players) == 'number' and players > 0
end

function GetDependencies(desiredObj)
  return {{ apiVersion = 'v1', kind = 'ConfigMap', namespace = 'default', name = desiredObj.spec.rules }}
end
";
