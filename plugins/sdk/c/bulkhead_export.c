/* Exports of a plugin. Built for WebAssembly only. Offsets of replies follow from the contract.
 *
 * The build defines one macro for each interface that the component exports, such as BULKHEAD_HEALTH.
 */
#include "bulkhead.h"
#include "bulkhead_abi.h"
#include "bulkhead_json.h"
#include "bulkhead_memory.h"

#include <string.h>

/* Handles that are released when the call ends. */
typedef struct { void (*drop)(u32); u32 handle; } held;
static struct { held *items; size_t length, room; } handles;

u32 bh_release_later(u32 handle, void (*drop)(u32)) {
    handles.items = bh_grow(handles.items, handles.length, &handles.room, sizeof *handles.items);
    handles.items[handles.length++] = (held){drop, handle};
    return handle;
}

static bh_object object_of(u32 handle) { return (bh_object){bh_release_later(handle, object_drop)}; }
static void put_u32(uint8_t *at, u32 value) { memcpy(at, &value, 4); }

/* Replies. */
static void put_text(uint8_t *at, const char *text) {
    if (text == NULL) text = "";
    put_u32(at, (u32)(uintptr_t)text);
    put_u32(at + 4, (u32)strlen(text));
}
static inline void put_optional_text(uint8_t *at, const char *text) {
    if (text == NULL) return;
    at[0] = 1;
    put_text(at + 4, text);
}
static inline void put_reason(uint8_t *at, bh_reason reason) {
    put_text(at, reason.code == NULL ? "Unspecified" : reason.code);
    put_text(at + 8, reason.message);
}
static uint8_t *put_list(uint8_t *at, size_t length, size_t size) {
    uint8_t *items = bh_allocate(length * size);
    put_u32(at, (u32)(uintptr_t)items);
    put_u32(at + 4, (u32)length);
    return items;
}

static void begin(void) {
    bh_begin();
    begin_call();
}

/* Ends a call: releases its handles, and returns its reply, or its error in place of it. */
static uint8_t *end(uint8_t *reply) {
    while (handles.length > 0) {
        held last = handles.items[--handles.length];
        last.drop(last.handle);
    }
    handles.items = NULL;
    handles.room = 0;
    if (bh_current_error.kind != BH_NO_ERROR) {
        memset(reply, 0, 16);
        reply[0] = 1;
        reply[4] = (uint8_t)(bh_current_error.kind - BH_UNSUPPORTED);
        put_text(reply + 8, bh_current_error.message);
    }
    bh_current_error.kind = BH_NO_ERROR;
    bh_end();
    return reply;
}

EXPORT("plugin", "describe") uint8_t *export_describe(void) {
    begin();
    const bh_plugin *own = &bulkhead_plugin;
    uint8_t *reply = bh_allocate(60), *items;
    put_text(reply, own->name);
    put_text(reply + 8, own->version);
    put_text(reply + 16, own->description);
    size_t length = 0;
    while (own->kinds != NULL && own->kinds[length].kind != NULL) length++;
    items = put_list(reply + 24, length, 16);
    for (size_t i = 0; i < length; i++, items += 16) {
        put_text(items, own->kinds[i].api_version);
        put_text(items + 8, own->kinds[i].kind);
    }
    for (length = 0; own->taint_keys != NULL && own->taint_keys[length] != NULL;) length++;
    items = put_list(reply + 32, length, 8);
    for (size_t i = 0; i < length; i++) put_text(items + 8 * i, own->taint_keys[i]);
    put_text(reply + 40, own->config_schema);
    reply[48] = own->reusable;
    items = put_list(reply + 52, 1, 16);
    put_text(items, "language");
    put_text(items + 8, "c");
    return end(reply);
}

/* The memory of the text began before the call. */
EXPORT("plugin", "configure") uint8_t *export_configure(const char *text, size_t length) {
    begin_call();
    uint8_t *reply = bh_allocate(16);
    char *copy = bh_allocate(length);
    if (length > 0) memcpy(copy, text, length);
    if (bulkhead_plugin.configure != NULL) {
        const bh_value *config = bh_json_parse(copy);
        if (config == NULL) bh_fail("the host sent a configuration that is not JSON");
        else bulkhead_plugin.configure(config);
    }
    return end(reply);
}

static void missing(const char *function) { bh_fail(bh_format("bulkhead_plugin has no function %s", function)); }

