/* Taints a cluster that is not ready, and removes the taint when it is ready again. */
#include "bulkhead.h"

#define KEY "example.io/not-ready"

static void decide(bh_cluster cluster, bh_taint_changes *changes) {
    bh_condition ready;
    if (!bh_cluster_condition(cluster, "Ready", &ready)) return;
    bool is_ready = ready.status == BH_TRUE, is_tainted = false;
    bh_taints taints = bh_cluster_taints(cluster);
    for (size_t i = 0; i < taints.length; i++) is_tainted = is_tainted || bh_equal(taints.items[i].key, KEY);
    if (!is_ready && !is_tainted) bh_add_taint(changes, KEY, BH_NO_SCHEDULE, "NotReady", ready.message);
    if (is_ready && is_tainted) bh_remove_taint(changes, KEY, BH_NO_SCHEDULE, "Ready", "it is ready again");
}

const bh_plugin bulkhead_plugin = {
    .name = "{{name}}",
    .version = "0.1.0",
    .taint_keys = (const char *const[]){KEY, NULL},
    .reusable = true,
    .cluster_taint = decide,
};
