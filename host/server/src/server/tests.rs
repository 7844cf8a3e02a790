use std::convert::Infallible;

use futures::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{Full, StreamBody};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::sync::{Notify, mpsc};

use super::*;
use crate::webhook::certificate::Certificate;

/// Size of a connection's buffer in each direction, in bytes.
const PIPE: usize = 4096;
/// OS error of a process that is out of file descriptors.
const EMFILE: i32 = 24;
const LIMITS: Limits = Limits {
    connections: 1024,
    body_bytes: 400,
    buffered_bytes: 1 << 20,
};

/// Listener with connections from a test.
struct Script(mpsc::UnboundedReceiver<io::Result<DuplexStream>>);

impl Listener for Script {
    type Stream = DuplexStream;

    async fn next(&mut self) -> io::Result<DuplexStream> {
        match self.0.recv().await {
            Some(next) => next,
            None => std::future::pending().await,
        }
    }
}

type AnyBody = UnsyncBoxBody<Bytes, Infallible>;

/// Responds with the size of the body: at once, after a signal, as an endless stream, or as a large response.
struct Sizes(Arc<Notify>);

impl Application for Sizes {
    type Body = AnyBody;
    type Error = Infallible;

    fn answer_head(&self, head: &Parts) -> Option<Response<AnyBody>> {
        (head.uri.path() == "/no").then(|| plain(StatusCode::NOT_FOUND, "no".to_owned()).map(BodyExt::boxed_unsync))
    }

    fn lifetime(&self, head: &Parts) -> Option<Duration> {
        head.uri.query()?.parse().ok().map(Duration::from_secs)
    }

    async fn answer(&self, request: Request<Bytes>) -> Result<Response<AnyBody>, Infallible> {
        let size = format!("{} bytes", request.body().len());
        let body = match request.uri().path() {
            "/watch" => StreamBody::new(stream::pending::<Result<Frame<Bytes>, Infallible>>()).boxed_unsync(),
            "/large" => Full::from(vec![b'x'; 100 * PIPE]).boxed_unsync(),
            path => {
                if path == "/slow" {
                    self.0.notified().await;
                }
                Full::from(size).boxed_unsync()
            }
        };
        Ok(Response::new(body))
    }

    fn refuse(&self, refusal: &Refusal) -> Response<AnyBody> {
        plain(refusal.status(), refusal.to_string()).map(BodyExt::boxed_unsync)
    }
}

/// Running endpoint. Dropping it stops the endpoint.
struct Endpoint {
    arriving: mpsc::UnboundedSender<io::Result<DuplexStream>>,
    connections: Connections,
    slow: Arc<Notify>,
    _task: JoinSet<()>,
}

impl Endpoint {
    fn start(limits: Limits) -> Self {
        Self::with(Transport::Plain, limits)
    }

    fn with(transport: Transport, limits: Limits) -> Self {
        let (arriving, script) = mpsc::unbounded_channel();
        let (connections, slow, mut task) = (Connections::new(limits), Arc::<Notify>::default(), JoinSet::new());
        let application = Sizes(Arc::clone(&slow));
        task.spawn(accept(
            Script(script),
            transport,
            application,
            connections.clone(),
            "the test",
        ));
        Self {
            arriving,
            connections,
            slow,
            _task: task,
        }
    }

    async fn connect(&self, text: &str) -> DuplexStream {
        let (mut ours, theirs) = tokio::io::duplex(PIPE);
        self.arriving.send(Ok(theirs)).unwrap();
        ours.write_all(text.as_bytes()).await.unwrap();
        settle().await;
        ours
    }

    async fn connect_all(&self, count: usize, text: &str) -> Vec<DuplexStream> {
        let mut all = Vec::new();
        for _ in 0..count {
            all.push(self.connect(text).await);
        }
        all
    }
}

/// Runs every task until it waits, without advancing the clock.
async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

fn post(path: &str, declared: usize, sent: usize) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {declared}\r\n\r\n{}",
        "x".repeat(sent)
    )
}

