/* Interprets replicas and health of a custom resource, here a Game of example.io/v1. */
#include "bulkhead.h"

static bh_health_verdict interpret(bh_object observed) {
    const char *phase = bh_text(observed, "/status/phase");
    if (phase == NULL) return bh_unknown("NoPhase", "");
    if (bh_equal(phase, "Running")) return bh_healthy("Running", "");
    return bh_unhealthy("NotRunning", bh_format("its phase is %s", phase));
}

static bh_replicas replicas(bh_object template_) {
    int64_t rooms = 0;
    bh_integer(template_, "/spec/rooms", &rooms);
    if (rooms < 0) rooms = 0;
    return (bh_replicas){.count = rooms > INT32_MAX ? INT32_MAX : (int32_t)rooms};
}

static void revise_replicas(bh_object template_, int32_t replicas, bh_edits *edits) {
    if (bh_kind_of(template_, "/spec") == BH_MAP)
        bh_set(edits, "/spec/rooms", bh_format("%d", replicas));
    else
        bh_set(edits, "/spec", bh_format("{\"rooms\": %d}", replicas));
}

const bh_plugin bulkhead_plugin = {
    .name = "{{name}}",
    .version = "0.1.0",
    .kinds = (bh_object_kind[]){{"example.io/v1", "Game"}, {0}},
    .reusable = true,
    .health = interpret,
    .replicas = replicas,
    .revise_replicas = revise_replicas,
};
