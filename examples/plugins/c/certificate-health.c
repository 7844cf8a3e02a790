/* Reports the health of a cert-manager Certificate from its conditions. */
#include "bulkhead.h"

/* Returns the pointer of a condition; NULL if there is none. */
static const char *place(bh_texts types, const char *name) {
    for (size_t i = 0; i < types.length; i++)
        if (bh_equal(types.items[i], name)) return bh_format("/status/conditions/%zu", i);
    return NULL;
}

static const char *field(bh_object observed, const char *condition, const char *name) {
    const char *text = bh_text(observed, bh_format("%s/%s", condition, name));
    return text == NULL ? "" : text;
}

static bh_health_verdict interpret(bh_object observed) {
    bh_texts types = bh_each_text(observed, "/status/conditions", "/type");
    const char *ready = place(types, "Ready"), *issuing = place(types, "Issuing");
    if (ready == NULL) return bh_unknown("NotObserved", "there is no condition Ready");
    int64_t generation = 0;
    bh_integer(observed, "/metadata/generation", &generation);
    int64_t seen = generation;
    bh_integer(observed, bh_format("%s/observedGeneration", ready), &seen);
    if (seen < generation)
        return bh_unknown("NotObserved", bh_format("the condition is about generation %lld of %lld", (long long)seen,
                                                   (long long)generation));
    const char *status = field(observed, ready, "status"), *message = field(observed, ready, "message");
    if (bh_equal(status, "True")) return bh_healthy("Ready", message);
    if (!bh_equal(status, "False")) return bh_unknown("ReadyUnknown", message);
    if (issuing != NULL && bh_equal(field(observed, issuing, "status"), "True"))
        return bh_unknown("Issuing", field(observed, issuing, "message"));
    return bh_unhealthy("NotReady", message);
}

const bh_plugin bulkhead_plugin = {
    .name = "certificate-health",
    .version = "0.1.0",
    .kinds = (bh_object_kind[]){{"cert-manager.io/v1", "Certificate"}, {0}},
    .reusable = true,
    .health = interpret,
};
