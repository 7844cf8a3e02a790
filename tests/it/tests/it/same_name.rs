//! Objects of two API groups whose bindings derive the same name.

use crate::support::{Folder, assert_held, run};

/// Returns a Gateway and the policy that places it.
fn gateway(group: &str, cluster: &str) -> String {
    format!(
        "apiVersion: {group}/v1\nkind: Gateway\nmetadata: {{name: public, namespace: default}}\nspec: {{a: b}}\n---\n\
         apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {{name: on-{cluster}, namespace: \
         default}}\nspec:\n  resourceSelectors: [{{apiVersion: {group}/v1, kind: Gateway, name: public}}]\n  placement: \
         {{clusterAffinity: {{clusterNames: [{cluster}]}}}}\n"
    )
}

const ISTIO: &str = "networking.istio.io";
const GATEWAY_API: &str = "gateway.networking.k8s.io";

/// Runs a scenario in which Istio's `Gateway/public` runs on member1 before a Gateway API one is applied with a
/// policy for member2.
fn check(folder: &str, events: &str, expect: &str) {
    let scenario = format!(
        "name: same-name\nduration: 4m\nclusters: [{{name: member1}}, {{name: member2}}]\ncustomKinds:\n  - {{apiVersion: \
         {ISTIO}/v1, kind: Gateway, plural: gateways}}\n  - {{apiVersion: {GATEWAY_API}/v1, kind: Gateway, plural: \
         gateways}}\nmanifests: [istio.yaml]\nevents:\n  - {{at: 40s, apply: gateway-api.yaml}}\n{events}expect:\n{expect}"
    );
    let (first, second) = (gateway(ISTIO, "member1"), gateway(GATEWAY_API, "member2"));
    let files = [
        ("scenario.yaml", scenario.as_str()),
        ("istio.yaml", &first),
        ("gateway-api.yaml", &second),
    ];
    let loaded = Folder::new(folder, &files).load().unwrap();
    for seed in 0..3 {
        assert_held(&run(&loaded, Some(seed)));
    }
}

fn delete(at: &str, group: &str) -> String {
    format!("  - {{at: {at}, delete: {{apiVersion: {group}/v1, kind: Gateway, namespace: default, name: public}}}}\n")
}

#[test]
fn a_second_object_of_the_same_binding_name_is_refused_and_the_first_one_stays() {
    let expect = "  - {at: 30s, binding: default/public-gateway, worksIn: [member1]}\n  \
                  - {from: 41s, binding: default/public-gateway, worksIn: [member1]}\n  \
                  - {at: 60s, event: {reason: ApplyPolicyFailed, name: public}}\n  \
                  - {decision: {decision: Removed, object: default/public-gateway, absent: true}}\n";
    // The rejected object is deleted, which affects nothing else.
    check("same-name-refused", &delete("2m", GATEWAY_API), expect);
}

#[test]
fn the_second_object_gets_its_turn_when_the_first_one_is_deleted() {
    let expect = "  - {at: 110s, binding: default/public-gateway, worksIn: [member1]}\n  \
                  - {at: 140s, binding: default/public-gateway, worksIn: [member2]}\n  \
                  - {decision: {decision: Removed, object: default/public-gateway, cluster: member1}}\n  \
                  - {decision: {decision: Applied, object: default/public-gateway, cluster: member2}}\n";
    check("same-name-turn", &delete("2m", ISTIO), expect);
}
