/* Reports a StatefulSet as healthy while a share of its replicas is ready. */
#include "bulkhead.h"
#include "bulkhead_json.h"

static int64_t percent;

static void configure(const bh_value *config) {
    const bh_value *found = bh_json_at(config, "/percent");
    percent = found == NULL ? 100 : found->integer;
}

static int64_t count(bh_object observed, const char *pointer, int64_t otherwise) {
    int64_t value = otherwise;
    bh_integer(observed, pointer, &value);
    return value < 0 ? 0 : value > INT32_MAX ? INT32_MAX : value;
}

static bh_health_verdict interpret(bh_object observed) {
    int64_t desired = count(observed, "/spec/replicas", 1), ready = count(observed, "/status/readyReplicas", 0);
    if (desired == 0) return bh_healthy("NoReplicas", "");
    int64_t needed = (percent * desired + 99) / 100;
    const char *message = bh_format("%lld of %lld replicas are ready, %lld are needed", (long long)ready,
                                    (long long)desired, (long long)needed);
    return ready >= needed ? bh_healthy("EnoughReplicas", message) : bh_unhealthy("TooFewReplicas", message);
}

const bh_plugin bulkhead_plugin = {
    .name = "replica-share",
    .version = "0.1.0",
    .kinds = (bh_object_kind[]){{"apps/v1", "StatefulSet"}, {0}},
    .reusable = true,
    .config_schema = "{\"type\": [\"object\", \"null\"],"
                     " \"properties\": {\"percent\": {\"type\": \"integer\", \"minimum\": 1, \"maximum\": 100}},"
                     " \"additionalProperties\": false,"
                     " \"examples\": [null, {\"percent\": 50}]}",
    .configure = configure,
    .health = interpret,
};
