//! Check of the registered webhooks: a registration outlives its process.

use crate::doctor::facts::{Endpoint, Facts, Webhook};
use crate::doctor::finding::{Section, count};

pub(super) fn check(facts: &Facts, section: &mut Section) {
    let answering = facts
        .webhooks
        .iter()
        .filter(|webhook| webhook.endpoint == Endpoint::Answers)
        .count();
    section.summary = format!(
        "{answering} of {} with a URL answer",
        count(facts.webhooks.len(), "webhook")
    );
    section.skipped = facts.webhooks.is_empty();
    for webhook in &facts.webhooks {
        let place = format!("{}, {}", webhook.configuration, webhook.name);
        match &webhook.endpoint {
            Endpoint::Answers => {}
            Endpoint::Refuses => {
                let what = format!("{} refuses connections; {}", webhook.url, effect(webhook));
                section.error(place, what, remedy(webhook));
            }
            Endpoint::Silent { why } => {
                let what = format!(
                    "{} accepts connections and does not answer: {why}; {}",
                    webhook.url,
                    effect(webhook)
                );
                section.error(place, what, remedy(webhook));
            }
            Endpoint::Unreachable { why } => {
                let what = format!("{} cannot be reached from this machine: {why}", webhook.url);
                let remedy = format!("check that the control plane reaches it; otherwise {}", remedy(webhook));
                section.warning(place, what, remedy);
            }
        }
    }
}

/// Returns the effect of an endpoint that does not answer.
fn effect(webhook: &Webhook) -> &'static str {
    match (is_of_interpreter(webhook), webhook.is_required) {
        (true, _) => "Karmada gets no answer about its kinds, so their health becomes Unknown",
        (false, true) => "the API server refuses every write of its kinds",
        (false, false) => "writes of its kinds are not checked",
    }
}

fn is_of_interpreter(webhook: &Webhook) -> bool {
    webhook.configuration.starts_with("ResourceInterpreter")
}

fn remedy(webhook: &Webhook) -> String {
    if webhook.name.ends_with(".bulkhead.dev") {
        "start bulkhead run again, or remove the registration with bulkhead uninstall".to_owned()
    } else {
        format!("start its server, or delete {}", webhook.configuration)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Severity;

    #[test]
    fn a_registration_without_a_process_is_an_error_in_every_mode() {
        let webhook = |configuration: &str, name: &str, is_required: bool, endpoint: Endpoint| Webhook {
            configuration: configuration.to_owned(),
            name: name.to_owned(),
            url: "https://127.0.0.1:8443".to_owned(),
            is_required,
            endpoint,
        };
        let interpreter = "ResourceInterpreterWebhookConfiguration bulkhead";
        let admission = "MutatingWebhookConfiguration bulkhead";
        let unreachable = Endpoint::Unreachable {
            why: "no route to host".to_owned(),
        };
        let silent = Endpoint::Silent {
            why: "it answered with 502 Bad Gateway".to_owned(),
        };
        for mode in ["report", "interpret", "finish", "evict", "all"] {
            let mut facts: Facts = serde_json::from_value(serde_json::json!({
                "now": "2026-08-01T12:00:00Z",
                "installation": {"modes": [mode], "controllers": []},
                "controlPlane": {},
            }))
            .unwrap();
            facts.webhooks = vec![
                webhook(interpreter, "interpret.bulkhead.dev", true, Endpoint::Refuses),
                webhook(admission, "admit-karmada.bulkhead.dev", true, Endpoint::Refuses),
                webhook(interpreter, "interpret.example.com", true, unreachable.clone()),
                webhook(admission, "admit.bulkhead.dev", false, Endpoint::Answers),
                webhook(interpreter, "interpret.bulkhead.dev", true, silent.clone()),
            ];
            let mut section = Section::new("webhooks");
            check(&facts, &mut section);
            assert_eq!(section.summary, "1 of 5 webhooks with a URL answer");
            let found: Vec<_> = section
                .findings
                .iter()
                .map(|one| (one.severity, one.what.as_str()))
                .collect();
            let [
                (Severity::Error, first),
                (Severity::Error, second),
                (Severity::Warning, third),
                (Severity::Error, fourth),
            ] = found.as_slice()
            else {
                panic!("{mode}: {found:?}")
            };
            assert!(
                first.ends_with("health becomes Unknown") && second.contains("every write"),
                "{found:?}"
            );
            assert!(third.ends_with("no route to host"), "{third}");
            assert!(
                fourth.contains("does not answer: it answered with 502 Bad Gateway; Karmada gets no answer"),
                "{fourth}"
            );
            assert!(
                section.findings[0].remedy.contains("bulkhead uninstall"),
                "{:?}",
                section.findings
            );
        }
    }
}
