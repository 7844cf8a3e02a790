//! Answers to the challenges of registries: basic authentication, and tokens of a token server.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::header::AUTHORIZATION;
use http::{HeaderValue, StatusCode};
use http_auth::ChallengeRef;
use serde::Deserialize;

use super::{Client, Scope, body, is_permitted, unauthorized};
use crate::error::Cause;
use crate::{Credential, Reference};

/// Maximum size of the answer of a token server in bytes.
const TOKEN_BYTES_MAX: u64 = 1 << 20;
/// Identification of the program at a token server.
const CLIENT_ID: &str = "bulkhead";

#[derive(Deserialize)]
struct TokenAnswer {
    #[serde(default)]
    token: String,
    #[serde(default)]
    access_token: String,
}

impl Client {
    /// Returns the value of the header `Authorization` that answers the challenges, and true if it was made with
    /// credentials.
    pub(super) async fn authorize(
        &self,
        image: &Reference,
        scope: Scope,
        challenges: &[HeaderValue],
    ) -> Result<(HeaderValue, bool), Cause> {
        let credential = self.credentials.find(image).await;
        let credential = credential.map_err(|error| Cause::Access(error.to_string()))?;
        if let Some(Credential::RegistryToken(token)) = &credential {
            return Ok((bearer(token)?, true));
        }
        let texts: Vec<_> = challenges.iter().filter_map(|value| value.to_str().ok()).collect();
        let parsed = texts.iter().filter_map(|text| http_auth::parse_challenges(text).ok());
        let parsed: Vec<_> = parsed.flatten().collect();
        let of_scheme = |scheme: &str| parsed.iter().find(|one| one.scheme.eq_ignore_ascii_case(scheme));
        if let Some(challenge) = of_scheme("bearer") {
            let token = self.token(image, scope, challenge, credential.as_ref()).await?;
            return Ok((bearer(&token)?, credential.is_some()));
        }
        match (of_scheme("basic"), &credential) {
            (Some(_), Some(Credential::Basic { user, password })) => Ok((basic(user, password)?, true)),
            (Some(_), _) => Err(unauthorized(image, credential.is_some())),
            (None, _) => Err(Cause::Unexpected(format!(
                "401 of {} without a challenge for a user or a token",
                image.registry()
            ))),
        }
    }

    /// Gets a token from the server that the challenge names.
    async fn token(
        &self,
        image: &Reference,
        scope: Scope,
        challenge: &ChallengeRef<'_>,
        credential: Option<&Credential>,
    ) -> Result<String, Cause> {
        let parameter = |name: &str| {
            let found = challenge.params.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.to_unescaped())
        };
        let realm = parameter("realm").unwrap_or_default();
        let realm = reqwest::Url::parse(&realm)
            .map_err(|error| Cause::Unexpected(format!("the token server {realm:?} is not a URL: {error}")))?;
        if !is_permitted(&self.plain_http, &realm) {
            return Err(Cause::Unexpected(format!(
                "the token server {realm} is not reached over TLS, and would get the credentials; --plain-http names \
                 hosts without TLS"
            )));
        }
        let actions = match scope {
            Scope::Pull => "pull",
            Scope::Push => "pull,push",
        };
        let scope = format!("repository:{}:{actions}", image.repository());
        let service = parameter("service").unwrap_or_default();
        let mut fields = vec![("service", service), ("scope", scope)];
        let request = match credential {
            Some(Credential::IdentityToken(token)) => {
                fields.push(("grant_type", "refresh_token".to_owned()));
                fields.push(("refresh_token", token.clone()));
                fields.push(("client_id", CLIENT_ID.to_owned()));
                let mut form = realm.clone();
                form.query_pairs_mut().clear().extend_pairs(&fields);
                let form = form.query().unwrap_or_default().to_owned();
                let request = self.http.post(realm);
                request
                    .header("content-type", "application/x-www-form-urlencoded")
                    .body(form)
            }
            other => {
                let mut url = realm;
                url.query_pairs_mut().extend_pairs(&fields);
                let request = self.http.get(url);
                match other {
                    Some(Credential::Basic { user, password }) => request.header(AUTHORIZATION, basic(user, password)?),
                    _ => request,
                }
            }
        };
        let response = request.send().await.map_err(|error| Cause::of_request(&error))?;
        if response.status() == StatusCode::UNAUTHORIZED {
            return Err(unauthorized(image, credential.is_some()));
        }
        let response = body::check(response, image, &[StatusCode::OK]).await?;
        let text = body::read(response, TOKEN_BYTES_MAX, None).await?;
        let answer: TokenAnswer = serde_json::from_slice(&text)
            .map_err(|_| Cause::Unexpected("the answer of the token server is not JSON with a token".to_owned()))?;
        let token = if answer.token.is_empty() {
            answer.access_token
        } else {
            answer.token
        };
        if token.is_empty() {
            return Err(Cause::Unexpected(
                "the answer of the token server has no token".to_owned(),
            ));
        }
        Ok(token)
    }
}

fn bearer(token: &str) -> Result<HeaderValue, Cause> {
    secret(&format!("Bearer {token}"))
}

fn basic(user: &str, password: &str) -> Result<HeaderValue, Cause> {
    secret(&format!(
        "Basic {}",
        BASE64_STANDARD.encode(format!("{user}:{password}"))
    ))
}

/// Returns a header value that is not printed.
fn secret(text: &str) -> Result<HeaderValue, Cause> {
    let mut value = HeaderValue::from_str(text)
        .map_err(|_| Cause::Access("the token has characters that no header can have".to_owned()))?;
    value.set_sensitive(true);
    Ok(value)
}