#ifdef BULKHEAD_HEALTH
EXPORT("health", "interpret") uint8_t *export_health(u32 observed) {
    begin();
    uint8_t *reply = bh_allocate(24);
    bh_object object = object_of(observed);
    if (bulkhead_plugin.health == NULL) return missing("health"), end(reply);
    bh_health_verdict verdict = bulkhead_plugin.health(object);
    reply[4] = (uint8_t)verdict.state;
    put_reason(reply + 8, verdict.reason);
    return end(reply);
}
#endif

#ifdef BULKHEAD_TAINTS
EXPORT("taints", "decide") uint8_t *export_taints(u32 cluster) {
    begin();
    uint8_t *reply = bh_allocate(16), *items;
    bh_cluster input = {bh_release_later(cluster, cluster_drop)};
    if (bulkhead_plugin.cluster_taint == NULL) return missing("cluster_taint"), end(reply);
    bh_taint_changes changes = {0};
    bulkhead_plugin.cluster_taint(input, &changes);
    items = put_list(reply + 4, changes.length, 40);
    for (size_t i = 0; i < changes.length; i++, items += 40) {
        bh_taint_change change = changes.items[i];
        items[0] = change.removes;
        put_text(items + 4, change.key);
        if (change.removes) {
            items[12] = (uint8_t)change.effect;
            put_reason(items + 16, change.reason);
        } else {
            put_text(items + 12, change.value);
            items[20] = (uint8_t)change.effect;
            put_reason(items + 24, change.reason);
        }
    }
    return end(reply);
}
#endif

#ifdef BULKHEAD_FILTER
EXPORT("filter", "filter") uint8_t *export_filter(u32 binding, u32 candidates) {
    begin();
    uint8_t *reply = bh_allocate(16), *items;
    bh_binding workload = {bh_release_later(binding, binding_drop)};
    bh_clusters clusters = {bh_release_later(candidates, clusters_drop)};
    if (bulkhead_plugin.filter == NULL) return missing("filter"), end(reply);
    size_t length = bh_clusters_length(clusters);
    bh_filter_verdict *verdicts = bh_allocate(length * sizeof *verdicts);
    bulkhead_plugin.filter(workload, clusters, verdicts);
    items = put_list(reply + 4, length, 20);
    for (size_t i = 0; i < length; i++, items += 20) {
        items[0] = (uint8_t)verdicts[i].opinion;
        if (verdicts[i].opinion == BH_UNFIT) put_reason(items + 4, verdicts[i].reason);
    }
    return end(reply);
}
#endif

#ifdef BULKHEAD_SCORE
EXPORT("score", "score") uint8_t *export_score(u32 binding, u32 feasible) {
    begin();
    uint8_t *reply = bh_allocate(16);
    bh_binding workload = {bh_release_later(binding, binding_drop)};
    bh_clusters clusters = {bh_release_later(feasible, clusters_drop)};
    if (bulkhead_plugin.score == NULL) return missing("score"), end(reply);
    u32 *scores = (u32 *)(void *)put_list(reply + 4, bh_clusters_length(clusters), 4);
    bulkhead_plugin.score(workload, clusters, scores);
    return end(reply);
}
#endif

#ifdef BULKHEAD_EVICTION
EXPORT("eviction", "check") uint8_t *export_eviction(u32 binding, u32 task) {
    begin();
    uint8_t *reply = bh_allocate(32);
    bh_binding workload = {bh_release_later(binding, binding_drop)};
    bh_task copy = {bh_release_later(task, task_drop)};
    if (bulkhead_plugin.eviction_check == NULL) return missing("eviction_check"), end(reply);
    bh_eviction_verdict verdict = bulkhead_plugin.eviction_check(workload, copy);
    reply[4] = (uint8_t)verdict.opinion;
    if (verdict.opinion != BH_NO_EVICTION_OPINION) put_reason(reply + 8, verdict.reason);
    if (verdict.opinion == BH_HOLD && verdict.recheck_after_s > 0) {
        reply[24] = 1;
        put_u32(reply + 28, verdict.recheck_after_s);
    }
    return end(reply);
}
#endif

