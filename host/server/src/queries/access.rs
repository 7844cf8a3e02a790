//! Authentication and authorization of queries by the API server of the control plane.

use std::time::Duration;

use http::header::AUTHORIZATION;
use http::{HeaderMap, StatusCode};
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::api::PostParams;
use kube::{Api, Client};
use tokio::sync::Semaphore;
use tracing::debug;

/// Maximum number of requests under review. Others wait for their turn.
const REVIEWS_MAX: usize = 8;
/// Time limit of the reviews of a request, including the wait.
const REVIEW_TIME_MAX: Duration = Duration::from_secs(10);

/// Reason for rejecting a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Denied {
    pub(crate) code: StatusCode,
    /// `CamelCase` reason, as in a Kubernetes `Status`.
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

impl Denied {
    fn new(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
        }
    }

    pub(crate) fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "Unauthorized", message)
    }

    pub(super) fn bad_request(message: String) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    pub(super) fn unavailable(message: &str) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", message)
    }
}

/// Reviewer of requests.
pub(crate) struct Access {
    tokens: Api<TokenReview>,
    accesses: Api<SubjectAccessReview>,
    turns: Semaphore,
}

impl Access {
    pub(crate) fn new(client: Client) -> Self {
        Self {
            tokens: Api::all(client.clone()),
            accesses: Api::all(client),
            turns: Semaphore::new(REVIEWS_MAX),
        }
    }

    /// Checks that the bearer token of a request belongs to a user who may `get` the path.
    pub(crate) async fn check(&self, headers: &HeaderMap, path: &str) -> Result<(), Denied> {
        self.check_token(bearer_token(headers)?, path).await
    }

    /// Checks that a token belongs to a user who may `get` the path.
    pub(crate) async fn check_token(&self, token: &str, path: &str) -> Result<(), Denied> {
        let reviewed = async {
            let Ok(_turn) = self.turns.acquire().await else {
                return Err(Denied::unavailable("the process is stopping"));
            };
            let user = self.user(token).await?;
            self.authorize(user, path).await
        };
        let in_time = tokio::time::timeout(REVIEW_TIME_MAX, reviewed).await;
        in_time.unwrap_or_else(|_| Err(Denied::unavailable("the API server did not review the request in time")))
    }

    /// Returns the user of a token.
    async fn user(&self, token: &str) -> Result<UserInfo, Denied> {
        let review = TokenReview {
            spec: TokenReviewSpec {
                token: Some(token.to_owned()),
                ..TokenReviewSpec::default()
            },
            ..TokenReview::default()
        };
        let review = self.tokens.create(&PostParams::default(), &review).await;
        let status = review.map_err(|error| not_reviewed(&error))?.status.unwrap_or_default();
        match status.user.filter(|_| status.authenticated == Some(true)) {
            Some(user) => Ok(user),
            None => Err(Denied::unauthorized(format!(
                "the API server does not accept the bearer token{}",
                status.error.map(|error| format!(": {error}")).unwrap_or_default()
            ))),
        }
    }

    async fn authorize(&self, user: UserInfo, path: &str) -> Result<(), Denied> {
        let name = user.username.clone().unwrap_or_default();
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                extra: user.extra,
                groups: user.groups,
                uid: user.uid,
                user: user.username,
                non_resource_attributes: Some(NonResourceAttributes {
                    path: Some(path.to_owned()),
                    verb: Some("get".to_owned()),
                }),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        };
        let review = self.accesses.create(&PostParams::default(), &review).await;
        let status = review.map_err(|error| not_reviewed(&error))?.status.unwrap_or_default();
        if status.allowed && status.denied != Some(true) {
            debug!(user = name, path, "query");
            return Ok(());
        }
        let message = format!(
            "user {name:?} may not get {path}; bind the ClusterRole bulkhead-queries to the user{}",
            status
                .reason
                .filter(|reason| !reason.is_empty())
                .map(|reason| format!(": {reason}"))
                .unwrap_or_default()
        );
        Err(Denied::new(StatusCode::FORBIDDEN, "Forbidden", message))
    }
}

fn bearer_token(headers: &HeaderMap) -> Result<&str, Denied> {
    let header = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let token = header.and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    });
    token.filter(|token| !token.is_empty()).ok_or_else(|| {
        Denied::unauthorized(
            "the request has no bearer token; a client certificate is not enough, so use a kubeconfig with a token, such \
             as one from `kubectl create token`",
        )
    })
}

/// Returns the error of a review that was not answered. It is logged too, because the caller cannot repair it.
fn not_reviewed(error: &kube::Error) -> Denied {
    let cause = bulkhead_runtime::causes::causes(error);
    tracing::warn!("cannot review a query: {cause}");
    Denied::unavailable(&format!("the API server did not review the request: {cause}"))
}