/// Reads until the text ends with `end`, or the connection is closed.
async fn read_until(stream: &mut DuplexStream, end: &str) -> String {
    let mut text = Vec::new();
    while !text.ends_with(end.as_bytes()) {
        match stream.read_u8().await {
            Ok(byte) => text.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8(text).unwrap()
}

/// Returns true if the server has closed the connection and all of its data has been read.
async fn is_closed(stream: &mut DuplexStream) -> bool {
    let mut rest = Vec::new();
    tokio::time::timeout(Duration::ZERO, stream.read_to_end(&mut rest))
        .await
        .is_ok()
}

#[tokio::test(start_paused = true)]
async fn half_sent_requests_and_idle_connections_end_within_the_timeout() {
    let endpoint = Endpoint::start(LIMITS);
    let mut clients = endpoint.connect_all(100, &post("/", 400, 200)).await;
    clients.extend(endpoint.connect_all(500, "").await);
    clients.extend(endpoint.connect_all(100, "POST / HT").await);
    assert_eq!(endpoint.connections.usage(), (700, 100 * 200));
    tokio::time::sleep(STEP.saturating_sub(Duration::from_secs(1))).await;
    assert_eq!(endpoint.connections.usage(), (700, 100 * 200));
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(endpoint.connections.usage(), (0, 0));
    for client in &mut clients {
        assert!(is_closed(client).await);
    }
}

#[tokio::test(start_paused = true)]
async fn a_tls_handshake_ends_within_the_timeout() {
    let certificate = Certificate::self_made("localhost", k8s_openapi::jiff::civil::date(2099, 12, 31), None).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(certificate.server_config(None).unwrap()));
    let endpoint = Endpoint::with(Transport::Tls(Box::new(move || acceptor.clone())), LIMITS);
    let mut clients = endpoint.connect_all(50, "").await;
    // The head of a record with a ClientHello of 512 bytes, and its first byte.
    clients.extend(endpoint.connect_all(50, "\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}").await);
    tokio::time::sleep(STEP.saturating_sub(Duration::from_secs(1))).await;
    assert_eq!(endpoint.connections.usage(), (100, 0));
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(endpoint.connections.usage(), (0, 0));
    for client in &mut clients {
        assert!(is_closed(client).await);
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_arrives_byte_by_byte_ends_within_the_timeout() {
    let endpoint = Endpoint::start(LIMITS);
    let mut client = endpoint.connect(&post("/", 400, 0)).await;
    for _ in 0..9 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        client.write_all(b"x").await.unwrap();
    }
    settle().await;
    assert_eq!(endpoint.connections.usage(), (1, 9));
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(is_closed(&mut client).await);
    assert_eq!(endpoint.connections.usage(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_full_endpoint_answers_a_new_client_in_place_of_one_that_waits() {
    let endpoint = Endpoint::start(Limits {
        connections: 8,
        ..LIMITS
    });
    let mut idle = endpoint.connect_all(4, "").await;
    idle.extend(endpoint.connect_all(20, &post("/", 400, 399)).await);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(endpoint.connections.usage(), (8, 8 * 399));
    let mut client = endpoint.connect(&post("/", 3, 3)).await;
    assert!(read_until(&mut client, "3 bytes").await.starts_with("HTTP/1.1 200"));
    assert_eq!(endpoint.connections.usage(), (8, 7 * 399));
    let mut closed = 0;
    for client in &mut idle {
        closed += usize::from(is_closed(client).await);
    }
    // One of the eight connections belongs to the last client; 25 connections were opened in total.
    assert_eq!(closed, 25 - 8);
}

#[tokio::test(start_paused = true)]
async fn a_new_connection_is_read_before_it_makes_room_for_the_next() {
    let endpoint = Endpoint::start(Limits {
        connections: 1,
        ..LIMITS
    });
    let _idle = endpoint.connect_all(1, "").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mut clients = Vec::new();
    for _ in 0..2 {
        let (mut ours, theirs) = tokio::io::duplex(PIPE);
        ours.write_all(post("/", 2, 2).as_bytes()).await.unwrap();
        endpoint.arriving.send(Ok(theirs)).unwrap();
        clients.push(ours);
    }
    for client in &mut clients {
        assert!(read_until(client, "2 bytes").await.ends_with("2 bytes"));
    }
}

#[tokio::test(start_paused = true)]
async fn requests_that_are_being_answered_keep_their_connections() {
    let endpoint = Endpoint::start(Limits {
        connections: 2,
        ..LIMITS
    });
    let mut slow = endpoint.connect_all(2, &post("/slow", 1, 1)).await;
    let mut late = endpoint.connect_all(3, &post("/", 2, 2)).await;
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert_eq!(endpoint.connections.usage(), (2, 2));
    assert!(!is_closed(&mut late[0]).await);
    endpoint.slow.notify_one();
    assert!(read_until(&mut late[0], "2 bytes").await.ends_with("2 bytes"));
    assert!(read_until(&mut late[2], "2 bytes").await.ends_with("2 bytes"));
    endpoint.slow.notify_one();
    assert!(read_until(&mut slow[1], "1 bytes").await.ends_with("1 bytes"));
}

#[tokio::test(start_paused = true)]
async fn the_bodies_of_all_requests_stay_within_their_bound() {
    let endpoint = Endpoint::start(Limits {
        buffered_bytes: 1000,
        ..LIMITS
    });
    let mut half_sent = Vec::new();
    for _ in 0..50 {
        half_sent.push(endpoint.connect(&post("/", 400, 300)).await);
        let (_, buffered) = endpoint.connections.usage();
        assert!(buffered <= 1000, "{buffered} bytes are buffered");
    }
    assert_eq!(endpoint.connections.usage(), (3, 900));
    let mut client = endpoint.connect(&post("/", 400, 400)).await;
    assert!(read_until(&mut client, "400 bytes").await.starts_with("HTTP/1.1 200"));
    assert_eq!(endpoint.connections.usage(), (3, 600));
}

#[tokio::test(start_paused = true)]
async fn complete_bodies_are_answered_before_others_are_read() {
    let endpoint = Endpoint::start(Limits {
        buffered_bytes: 500,
        ..LIMITS
    });
    let _slow = endpoint.connect(&post("/slow", 400, 400)).await;
    let mut late = endpoint.connect(&post("/", 300, 300)).await;
    assert_eq!(endpoint.connections.usage(), (2, 400));
    endpoint.slow.notify_one();
    assert!(read_until(&mut late, "300 bytes").await.starts_with("HTTP/1.1 200"));
}

#[tokio::test(start_paused = true)]
async fn a_body_over_the_limit_is_refused() {
    let endpoint = Endpoint::start(LIMITS);
    let mut declared = endpoint.connect(&post("/", 401, 0)).await;
    let response = read_until(&mut declared, "400 bytes").await;
    assert!(
        response.starts_with("HTTP/1.1 413") && response.ends_with("its body is larger than 400 bytes"),
        "{response}"
    );
    let chunked = format!(
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n191\r\n{}",
        "x".repeat(401)
    );
    let mut chunked = endpoint.connect(&chunked).await;
    assert!(read_until(&mut chunked, "400 bytes").await.starts_with("HTTP/1.1 413"));
    let mut unread = endpoint.connect(&post("/no", 400, 0)).await;
    assert!(read_until(&mut unread, "no").await.starts_with("HTTP/1.1 404"));
}

#[tokio::test(start_paused = true)]
async fn a_head_over_the_limit_ends_the_connection() {
    let endpoint = Endpoint::start(LIMITS);
    let mut client = endpoint.connect("GET / HTTP/1.1\r\nHost: a\r\nA: ").await;
    let mut sent = 0;
    while client.write_all(&[b'x'; 1024]).await.is_ok() && sent < 10 * HEAD_BYTES_MAX {
        sent += 1024;
        settle().await;
    }
    assert!(sent <= HEAD_BYTES_MAX + 2 * PIPE, "{sent} bytes of a head were read");
    assert_eq!(endpoint.connections.usage(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_listener_ends_nothing() {
    let endpoint = Endpoint::start(LIMITS);
    let mut before = endpoint.connect(&post("/slow", 1, 1)).await;
    for _ in 0..10 {
        endpoint
            .arriving
            .send(Err(io::Error::from_raw_os_error(EMFILE)))
            .unwrap();
        endpoint
            .arriving
            .send(Err(io::ErrorKind::ConnectionAborted.into()))
            .unwrap();
    }
    let (mut client, theirs) = tokio::io::duplex(PIPE);
    endpoint.arriving.send(Ok(theirs)).unwrap();
    client.write_all(post("/", 1, 1).as_bytes()).await.unwrap();
    assert!(read_until(&mut client, "1 bytes").await.starts_with("HTTP/1.1 200"));
    endpoint.slow.notify_one();
    assert!(read_until(&mut before, "1 bytes").await.starts_with("HTTP/1.1 200"));
}

#[tokio::test(start_paused = true)]
async fn a_connection_is_kept_between_requests_for_a_while() {
    let endpoint = Endpoint::start(LIMITS);
    let mut client = endpoint.connect("").await;
    for _ in 0..5 {
        client.write_all(post("/", 2, 2).as_bytes()).await.unwrap();
        assert!(read_until(&mut client, "2 bytes").await.starts_with("HTTP/1.1 200"));
        tokio::time::sleep(IDLE.saturating_sub(Duration::from_secs(1))).await;
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(is_closed(&mut client).await);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_its_response_ends() {
    let endpoint = Endpoint::start(Limits {
        connections: 1,
        ..LIMITS
    });
    let _deaf = endpoint.connect("GET /large HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let mut other = endpoint.connect(&post("/", 2, 2)).await;
    assert!(
        read_until(&mut other, "2 bytes").await.starts_with("HTTP/1.1 200"),
        "it makes room for another"
    );
    drop(other);
    let _deaf = endpoint.connect("GET /large HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!(endpoint.connections.usage().0, 1);
    tokio::time::sleep(IDLE + Duration::from_secs(1)).await;
    assert_eq!(endpoint.connections.usage().0, 0);
}

#[tokio::test(start_paused = true)]
async fn a_watch_lasts() {
    let endpoint = Endpoint::start(Limits {
        connections: 1,
        ..LIMITS
    });
    let mut watch = endpoint.connect("GET /watch HTTP/1.1\r\nHost: a\r\n\r\n").await;
    read_until(&mut watch, "\r\n\r\n").await;
    let _late = endpoint.connect("").await;
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert!(!is_closed(&mut watch).await);
    drop(watch);
    settle().await;
    assert_eq!(endpoint.connections.usage().0, 1, "the other one has its place");
}

#[tokio::test(start_paused = true)]
async fn a_watch_with_a_timeout_ends_although_its_client_does_not_read() {
    let endpoint = Endpoint::start(LIMITS);
    let _deaf = endpoint.connect("GET /watch?60 HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let _endless = endpoint
        .connect(&format!("GET /watch?{} HTTP/1.1\r\nHost: a\r\n\r\n", u64::MAX))
        .await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(endpoint.connections.usage().0, 2, "the server may still write the end");
    tokio::time::sleep(STEP + Duration::from_secs(1)).await;
    assert_eq!(endpoint.connections.usage().0, 1);
}

#[tokio::test(start_paused = true)]
async fn a_gate_bounds_requests_by_number_and_by_size() {
    let gate = Gate::new(2, 1 << 20);
    let hold = |bytes: usize| {
        let (gate, (release, held)) = (gate.clone(), std::sync::mpsc::channel::<()>());
        let task = tokio::spawn(async move { gate.run(bytes, move || held.recv().is_ok()).await });
        (release, task)
    };
    let ((first, _first), (_second, second)) = (hold(1), hold(1));
    settle().await;
    // A cancelled caller leaves its work running with its permit.
    second.abort();
    settle().await;
    let late = tokio::spawn({
        let gate = gate.clone();
        async move { gate.run(1, || ()).await }
    });
    settle().await;
    tokio::time::advance(Duration::from_secs(4)).await;
    assert_eq!(late.await.unwrap(), Err(Overloaded));
    first.send(()).unwrap();
    assert_eq!(gate.run(1, || 7).await, Ok(7));

    let gate = Gate::new(8, 1 << 20);
    let (released, held) = std::sync::mpsc::channel::<()>();
    let large = tokio::spawn({
        let gate = gate.clone();
        async move { gate.run(8 << 20, move || held.recv().is_ok()).await }
    });
    settle().await;
    let small = tokio::spawn(async move { gate.run(1, || ()).await });
    settle().await;
    assert!(!small.is_finished(), "a body over the total is answered alone");
    released.send(()).unwrap();
    assert_eq!((large.await.unwrap(), small.await.unwrap()), (Ok(true), Ok(())));
}
