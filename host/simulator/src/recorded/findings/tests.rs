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
