use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use bulkhead_core::combine::Attribution;
use bulkhead_core::journal::{Decision, Entry, Journal, Subject};
use bulkhead_core::time::Time;
use bulkhead_journal::{Bounds, Writer};
use http::header::AUTHORIZATION;
use http_body_util::BodyExt as _;
use kube::Config;
use kube::client::Body;
use tower::{BoxError, service_fn};

use super::*;
use crate::webhook::certificate::Certificate;

/// Token of a user who may read decisions, and of one who may not.
const READER: &str = "Bearer reader";
const OTHER: &str = "bearer other";

/// Returns the client of an API server that knows two tokens. `reviewed` gets the paths that it was asked about.
pub(crate) fn reviewer(reviewed: Arc<Mutex<Vec<Value>>>) -> Client {
    let service = service_fn(move |request: Request<Body>| {
        let reviewed = Arc::clone(&reviewed);
        async move {
            let path = request.uri().path().to_owned();
            let body = request.into_body().collect().await?.to_bytes();
            let mut review: Value = serde_json::from_slice(&body)?;
            review["status"] = match path.as_str() {
                "/apis/authentication.k8s.io/v1/tokenreviews" => match review["spec"]["token"].as_str() {
                    Some(name @ ("reader" | "other")) => {
                        json!({"authenticated": true, "user": {"username": name, "groups": ["people"]}})
                    }
                    _ => json!({"authenticated": false, "error": "token has expired"}),
                },
                "/apis/authorization.k8s.io/v1/subjectaccessreviews" => {
                    reviewed.lock().unwrap().push(review["spec"].clone());
                    json!({ "allowed": review["spec"]["user"] == "reader" })
                }
                other => return Err(format!("unexpected request to {other}").into()),
            };
            Ok::<_, BoxError>(Response::new(Body::from(review.to_string().into_bytes())))
        }
    });
    Client::new(service, "default")
}

/// Writes the journal of a process with these decisions about default/web.
fn journal(directory: &Path, decisions: &[Decision]) {
    let writer = Writer::open(directory, Bounds::default(), |error| panic!("{error}"))
        .unwrap()
        .writer;
    let journal = Journal::with_sink(0, 0, Box::new(Arc::new(writer))).of_process("3f9a1c2e55");
    for (at, decision) in (0..).zip(decisions) {
        journal.record(Entry {
            at: Time::from_millis(at),
            controller: "test".to_owned(),
            subject: Subject::new("ResourceBinding", "default", "web"),
            cluster: Some("m1".to_owned()),
            decision: *decision,
            attribution: Attribution::rule("Why", "because"),
            effect: String::new(),
            inputs: Vec::new(),
            explanation: None,
        });
    }
}

fn queries(directory: Option<&Path>) -> (Queries, Arc<Mutex<Vec<Value>>>) {
    let reviewed = Arc::<Mutex<Vec<Value>>>::default();
    let queries = Queries::new(Sources {
        reviews: reviewer(Arc::clone(&reviewed)),
        journal: directory.map(Path::to_path_buf),
        queued: Arc::default(),
    });
    (queries, reviewed)
}

