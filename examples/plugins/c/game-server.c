/* Interprets replicas, requirements, retained fields and health of a GameServer of example.io/v1. */
#include "bulkhead.h"

#define CPU_MAX 1000000000 /* largest processor time of a room in thousandths of a core */

static bh_health_verdict interpret(bh_object observed) {
    const char *phase = bh_text(observed, "/status/phase");
    if (phase == NULL) return bh_unknown("NoPhase", "");
    if (bh_equal(phase, "Running")) return bh_healthy("Running", "");
    return bh_unhealthy("NotRunning", bh_format("its phase is %s", phase));
}

static bool rooms(bh_object server, int32_t *count) {
    int64_t found;
    if (!bh_integer(server, "/spec/rooms", &found)) return false;
    *count = (int32_t)(found < 0 ? 0 : found > INT32_MAX ? INT32_MAX : found);
    return true;
}

/* Adds the edits that write the rooms of a server. */
static void set_rooms(bh_object server, int32_t count, bh_edits *edits) {
    if (bh_kind_of(server, "/spec") == BH_MAP)
        bh_set(edits, "/spec/rooms", bh_format("%d", count));
    else
        bh_set(edits, "/spec", bh_format("{\"rooms\": %d}", count));
}

static bh_replicas replicas(bh_object template_) {
    bh_replicas found = {0};
    rooms(template_, &found.count);
    int64_t milli = 0;
    bh_quantity_milli(template_, "/spec/roomCpu", &milli);
    if (milli <= 0) return found;
    bh_request *request = bh_allocate(sizeof *request);
    bh_requirements *requirements = bh_allocate(sizeof *requirements);
    *request = (bh_request){"cpu", bh_format("%lldm", (long long)(milli < CPU_MAX ? milli : CPU_MAX))};
    *requirements = (bh_requirements){.requests = request, .requests_length = 1};
    found.requirements = requirements;
    return found;
}

static void revise_replicas(bh_object template_, int32_t replicas, bh_edits *edits) {
    set_rooms(template_, replicas, edits);
}

static void retain(bh_object desired, bh_object observed, bh_edits *edits) {
    bool is_autoscaled = false;
    int32_t count;
    bh_boolean(observed, "/spec/autoscaled", &is_autoscaled);
    if (is_autoscaled && rooms(observed, &count)) set_rooms(desired, count, edits);
}

const bh_plugin bulkhead_plugin = {
    .name = "game-server",
    .version = "0.1.0",
    .kinds = (bh_object_kind[]){{"example.io/v1", "GameServer"}, {0}},
    .reusable = true,
    .health = interpret,
    .replicas = replicas,
    .revise_replicas = revise_replicas,
    .retain = retain,
};
