/* Reports the health of a Deployment. */
#include "bulkhead.h"

static bh_health_verdict interpret(bh_object observed) {
    int64_t desired, ready = 0;
    if (!bh_integer(observed, "/spec/replicas", &desired))
        return bh_unknown("NoReplicas", "spec.replicas is missing or not a number");
    bh_integer(observed, "/status/readyReplicas", &ready);
    const char *message = bh_format("%lld of %lld replicas are ready", (long long)ready, (long long)desired);
    return ready >= desired ? bh_healthy("Ready", message) : bh_unhealthy("NotReady", message);
}

const bh_plugin bulkhead_plugin = {
    .name = "{{name}}",
    .version = "0.1.0",
    .kinds = (bh_object_kind[]){{"apps/v1", "Deployment"}, {0}},
    .reusable = true,
    .health = interpret,
};
