use http::Response;
use tower::{BoxError, service_fn};

use super::*;

/// Returns a client of a member that answers these paths with these codes, and no other path at all.
fn member(answers: &'static [(&'static str, u16)]) -> Client {
    let service = service_fn(move |request: Request<Body>| async move {
        let path = request.uri().path().to_owned();
        let Some((_, code)) = answers.iter().find(|(known, _)| *known == path) else {
            return std::future::pending::<Result<Response<Body>, BoxError>>().await;
        };
        Ok(Response::builder().status(*code).body(Body::empty())?)
    });
    Client::new(service, "default")
}

#[tokio::test(start_paused = true)]
async fn the_health_of_a_member_is_that_of_its_first_endpoint() {
    let check = async |answers, expected| assert_eq!(probe(&member(answers)).await, expected, "{answers:?}");
    check(&[("/readyz", 200)], Probe::Ready).await;
    check(&[("/readyz", 202)], Probe::NotReady).await;
    check(&[("/readyz", 500)], Probe::Unreachable).await;
    check(&[("/readyz", 404), ("/healthz", 200)], Probe::Ready).await;
    check(&[("/readyz", 404), ("/healthz", 503)], Probe::Unreachable).await;
    check(&[("/readyz", 404)], Probe::Unreachable).await;
    check(&[("/healthz", 200)], Probe::Unreachable).await;
}

#[tokio::test(start_paused = true)]
async fn a_member_that_does_not_answer_is_unreachable_after_the_time_limit() {
    let start = Instant::now();
    assert_eq!(probe(&member(&[])).await, Probe::Unreachable);
    assert_eq!(start.elapsed(), PROBE_TIME_MAX);
}