#ifdef BULKHEAD_INTERPRETER
static void put_requirements(uint8_t *at, const bh_requirements *requirements) {
    if (requirements == NULL) return;
    at[0] = 1;
    uint8_t *items = put_list(at + 4, requirements->requests_length, 16);
    for (size_t i = 0; i < requirements->requests_length; i++, items += 16) {
        put_text(items, requirements->requests[i].resource);
        put_text(items + 8, requirements->requests[i].quantity);
    }
    put_optional_text(at + 12, requirements->node_claim);
    put_optional_text(at + 24, requirements->namespace_);
    put_optional_text(at + 36, requirements->priority_class_name);
}
static void put_edits(uint8_t *reply, const bh_edits *edits) {
    uint8_t *items = put_list(reply + 4, edits->length, 20);
    for (size_t i = 0; i < edits->length; i++, items += 20) {
        items[0] = edits->items[i].removes;
        put_text(items + 4, edits->items[i].pointer);
        if (!edits->items[i].removes) put_text(items + 12, edits->items[i].json);
    }
}

EXPORT("interpreter", "interpret-replicas") uint8_t *export_replicas(u32 template_) {
    begin();
    uint8_t *reply = bh_allocate(56);
    bh_object object = object_of(template_);
    if (bulkhead_plugin.replicas == NULL) return bh_unsupported(), end(reply);
    bh_replicas found = bulkhead_plugin.replicas(object);
    put_u32(reply + 4, (u32)found.count);
    put_requirements(reply + 8, found.requirements);
    return end(reply);
}
EXPORT("interpreter", "interpret-components") uint8_t *export_components(u32 template_) {
    begin();
    uint8_t *reply = bh_allocate(16), *items;
    bh_object object = object_of(template_);
    if (bulkhead_plugin.components == NULL) return bh_unsupported(), end(reply);
    bh_components found = {0};
    bulkhead_plugin.components(object, &found);
    items = put_list(reply + 4, found.length, 60);
    for (size_t i = 0; i < found.length; i++, items += 60) {
        put_text(items, found.items[i].name);
        put_u32(items + 8, (u32)found.items[i].replicas);
        put_requirements(items + 12, found.items[i].requirements);
    }
    return end(reply);
}
EXPORT("interpreter", "revise-replicas") uint8_t *export_revise(u32 template_, int32_t replicas) {
    begin();
    uint8_t *reply = bh_allocate(16);
    bh_object object = object_of(template_);
    if (bulkhead_plugin.revise_replicas == NULL) return bh_unsupported(), end(reply);
    bh_edits edits = {0};
    bulkhead_plugin.revise_replicas(object, replicas, &edits);
    put_edits(reply, &edits);
    return end(reply);
}
EXPORT("interpreter", "retain") uint8_t *export_retain(u32 desired, u32 observed) {
    begin();
    uint8_t *reply = bh_allocate(16);
    bh_object wanted = object_of(desired), found = object_of(observed);
    if (bulkhead_plugin.retain == NULL) return bh_unsupported(), end(reply);
    bh_edits edits = {0};
    bulkhead_plugin.retain(wanted, found, &edits);
    put_edits(reply, &edits);
    return end(reply);
}
EXPORT("interpreter", "reflect-status") uint8_t *export_reflect(u32 observed) {
    begin();
    uint8_t *reply = bh_allocate(16);
    bh_object object = object_of(observed);
    if (bulkhead_plugin.reflect_status == NULL) return bh_unsupported(), end(reply);
    put_optional_text(reply + 4, bulkhead_plugin.reflect_status(object));
    return end(reply);
}
EXPORT("interpreter", "aggregate-status") uint8_t *export_aggregate(u32 template_, u32 reports) {
    begin();
    uint8_t *reply = bh_allocate(16);
    bh_object object = object_of(template_);
    bh_observations observed = {bh_release_later(reports, observations_drop)};
    if (bulkhead_plugin.aggregate_status == NULL) return bh_unsupported(), end(reply);
    bh_edits edits = {0};
    bulkhead_plugin.aggregate_status(object, observed, &edits);
    put_edits(reply, &edits);
    return end(reply);
}
EXPORT("interpreter", "interpret-dependencies") uint8_t *export_dependencies(u32 template_) {
    begin();
    uint8_t *reply = bh_allocate(16), *items;
    bh_object object = object_of(template_);
    if (bulkhead_plugin.dependencies == NULL) return bh_unsupported(), end(reply);
    bh_dependencies found = {0};
    bulkhead_plugin.dependencies(object, &found);
    items = put_list(reply + 4, found.length, 48);
    for (size_t i = 0; i < found.length; i++, items += 48) {
        bh_dependency dependency = found.items[i];
        put_text(items, dependency.api_version);
        put_text(items + 8, dependency.kind);
        put_text(items + 16, dependency.namespace_);
        put_optional_text(items + 24, dependency.name);
        put_optional_text(items + 36, dependency.label_selector);
    }
    return end(reply);
}
#endif
