//! The expectations of the examples hold for every seed, that is, for every timing of the members.

use crate::support::{assert_held, example, run};

fn check(name: &str, seeds: std::ops::Range<u64>) {
    let scenario = example(name);
    for seed in seeds {
        assert_held(&run(&scenario, Some(seed)));
    }
}

#[test]
fn divided_replicas_move_and_nothing_moves_back() {
    check("nginx-divided", 0..20);
}

#[test]
fn a_duplicated_copy_is_made_elsewhere_and_the_survivor_is_not_touched() {
    check("nginx-duplicated", 0..20);
}

#[test]
fn replicas_are_packed_onto_as_few_clusters_as_have_room() {
    check("aggregated", 0..3);
}

#[test]
fn replicas_stay_in_two_regions_when_one_is_lost() {
    check("two-regions", 0..6);
}

#[test]
fn the_second_affinity_group_is_used_when_nothing_is_left_of_the_first() {
    check("failover-groups", 0..3);
}

#[test]
fn a_wasm_filter_and_a_lua_score_change_a_placement() {
    check("own-scheduler", 0..3);
}

#[test]
fn the_old_copy_is_held_until_the_grace_period_ends_when_the_new_one_never_is_healthy() {
    check("never-healthy", 0..3);
}

#[test]
fn a_wasm_plugin_holds_the_old_copy_and_another_one_releases_it() {
    check("change-freeze", 0..3);
}

#[test]
fn the_health_of_custom_resources_comes_from_a_customization_and_from_a_component() {
    check("custom-resources", 0..3);
}

#[test]
fn what_a_workload_needs_follows_it_and_leaves_when_it_is_not_needed_any_more() {
    check("dependencies", 0..5);
}

#[test]
fn a_healthy_cluster_is_drained_and_nothing_is_ever_down() {
    check("drain", 0..3);
}
