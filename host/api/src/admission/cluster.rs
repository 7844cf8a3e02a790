//! Defaults and validation of `Cluster`
//! (Karmada: `pkg/apis/cluster/mutation/mutation.go`, `pkg/apis/cluster/validation/validation.go`).
//!
//! Karmada's aggregated API server does this and more. Not implemented here: the nine default resource models, the
//! normalisation of given models, and the syntax check of `apiEndpoint`.

use bulkhead_core::label;
use bulkhead_core::model::{ClusterSpec, Taint, TaintEffect};
use bulkhead_core::time::Time;
use serde_json::Value;

use super::AdmissionOptions;
use super::denied::Denied;

/// Maximum length of a name: 63 characters of a DNS label, less the prefix of the execution namespace and a reserve.
const NAME_BYTES_MAX: usize = 48;

/// Moves the deprecated `zone` to `zones`, and sets the time of evicting taints; without it a toleration never
/// expires.
pub(super) fn default_spec(spec: &mut ClusterSpec, now: Time) {
    if spec.zones.is_empty() && !spec.zone.is_empty() {
        spec.zones.push(std::mem::take(&mut spec.zone));
    }
    for taint in spec.taints.iter_mut().filter(|taint| taint.effect.evicts()) {
        taint.time_added.get_or_insert(now.truncated());
    }
}

/// Validates a spec after [`default_spec`].
pub(super) fn validate(name: &str, spec: &ClusterSpec, options: AdmissionOptions) -> Result<(), Denied> {
    label::check_dns_label(name, NAME_BYTES_MAX).map_err(|detail| Denied::invalid("metadata.name", name, detail))?;
    let references = [
        ("secretRef", spec.secret_ref.as_ref()),
        ("impersonatorSecretRef", spec.impersonator_secret_ref.as_ref()),
    ];
    for (field, reference) in references {
        validate_secret_reference(reference, &format!("spec.{field}"))?;
    }
    validate_proxy(&spec.proxy_url)?;
    for (field, value) in [("provider", &spec.provider), ("region", &spec.region)] {
        label::check_value(value).map_err(|detail| Denied::invalid(format!("spec.{field}"), value, detail))?;
    }
    if !spec.zone.is_empty() {
        return Err(Denied::invalid(
            "spec.zone",
            &spec.zone,
            "zone and zones cannot co-exist",
        ));
    }
    for (index, zone) in spec.zones.iter().enumerate() {
        label::check_value(zone).map_err(|detail| Denied::invalid(format!("spec.zones[{index}]"), zone, detail))?;
    }
    validate_taints(&spec.taints, options)
}

/// Checks that a proxy URL has a host and a scheme that clients support.
fn validate_proxy(url: &str) -> Result<(), Denied> {
    if url.is_empty() {
        return Ok(());
    }
    let invalid = |detail: String| Err(Denied::invalid("spec.proxyURL", url, detail));
    let Some((scheme, rest)) = url.split_once("://") else {
        return invalid("must be a URL with a scheme".to_owned());
    };
    if !["http", "https", "socks5"].contains(&scheme) {
        return invalid(format!("unsupported scheme {scheme:?}, must be http, https, or socks5"));
    }
    if rest.is_empty() || rest.starts_with('/') {
        return invalid("must have a host".to_owned());
    }
    Ok(())
}

fn validate_secret_reference(reference: Option<&Value>, path: &str) -> Result<(), Denied> {
    let Some(reference) = reference.filter(|reference| !reference.is_null()) else {
        return Ok(());
    };
    for part in ["namespace", "name"] {
        if reference.get(part).and_then(Value::as_str).is_none_or(str::is_empty) {
            return Err(Denied::required(format!("{path}.{part}"), ""));
        }
    }
    Ok(())
}

fn validate_taints(taints: &[Taint], options: AdmissionOptions) -> Result<(), Denied> {
    for (index, taint) in taints.iter().enumerate() {
        let at = |name: &str| format!("spec.taints[{index}].{name}");
        label::check_key(&taint.key).map_err(|detail| Denied::invalid(at("key"), &taint.key, detail))?;
        label::check_value(&taint.value).map_err(|detail| Denied::invalid(at("value"), &taint.value, detail))?;
        let unsupported = match taint.effect {
            TaintEffect::NoSchedule | TaintEffect::NoExecute => false,
            TaintEffect::PreferNoSchedule | TaintEffect::Other(_) => true,
            TaintEffect::PreferNoExecute => !options.allow_prefer_no_execute,
        };
        if unsupported {
            return Err(Denied::not_supported(
                at("effect"),
                &taint.effect,
                &["NoSchedule", "NoExecute"],
            ));
        }
        if taints[..index].iter().any(|earlier| earlier.same_identity(taint)) {
            return Err(Denied::duplicate(format!("spec.taints[{index}]"), taint));
        }
    }
    Ok(())
}
