//! The client against an estimator on loopback that implements Karmada's service.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bulkhead_core::decide::schedule::capacity::{AssumedWorkload, EstimateRequest};
use bulkhead_core::model::{Binding, Component};
use bulkhead_estimator::messages::{
    MaxAvailableComponentSetsRequest, MaxAvailableComponentSetsResponse, MaxAvailableReplicasRequest,
    MaxAvailableReplicasResponse,
};
use bulkhead_estimator::{EstimatorPool, EstimatorQuery, Identity, Security};
use serde_json::json;
use tokio::net::TcpListener;
use tonic::body::Body;
use tonic::codegen::http;
use tonic::server::NamedService;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Certificate, Server, ServerTlsConfig};
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;

/// Behaviour of an estimator.
#[derive(Clone, Copy)]
enum Behaviour {
    Answers(i32),
    Fails,
    Hangs,
}

/// Requests that an estimator received, as text.
type Received = Arc<Mutex<Vec<String>>>;

#[derive(Clone)]
struct Estimator {
    behaviour: Behaviour,
    received: Received,
}

impl NamedService for Estimator {
    const NAME: &'static str = "github.com.karmada_io.karmada.pkg.estimator.service.Estimator";
}

impl Estimator {
    async fn answer(&self, received: String) -> Result<i32, Status> {
        self.received.lock().unwrap().push(received);
        match self.behaviour {
            Behaviour::Answers(number) => Ok(number),
            Behaviour::Fails => Err(Status::internal("no nodes could be listed")),
            Behaviour::Hangs => std::future::pending().await,
        }
    }
}

fn about<T>(request: &Request<T>) -> String {
    request.metadata().get("object").unwrap().to_str().unwrap().to_owned()
}

impl tower::Service<http::Request<Body>> for Estimator {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let estimator = self.clone();
        Box::pin(async move {
            if request.uri().path().ends_with("/MaxAvailableReplicas") {
                let mut server = tonic::server::Grpc::new(ProstCodec::default());
                let service = tower::service_fn(move |request: Request<MaxAvailableReplicasRequest>| {
                    let estimator = estimator.clone();
                    async move {
                        let about = about(&request);
                        let received = request.into_inner();
                        let needs = received.replica_requirements.unwrap();
                        let words = format!(
                            "{}: {about}: {:?}",
                            received.cluster,
                            needs.resource_request_bytes.keys()
                        );
                        let max_replicas = estimator.answer(words).await?;
                        Ok(Response::new(MaxAvailableReplicasResponse { max_replicas }))
                    }
                });
                return Ok(server.unary(service, request).await);
            }
            let mut server = tonic::server::Grpc::new(ProstCodec::default());
            let service = tower::service_fn(move |request: Request<MaxAvailableComponentSetsRequest>| {
                let estimator = estimator.clone();
                async move {
                    let received = request.into_inner();
                    let names: Vec<_> = received
                        .components
                        .iter()
                        .map(|component| component.name.clone())
                        .collect();
                    let assumed: Vec<_> = received
                        .assumed_workloads
                        .iter()
                        .map(|work| work.namespace.clone())
                        .collect();
                    let words = format!("{}: {} {names:?} {assumed:?}", received.cluster, received.namespace);
                    let max_sets = estimator.answer(words).await?;
                    Ok(Response::new(MaxAvailableComponentSetsResponse { max_sets }))
                }
            });
            Ok(server.unary(service, request).await)
        })
    }
}

/// Starts an estimator. Returns its address and the requests that it receives.
async fn start(behaviour: Behaviour, tls: Option<ServerTlsConfig>) -> (String, Received) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let received = Received::default();
    let estimator = Estimator {
        behaviour,
        received: Arc::clone(&received),
    };
    let mut server = Server::builder();
    if let Some(tls) = tls {
        server = server.tls_config(tls).unwrap();
    }
    tokio::spawn(
        server
            .add_service(estimator)
            .serve_with_incoming(TcpIncoming::from(listener)),
    );
    (address, received)
}

fn binding() -> Binding {
    serde_json::from_value(json!({
        "namespace": "ns", "name": "web-deployment",
        "spec": {
            "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "ns", "name": "web"},
            "replicas": 3, "replicaRequirements": {"resourceRequest": {"cpu": "1", "memory": "1Gi"}},
        },
    }))
    .unwrap()
}

fn estimate_request(clusters: &[&str], components: Option<Vec<Component>>) -> EstimateRequest {
    EstimateRequest {
        clusters: clusters.iter().map(|cluster| (*cluster).to_owned()).collect(),
        components,
    }
}

/// Queries the estimators. Returns the answers, with errors as text.
async fn ask(pool: &EstimatorPool, about: &EstimateRequest) -> BTreeMap<String, Result<i32, String>> {
    let assumed = BTreeMap::from([(
        "m1".to_owned(),
        vec![AssumedWorkload {
            namespace: "other".to_owned(),
            components: Vec::new(),
        }],
    )]);
    pool.ask(&EstimatorQuery {
        binding: &binding(),
        about,
        assumed: &assumed,
    })
    .await
    .0
}

fn pool(security: Security) -> EstimatorPool {
    EstimatorPool::new(security, Duration::from_secs(3))
}

