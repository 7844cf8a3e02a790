/* Taints a cluster that has not been ready for a while, and removes the taint when it has been ready for longer. */
#include "bulkhead.h"
#include "bulkhead_json.h"

#define KEY "example.io/unstable"

static int64_t add_after, remove_after; /* seconds */

static void configure(const bh_value *config) {
    const bh_value *add = bh_json_at(config, "/addAfterSeconds"), *remove = bh_json_at(config, "/removeAfterSeconds");
    add_after = add == NULL ? 60 : add->integer;
    remove_after = remove == NULL ? 300 : remove->integer;
}

static void decide(bh_cluster cluster, bh_taint_changes *changes) {
    bh_condition ready;
    if (!bh_cluster_condition(cluster, "Ready", &ready) || ready.last_transition_s < 0) return;
    long long age = (long long)(bh_now_ms() / 1000 - ready.last_transition_s);
    bool is_ready = ready.status == BH_TRUE, is_tainted = false;
    bh_taints taints = bh_cluster_taints(cluster);
    for (size_t i = 0; i < taints.length; i++) is_tainted = is_tainted || bh_equal(taints.items[i].key, KEY);
    if (!is_ready && !is_tainted && age >= add_after)
        bh_add_taint(changes, KEY, BH_NO_SCHEDULE, "NotReadyForLong",
                     bh_format("not ready for %lld s, the limit is %lld s", age, (long long)add_after));
    if (is_ready && is_tainted && age >= remove_after)
        bh_remove_taint(changes, KEY, BH_NO_SCHEDULE, "ReadyForLong",
                        bh_format("ready for %lld s, the limit is %lld s", age, (long long)remove_after));
}

const bh_plugin bulkhead_plugin = {
    .name = "condition-history",
    .version = "0.1.0",
    .taint_keys = (const char *const[]){KEY, NULL},
    .reusable = true,
    .config_schema =
        "{\"type\": [\"object\", \"null\"],"
        " \"properties\": {\"addAfterSeconds\": {\"type\": \"integer\", \"minimum\": 0, \"maximum\": 86400},"
        " \"removeAfterSeconds\": {\"type\": \"integer\", \"minimum\": 0, \"maximum\": 86400}},"
        " \"additionalProperties\": false,"
        " \"examples\": [null, {\"addAfterSeconds\": 30, \"removeAfterSeconds\": 600}]}",
    .configure = configure,
    .cluster_taint = decide,
};
