/* Holds an eviction until the old copy reports a complete backup, or until that takes too long. */
#include "bulkhead.h"
#include "bulkhead_json.h"

#define RECHECK 30 /* seconds between two checks */

static int64_t max_seconds;

static void configure(const bh_value *config) {
    const bh_value *found = bh_json_at(config, "/maxSeconds");
    max_seconds = found == NULL ? 3600 : found->integer;
}

static bh_eviction_verdict check(bh_binding binding, bh_task task) {
    const char *from = bh_task_from_cluster(task), *phase = NULL;
    bh_observations reports = bh_binding_observed(binding);
    bh_texts clusters = bh_observations_clusters(reports), phases = bh_observations_text(reports, "/backup/phase");
    for (size_t i = 0; i < clusters.length; i++)
        if (phase == NULL && bh_equal(clusters.items[i], from)) phase = phases.items[i];
    if (bh_equal(phase, "Completed")) return bh_release("BackupCompleted", "");
    const char *message = bh_format("the backup in %s is %s", from, phase == NULL ? "missing" : phase);
    int64_t since, left = RECHECK;
    if (bh_task_since_s(task, &since)) left = max_seconds - (bh_now_ms() / 1000 - since);
    if (left <= 0)
        return bh_release("BackupOverdue", bh_format("%s after %lld s", message, (long long)max_seconds));
    bh_eviction_verdict verdict = bh_hold("BackupPending", message);
    verdict.recheck_after_s = (uint32_t)(left < RECHECK ? left : RECHECK);
    return verdict;
}

const bh_plugin bulkhead_plugin = {
    .name = "backup-first",
    .version = "0.1.0",
    .reusable = true,
    .config_schema = "{\"type\": [\"object\", \"null\"],"
                     " \"properties\": {\"maxSeconds\": {\"type\": \"integer\", \"minimum\": 1, \"maximum\": 604800}},"
                     " \"additionalProperties\": false,"
                     " \"examples\": [null, {\"maxSeconds\": 600}]}",
    .configure = configure,
    .eviction_check = check,
};