/// Sends a request as the server does. Returns the status and the body.
async fn get(queries: &Queries, path: &str, token: Option<&str>) -> (u16, String) {
    let mut request = Request::get(path);
    if let Some(token) = token {
        request = request.header(AUTHORIZATION, token);
    }
    let (head, ()) = request.body(()).unwrap().into_parts();
    let response = if let Some(response) = queries.answer_head(&head) {
        response
    } else {
        let request = Request::from_parts(head, Bytes::new());
        queries.answer(request).await.unwrap()
    };
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn only_a_user_whom_the_api_server_allows_reads_decisions() {
    let folder = tempfile::tempdir().unwrap();
    journal(folder.path(), &[Decision::Evicted]);
    let (queries, reviewed) = queries(Some(folder.path()));
    let check = async |token: Option<&str>, expected: u16, message: &str| {
        let (status, body) = get(&queries, RECORDS, token).await;
        assert_eq!(status, expected, "{body}");
        assert!(body.contains(message), "{body}");
        assert_eq!(body.contains("default"), expected == 200, "{body}");
    };
    check(None, 401, "has no bearer token").await;
    check(Some("Basic cmVhZGVy"), 401, "has no bearer token").await;
    check(Some("Bearer "), 401, "has no bearer token").await;
    check(Some("Bearer stranger"), 401, "token has expired").await;
    check(Some(OTHER), 403, "may not get /bulkhead/records").await;
    check(Some(READER), 200, "\"Evicted\"").await;
    let reviewed = reviewed.lock().unwrap();
    let last = reviewed.last().unwrap();
    let attributes = json!({"path": "/bulkhead/records", "verb": "get"});
    assert_eq!(
        (&last["nonResourceAttributes"], &last["groups"]),
        (&attributes, &json!(["people"]))
    );
}

#[tokio::test]
async fn a_query_selects_records_and_the_client_reads_them() {
    let folder = tempfile::tempdir().unwrap();
    journal(
        folder.path(),
        &[Decision::Evicted, Decision::Held, Decision::Held, Decision::Released],
    );
    let (queries, _) = queries(Some(folder.path()));
    let ids = async |query: &str| {
        let (status, body) = get(&queries, &format!("{RECORDS}?{query}"), Some(READER)).await;
        assert_eq!(status, 200, "{body}");
        let records = client::parse(&body).unwrap();
        assert_eq!(records.problems, [""; 0]);
        let ids = records
            .records
            .iter()
            .map(|stored| stored.record.decision_id().to_string());
        ids.map(|id| id.trim_start_matches("3f9a1c2e55-").to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(ids("").await, ["1", "2", "3", "4"]);
    assert_eq!(ids("last=2").await, ["3", "4"]);
    assert_eq!(ids("about=default%2Fweb&decision=Held").await, ["2", "3"]);
    assert_eq!(ids("about=m1&decision=Held&decision=Released&last=2").await, ["3", "4"]);
    assert_eq!(ids("about=3f9a1c2e55-3").await, ["3"]);
    assert_eq!(ids("since=2&decision=Held").await, ["3"]);
    assert_eq!(ids("namespace=other").await, [""; 0]);
    let (status, body) = get(&queries, &format!("{RECORDS}?last=x"), Some(READER)).await;
    assert_eq!((status, body.contains("is not a number")), (400, true), "{body}");
}

#[tokio::test]
async fn the_endpoint_is_read_only_and_says_what_it_does_not_have() {
    let (queries, _) = queries(None);
    let (status, body) = get(&queries, "/metrics", Some(READER)).await;
    assert_eq!((status, body.contains("/bulkhead/records")), (404, true), "{body}");
    let (head, ()) = Request::post(RECORDS).body(()).unwrap().into_parts();
    assert_eq!(queries.answer_head(&head).unwrap().status(), 405);
    let (status, body) = get(&queries, RECORDS, Some(READER)).await;
    assert_eq!((status, body.contains("keeps no journal")), (503, true), "{body}");
    let (status, body) = get(&queries, EVICTIONS, Some(READER)).await;
    assert_eq!((status, body.contains("it is on standby")), (503, true), "{body}");
}

#[test]
fn an_answer_that_was_cut_off_is_an_error() {
    let error = client::parse("").unwrap_err();
    assert!(error.to_string().contains("cut off"), "{error}");
    let full = "{\"end\":{\"problems\":[\"damaged\"],\"truncated\":true}}\n";
    let problems = client::parse(full).unwrap().problems;
    assert_eq!(
        problems,
        ["damaged", "the answer was full: decisions before none are left out"]
    );
}

#[test]
fn arguments_that_clients_cannot_use_are_refused() {
    let check = |address: &str, url: Option<&str>, elects: bool, expected: Option<&str>| {
        let arguments = QueryArguments {
            query_bind_address: Some(address.parse().unwrap()),
            query_url: url.map(str::to_owned),
        };
        let error = arguments.check(elects).err().map(|error| error.to_string());
        match (error, expected) {
            (None, None) => {}
            (Some(error), Some(expected)) => assert!(error.contains(expected), "{error}"),
            (error, expected) => panic!("{error:?}, expected {expected:?}"),
        }
    };
    check("127.0.0.1:0", None, true, None);
    check("0.0.0.0:10371", Some("https://leader.example:443"), true, None);
    check("0.0.0.0:10371", None, true, Some("query-url"));
    check(
        "0.0.0.0:10371",
        Some("http://leader.example"),
        true,
        Some("must begin with https://"),
    );
    check("127.0.0.1:0", None, false, Some("find the address in the Lease"));
}

/// The whole way: TLS with the authority of the Lease, the token of the kubeconfig, and the answer.
#[tokio::test]
async fn the_client_asks_over_tls_with_the_authority_that_the_lease_has() {
    let folder = tempfile::tempdir().unwrap();
    journal(folder.path(), &[Decision::Evicted]);
    let arguments = QueryArguments {
        query_bind_address: Some("127.0.0.1:0".parse().unwrap()),
        query_url: None,
    };
    let sources = Sources {
        reviews: reviewer(Arc::default()),
        journal: Some(folder.path().to_path_buf()),
        queued: Arc::default(),
    };
    let endpoint = start(&arguments, sources).await.unwrap().unwrap();
    let leaders = |token: &str, endpoints: Vec<Advertised>| {
        let mut config = Config::new(http::Uri::from_static("https://hub"));
        config.auth_info = serde_json::from_value(json!({ "token": token })).unwrap();
        let limit = Duration::from_secs(30);
        client::Leaders {
            config,
            endpoints,
            limit,
        }
    };
    let query = client::Query::default();
    let gone = Advertised {
        url: "https://127.0.0.1:1".to_owned(),
        ..endpoint.advertised.clone()
    };
    let (found, errors) = leaders("reader", vec![gone, endpoint.advertised.clone()])
        .records(&query)
        .await
        .unwrap();
    assert_eq!(
        (found.len(), found[0].records.len(), errors.len()),
        (1, 1, 1),
        "{errors:?}"
    );
    assert!(errors[0].contains("https://127.0.0.1:1"), "{errors:?}");
    let refused = leaders("other", vec![endpoint.advertised.clone()])
        .records(&query)
        .await
        .unwrap_err();
    assert!(refused.to_string().contains("may not get"), "{refused}");
    let stranger = Advertised {
        ca: Certificate::self_made("127.0.0.1", k8s_openapi::jiff::civil::date(2099, 1, 1), None)
            .unwrap()
            .ca_pem,
        ..endpoint.advertised.clone()
    };
    let error = leaders("reader", vec![stranger]).records(&query).await.unwrap_err();
    assert!(error.to_string().contains("certificate"), "{error}");
}
