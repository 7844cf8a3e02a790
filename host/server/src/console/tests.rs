use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::*;
use crate::queries::tests::reviewer;

/// Pages that repeat the request, and a version that grows with each call.
#[derive(Default)]
struct Echo(AtomicU64);

impl Pages for Echo {
    fn answer(&self, head: &Parts) -> Response<Bytes> {
        Response::new(Bytes::from(format!("{} {}", head.method, head.uri)))
    }

    fn version(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

async fn started() -> Running {
    serve_local("127.0.0.1:0".parse().unwrap(), Arc::<Echo>::default())
        .await
        .unwrap()
}

/// Sends a request and reads the response until the connection ends or `end` was read.
async fn ask(address: SocketAddr, request: &str, end: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let (mut text, mut buffer) = (String::new(), [0; 1024]);
    while !text.contains(end) {
        let count = stream.read(&mut buffer).await.unwrap();
        if count == 0 {
            break;
        }
        text.push_str(std::str::from_utf8(&buffer[..count]).unwrap());
    }
    text
}

#[tokio::test]
async fn pages_are_served_to_this_machine_only() {
    let running = started().await;
    let check = async |host: &str, expected: &str| {
        let request = format!("GET /timeline?a=b HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        let response = ask(running.address, &request, "nothing ends it").await;
        assert!(response.starts_with(expected), "{host}: {response}");
        assert_eq!(
            response.contains("GET /timeline?a=b"),
            expected.contains("200"),
            "{response}"
        );
    };
    for host in ["localhost", "LocalHost:10372", "127.0.0.1:1", "[::1]:10372"] {
        check(host, "HTTP/1.1 200").await;
    }
    for host in [
        "example.com",
        "127.0.0.1.example.com",
        "10.0.0.1",
        "localhost.example.com:10372",
        "a b",
    ] {
        check(host, "HTTP/1.1 421").await;
    }
    let error = serve_local("0.0.0.0:0".parse().unwrap(), Arc::<Echo>::default())
        .await
        .err();
    assert!(error.unwrap().to_string().contains("is not a loopback address"));
}

#[tokio::test]
async fn only_users_whom_the_api_server_allows_see_pages() {
    let guard = Guard::Reviews(Box::new(Access::new(reviewer(Arc::default()))));
    let address = "127.0.0.1:0".parse().unwrap();
    let running = serve(address, Transport::Plain, guard, Arc::<Echo>::default())
        .await
        .unwrap();
    let check = async |path: &str, authorization: &str, expected: &str| {
        let head = format!("GET {path} HTTP/1.1\r\nHost: console.example\r\n");
        let request = format!("{head}{authorization}Connection: close\r\n\r\n");
        let response = ask(running.address, &request, "nothing ends it").await;
        assert!(response.starts_with(expected), "{authorization}: {response}");
        let challenged = response.contains("www-authenticate: Basic realm=");
        assert_eq!(challenged, expected.contains("401"), "{response}");
    };
    for path in ["/timeline", "/live", "/style.css"] {
        check(path, "", "HTTP/1.1 401").await;
    }
    // The passwords are reader, other and stranger.
    check("/timeline", "Authorization: Basic bWU6cmVhZGVy\r\n", "HTTP/1.1 200").await;
    check("/timeline", "Authorization: Bearer reader\r\n", "HTTP/1.1 200").await;
    check("/timeline", "Authorization: Basic bWU6b3RoZXI=\r\n", "HTTP/1.1 401").await;
    check("/timeline", "Authorization: Basic bWU6c3RyYW5nZXI=\r\n", "HTTP/1.1 401").await;
    check("/live", "Authorization: Bearer stranger\r\n", "HTTP/1.1 401").await;
}

#[tokio::test]
async fn the_stream_reports_versions() {
    let running = started().await;
    let request = "GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let response = ask(running.address, request, "data: 0\n\n").await;
    assert!(response.contains("content-type: text/event-stream"), "{response}");
    assert!(response.contains("event: version\ndata: 0\n\n"), "{response}");
    let posted = "POST /live HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    assert!(ask(running.address, posted, "POST /live").await.contains("POST /live"));
}
