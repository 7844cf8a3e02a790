/* Taints a cluster whose pods are nearly all in use, and removes the taint when there is room again. */
#include "bulkhead.h"
#include "bulkhead_json.h"

#define KEY "example.io/nearly-full"

static int64_t add_at, remove_below; /* percent */

static void configure(const bh_value *config) {
    const bh_value *add = bh_json_at(config, "/addAtPercent"), *remove = bh_json_at(config, "/removeBelowPercent");
    add_at = add == NULL ? 90 : add->integer;
    remove_below = remove == NULL ? 75 : remove->integer;
}

static void decide(bh_cluster cluster, bh_taint_changes *changes) {
    bh_object document = bh_cluster_document(cluster);
    int64_t allocatable = 0, allocated = 0;
    bh_quantity_milli(document, "/status/resourceSummary/allocatable/pods", &allocatable);
    bh_quantity_milli(document, "/status/resourceSummary/allocated/pods", &allocated);
    if (allocatable <= 0) return;
    int used = (int)fmin(100.0 * fmax((double)allocated, 0.0) / (double)allocatable, 999.0);
    const char *message = bh_format("%d %% of the pods are in use", used);
    bool is_tainted = false;
    bh_taints taints = bh_cluster_taints(cluster);
    for (size_t i = 0; i < taints.length; i++) is_tainted = is_tainted || bh_equal(taints.items[i].key, KEY);
    if (!is_tainted && used >= add_at) bh_add_taint(changes, KEY, BH_PREFER_NO_SCHEDULE, "NearlyFull", message);
    if (is_tainted && used < remove_below)
        bh_remove_taint(changes, KEY, BH_PREFER_NO_SCHEDULE, "RoomForPods", message);
}

const bh_plugin bulkhead_plugin = {
    .name = "nearly-full",
    .version = "0.1.0",
    .taint_keys = (const char *const[]){KEY, NULL},
    .reusable = true,
    .config_schema = "{\"type\": [\"object\", \"null\"],"
                     " \"properties\": {\"addAtPercent\": {\"type\": \"integer\", \"minimum\": 1, \"maximum\": 100},"
                     " \"removeBelowPercent\": {\"type\": \"integer\", \"minimum\": 1, \"maximum\": 100}},"
                     " \"additionalProperties\": false,"
                     " \"examples\": [null, {\"addAtPercent\": 95, \"removeBelowPercent\": 80}]}",
    .configure = configure,
    .cluster_taint = decide,
};
