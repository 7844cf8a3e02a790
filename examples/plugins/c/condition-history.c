/* Taints a cluster whose condition Ready keeps changing, and removes the taint when it has been stable for a while. */
#include "bulkhead.h"
#include "bulkhead_json.h"

#include <stdlib.h>

#define KEY "example.io/flapping"

static int64_t least_changes, window; /* number, seconds */

static void configure(const bh_value *config) {
    const bh_value *changes = bh_json_at(config, "/changes"), *seconds = bh_json_at(config, "/windowSeconds");
    least_changes = changes == NULL ? 3 : changes->integer;
    window = seconds == NULL ? 600 : seconds->integer;
}

/* Reads the seconds of a time such as "2026-07-01T12:30:00Z" since the Unix epoch. */
static bool seconds_of(const char *time, int64_t *seconds) {
    long parts[6]; /* year, month, day, hour, minute, second */
    for (int i = 0; i < 6; i++) {
        char *end = NULL;
        if (time == NULL || *time < '0' || *time > '9') return false;
        parts[i] = strtol(time, &end, 10);
        time = *end == '\0' ? NULL : end + 1;
    }
    /* Years begin in March, so that the leap day is the last one. */
    int64_t year = parts[1] > 2 ? parts[0] : parts[0] - 1, month = parts[1] > 2 ? parts[1] - 3 : parts[1] + 9;
    int64_t days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + parts[2] - 719469;
    *seconds = days * 86400 + parts[3] * 3600 + parts[4] * 60 + parts[5];
    return true;
}

static void decide(bh_cluster cluster, bh_taint_changes *changes) {
    int64_t now = bh_now_ms() / 1000, since, recent = 0;
    bh_texts history = bh_each_text(bh_cluster_document(cluster), "/conditionHistory/Ready", "/since");
    /* The first entry is the start of the history. */
    for (size_t i = 1; i < history.length; i++)
        if (seconds_of(history.items[i], &since) && now - since < window) recent++;
    bh_condition ready;
    bool is_ready = bh_cluster_condition(cluster, "Ready", &ready) && ready.status == BH_TRUE, is_tainted = false;
    bh_taints taints = bh_cluster_taints(cluster);
    for (size_t i = 0; i < taints.length; i++) is_tainted = is_tainted || bh_equal(taints.items[i].key, KEY);
    if (!is_tainted && recent >= least_changes)
        bh_add_taint(changes, KEY, BH_NO_SCHEDULE, "Flapping",
                     bh_format("the condition Ready has changed %lld times in %lld s", (long long)recent,
                               (long long)window));
    if (is_tainted && is_ready && recent == 0)
        bh_remove_taint(changes, KEY, BH_NO_SCHEDULE, "Stable",
                        bh_format("the condition Ready has not changed in %lld s", (long long)window));
}

const bh_plugin bulkhead_plugin = {
    .name = "condition-history",
    .version = "0.1.0",
    .taint_keys = (const char *const[]){KEY, NULL},
    .reusable = true,
    .config_schema = "{\"type\": [\"object\", \"null\"],"
                     " \"properties\": {\"changes\": {\"type\": \"integer\", \"minimum\": 1, \"maximum\": 7},"
                     " \"windowSeconds\": {\"type\": \"integer\", \"minimum\": 1, \"maximum\": 86400}},"
                     " \"additionalProperties\": false,"
                     " \"examples\": [null, {\"changes\": 5, \"windowSeconds\": 3600}]}",
    .configure = configure,
    .cluster_taint = decide,
};