#[tokio::test]
async fn every_cluster_is_asked_about_its_own_room() {
    let ((m1, received), (m2, _)) = (
        start(Behaviour::Answers(7), None).await,
        start(Behaviour::Answers(-1), None).await,
    );
    let pool = pool(Security::Plain);
    pool.connect("m1", &["127.0.0.1:1".to_owned(), m1]).await.unwrap();
    pool.connect("m2", &[m2]).await.unwrap();
    let answers = ask(&pool, &estimate_request(&["m1", "m2"], None)).await;
    assert_eq!(
        answers,
        BTreeMap::from([("m1".to_owned(), Ok(7)), ("m2".to_owned(), Ok(-1))])
    );
    let words = "m1: kind=Deployment, name=ns/web: [\"cpu\", \"memory\"]";
    assert_eq!(*received.lock().unwrap(), [words]);
}

#[tokio::test]
async fn sets_of_components_have_a_call_of_their_own() {
    let (address, received) = start(Behaviour::Answers(2), None).await;
    let pool = pool(Security::Plain);
    pool.connect("m1", &[address]).await.unwrap();
    let component = |name: &str| Component {
        name: name.to_owned(),
        replicas: 1,
        replica_requirements: None,
    };
    let answers = ask(
        &pool,
        &estimate_request(&["m1"], Some(vec![component("jm"), component("tm")])),
    )
    .await;
    assert_eq!(answers["m1"], Ok(2));
    assert_eq!(*received.lock().unwrap(), ["m1: ns [\"jm\", \"tm\"] [\"other\"]"]);
}

#[tokio::test]
async fn a_failure_is_reported_for_its_cluster_and_others_still_answer() {
    let (good, _) = start(Behaviour::Answers(7), None).await;
    let (bad, _) = start(Behaviour::Fails, None).await;
    let (hangs, _) = start(Behaviour::Hangs, None).await;
    let pool = EstimatorPool::new(Security::Plain, Duration::from_millis(300));
    for (cluster, address) in [("m1", good), ("m2", bad), ("m3", hangs)] {
        pool.connect(cluster, &[address]).await.unwrap();
    }
    pool.connect("m5", &["127.0.0.1:1".to_owned()]).await.unwrap_err();
    let answers = ask(&pool, &estimate_request(&["m1", "m2", "m3", "m4"], None)).await;
    assert_eq!(answers["m1"], Ok(7));
    assert_eq!(
        answers["m2"],
        Err("its estimator answered Internal: no nodes could be listed".to_owned())
    );
    assert_eq!(answers["m3"], Err("no answer in time".to_owned()));
    assert_eq!(answers["m4"], Err("there is no connection to its estimator".to_owned()));
    pool.disconnect("m1");
    assert!(ask(&pool, &estimate_request(&["m1"], None)).await["m1"].is_err());
}

/// CA with the certificates that it signed for server and client.
struct Authority {
    ca: String,
    server: (String, String),
    client: (String, String),
}

impl Authority {
    fn new() -> Self {
        let key = || rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let ca_key = key();
        let ca = params.self_signed(&ca_key).unwrap().pem();
        let issuer = rcgen::Issuer::new(params, ca_key);
        let sign = |name: &str| {
            let (params, key) = (rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap(), key());
            (params.signed_by(&key, &issuer).unwrap().pem(), key.serialize_pem())
        };
        Self {
            ca,
            server: sign("127.0.0.1"),
            client: sign("karmada-scheduler"),
        }
    }

    /// Returns a server configuration that admits only clients with a certificate of this authority.
    fn server(&self) -> ServerTlsConfig {
        let identity = tonic::transport::Identity::from_pem(&self.server.0, &self.server.1);
        ServerTlsConfig::new()
            .identity(identity)
            .client_ca_root(Certificate::from_pem(&self.ca))
    }

    fn identity(&self) -> Identity {
        Identity {
            certificate: self.client.0.clone().into(),
            key: self.client.1.clone().into(),
        }
    }
}

/// Connects a pool with that security to a server of that authority. Returns the answer.
async fn result_of(security: Security, server: &Authority) -> Result<i32, String> {
    let (address, _) = start(Behaviour::Answers(7), Some(server.server())).await;
    let pool = pool(security);
    pool.connect("m1", &[address])
        .await
        .map_err(|error| error.to_string())?;
    ask(&pool, &estimate_request(&["m1"], None)).await.remove("m1").unwrap()
}

#[tokio::test]
async fn with_mutual_tls_both_sides_must_show_a_certificate_of_the_right_authority() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    let verified = |trusted: &Authority, own: Option<Identity>| Security::Verified {
        ca: trusted.ca.clone().into(),
        identity: own,
    };
    assert_eq!(result_of(verified(&ours, Some(ours.identity())), &ours).await, Ok(7));
    assert!(
        result_of(verified(&ours, None), &ours).await.is_err(),
        "without a certificate"
    );
    assert!(
        result_of(verified(&ours, Some(theirs.identity())), &ours)
            .await
            .is_err(),
        "with another one's certificate"
    );
    assert!(
        result_of(verified(&theirs, Some(ours.identity())), &ours)
            .await
            .is_err(),
        "with a server nobody knows"
    );
    assert!(result_of(Security::Plain, &ours).await.is_err(), "in plain text");
    let anybody = Security::Unverified {
        identity: Some(ours.identity()),
    };
    assert_eq!(result_of(anybody, &ours).await, Ok(7));
    let garbage = Security::Verified {
        ca: b"no certificate".to_vec(),
        identity: None,
    };
    assert!(result_of(garbage, &ours).await.is_err());
}
