use super::*;

#[test]
fn the_hint_of_the_target_gate_names_what_the_rule_reads() {
    for open in [true, false] {
        assert!(target_hint(PreCheck::Feasible, open).contains("ready"));
        let proposal = target_hint(PreCheck::Proposal, open);
        assert!(
            proposal.contains("selects") && !proposal.contains("ready"),
            "{proposal}"
        );
    }
    assert!(target_hint(PreCheck::Proposal, false).contains("spread constraint"));
}

#[test]
fn a_plugin_from_an_image_is_named_with_its_digest_and_its_signer() {
    let check = |image: serde_json::Value, expected: &str| {
        let slot: PolicySlot = serde_json::from_value(serde_json::json!({
            "policy": {"name": "hold", "version": "1.0", "engine": "lua"},
            "build": {"code": "c0de", "config": "c0", "image": image},
            "answers": ["health"],
        }))
        .unwrap();
        assert_eq!(gate_of(&slot), format!("{}, version 1.0{expected}", slot.policy));
    };
    let reference = "r.io/plugins/hold@sha256:1";
    check(serde_json::Value::Null, "");
    check(
        serde_json::json!({"reference": reference, "signer": "team"}),
        ", r.io/plugins/hold@sha256:1, signed by team",
    );
    check(
        serde_json::json!({"reference": reference}),
        ", r.io/plugins/hold@sha256:1, signature not required",
    );
}
