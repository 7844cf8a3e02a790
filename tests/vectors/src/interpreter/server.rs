//! In-process webhook server for the cases about the transport of hooks.
//!
//! The clock is paused except for explicit advances: a server that answers late, or that sends `Retry-After`,
//! advances the clock of the process instead of waiting.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::advance;
use tokio_rustls::TlsAcceptor;

/// Names in the certificate; the last one is that of the service.
const NAMES: [&str; 3] = ["127.0.0.1", "localhost", "svc.ns.svc"];
/// Path that redirects lead to.
pub(super) const REDIRECTED: &str = "/p";

/// Behaviour of a server towards requests.
#[derive(Clone, Debug, Default)]
pub(super) struct Behaviour {
    /// Status code of the response; 0 stands for 200.
    pub(super) status: u16,
    /// True if the response has `Retry-After: 1`.
    pub(super) comes_back: bool,
    /// Content type of the response; an empty text stands for JSON.
    pub(super) content_type: &'static str,
    /// Delay of the response.
    pub(super) takes: Duration,
    /// True if every path except [`REDIRECTED`] redirects to it.
    pub(super) redirects: bool,
    /// True if the server speaks plain HTTP instead of TLS.
    pub(super) plain: bool,
    /// True if the certificate is not valid for the name of the service.
    pub(super) lacks_service_name: bool,
}

/// Requests that a server received.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    pub(super) requests: u64,
    /// The last request, with the field names of case files.
    pub(super) last: Value,
}

/// A server on a port of the loopback interface. It stops on drop.
pub(super) struct Server {
    pub(super) port: u16,
    /// Self-signed certificate, as PEM.
    pub(super) certificate: String,
    seen: Arc<Mutex<Seen>>,
    _tasks: JoinSet<()>,
}

impl Server {
    /// Starts a server.
    pub(super) async fn start(behaviour: Behaviour) -> Result<Self, String> {
        let names = if behaviour.lacks_service_name {
            &NAMES[..2]
        } else {
            &NAMES[..]
        };
        let (certificate, acceptor) = certificate(names)?;
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .map_err(|error| format!("no port: {error}"))?;
        let port = listener
            .local_addr()
            .map_err(|error| format!("no port: {error}"))?
            .port();
        let seen = Arc::new(Mutex::new(Seen::default()));
        let mut tasks = JoinSet::new();
        tasks.spawn(serve(listener, acceptor, behaviour, Arc::clone(&seen)));
        Ok(Self {
            port,
            certificate,
            seen,
            _tasks: tasks,
        })
    }

    /// Returns the requests received so far.
    pub(super) fn seen(&self) -> Seen {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Generates a new certificate and a TLS acceptor for it.
fn certificate(names: &[&str]) -> Result<(String, TlsAcceptor), String> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let made = rcgen::generate_simple_self_signed(names).map_err(|error| error.to_string())?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|config| {
            config
                .with_no_client_auth()
                .with_single_cert(vec![made.cert.der().clone()], key)
        })
        .map_err(|error| error.to_string())?;
    Ok((made.cert.pem(), TlsAcceptor::from(Arc::new(config))))
}

/// Returns a certificate that no server uses.
pub(super) fn other_certificate() -> Result<String, String> {
    certificate(&NAMES).map(|(pem, _)| pem)
}

async fn serve(listener: TcpListener, acceptor: TlsAcceptor, behaviour: Behaviour, seen: Arc<Mutex<Seen>>) {
    while let Ok((stream, _)) = listener.accept().await {
        // A client that rejects the certificate closes the connection, which the server can only ignore.
        let _ = answer(stream, &acceptor, &behaviour, &seen).await;
    }
}

async fn answer(
    stream: TcpStream,
    acceptor: &TlsAcceptor,
    behaviour: &Behaviour,
    seen: &Mutex<Seen>,
) -> std::io::Result<()> {
    if behaviour.plain {
        answer_on(stream, behaviour, seen).await
    } else {
        answer_on(acceptor.accept(stream).await?, behaviour, seen).await
    }
}

/// Handles one request. The clock advances by the `Retry-After` time only after the client has closed the connection.
async fn answer_on(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    behaviour: &Behaviour,
    seen: &Mutex<Seen>,
) -> std::io::Result<()> {
    let request = read(&mut stream).await?;
    let uid = request.body["request"]["uid"].clone();
    let redirects = behaviour.redirects && request.summary["url"] != REDIRECTED;
    {
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.requests += 1;
        seen.last = request.summary;
    }
    advance(behaviour.takes).await;
    let status = if redirects {
        307
    } else if behaviour.status == 0 {
        200
    } else {
        behaviour.status
    };
    let body = if (200..300).contains(&status) {
        json!({"response": {"uid": uid, "successful": true, "healthy": true}}).to_string()
    } else {
        "oops".to_owned()
    };
    let content_type = if behaviour.content_type.is_empty() {
        "application/json"
    } else {
        behaviour.content_type
    };
    let location = if redirects {
        format!("location: {REDIRECTED}\r\n")
    } else {
        String::new()
    };
    let again = if behaviour.comes_back { "retry-after: 1\r\n" } else { "" };
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 {status} x\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\n{location}{again}\r\n{body}"
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.flush().await?;
    let _ = stream.read(&mut [0; 16]).await;
    if behaviour.comes_back {
        advance(Duration::from_secs(1)).await;
    }
    Ok(())
}

struct Request {
    summary: Value,
    body: Value,
}

/// Reads a request with a JSON body.
async fn read(stream: &mut (impl AsyncRead + Unpin)) -> std::io::Result<Request> {
    let mut bytes = Vec::new();
    loop {
        let mut chunk = [0; 4096];
        let count = stream.read(&mut chunk).await?;
        if count == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        bytes.extend_from_slice(chunk.get(..count).unwrap_or_default());
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n")
            && let Ok(body) = serde_json::from_str(body)
        {
            return Ok(Request {
                summary: summary(head),
                body,
            });
        }
    }
}

/// Returns the head of a request in the form of case files.
fn summary(head: &str) -> Value {
    let mut lines = head.lines();
    let mut first = lines.next().unwrap_or_default().split(' ');
    let mut summary = Map::new();
    for name in ["method", "url", "proto"] {
        summary.insert(name.to_owned(), first.next().unwrap_or_default().into());
    }
    let headers: Vec<_> = lines.filter_map(|line| line.split_once(": ")).collect();
    let header = |name: &str| {
        headers
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| *value)
    };
    summary.insert("accept".to_owned(), header("accept").into());
    summary.insert("contentType".to_owned(), header("content-type").into());
    summary.insert(
        "userAgentPresent".to_owned(),
        header("user-agent").is_some().to_string().into(),
    );
    Value::Object(summary)
}
