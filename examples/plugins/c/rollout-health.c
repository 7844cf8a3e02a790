/* Reports the health of an Argo Rollout from the phase that its controller writes. */
#include "bulkhead.h"

static bh_health_verdict interpret(bh_object observed) {
    int64_t generation = 0;
    bh_integer(observed, "/metadata/generation", &generation);
    /* The controller writes the number as a text. */
    const char *seen = bh_text(observed, "/status/observedGeneration");
    if (seen == NULL) seen = "0";
    if (!bh_equal(seen, bh_format("%lld", (long long)generation)))
        return bh_unknown("NotObserved",
                          bh_format("the controller has seen generation %s of %lld", seen, (long long)generation));
    const char *phase = bh_text(observed, "/status/phase");
    const char *message = bh_text(observed, "/status/message");
    if (bh_equal(phase, "Healthy") || bh_equal(phase, "Paused")) return bh_healthy(phase, message);
    if (bh_equal(phase, "Degraded") || bh_equal(phase, "Progressing")) return bh_unhealthy(phase, message);
    return bh_unknown("UnknownPhase", message);
}

const bh_plugin bulkhead_plugin = {
    .name = "rollout-health",
    .version = "0.1.0",
    .kinds = (bh_object_kind[]){{"argoproj.io/v1alpha1", "Rollout"}, {0}},
    .reusable = true,
    .health = interpret,
};
