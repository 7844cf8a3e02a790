/* Inputs of a plugin, from the host. Built for WebAssembly only. Offsets of results follow from the contract. */
#include "bulkhead.h"
#include "bulkhead_abi.h"
#include "bulkhead_memory.h"

#include <string.h>

/* Results of imports. */
static _Alignas(8) uint8_t area[64];

__attribute__((export_name("cabi_realloc"))) void *cabi_realloc(void *old, size_t old_size, size_t align, size_t size) {
    (void)align;
    /* The host allocates arguments before it calls. */
    bh_error error = bh_current_error;
    bh_begin();
    bh_current_error = error;
    void *made = bh_allocate(size);
    if (old_size > 0) memcpy(made, old, old_size < size ? old_size : size);
    return made;
}

/* Values at an address. */
static u32 get_u32(const uint8_t *at) { u32 value; memcpy(&value, at, 4); return value; }
static int64_t get_s64(const uint8_t *at) { int64_t value; memcpy(&value, at, 8); return value; }
static double get_f64(const uint8_t *at) { double value; memcpy(&value, at, 8); return value; }

static const uint8_t *list_at(const uint8_t *at, size_t *length) {
    *length = get_u32(at + 4);
    return (const uint8_t *)(uintptr_t)get_u32(at);
}

/* Returns a text of a result, ended by a zero byte. */
static const char *text_at(const uint8_t *at) {
    size_t length;
    const uint8_t *bytes = list_at(at, &length);
    char *text = bh_allocate(length);
    if (length > 0) memcpy(text, bytes, length);
    return text;
}
static const char *optional_text_at(const uint8_t *at) { return at[0] == 1 ? text_at(at + 4) : NULL; }
static int64_t optional_seconds_at(const uint8_t *at) { return at[0] == 1 ? get_s64(at + 8) : -1; }

static bh_texts texts(bool optional) {
    bh_texts found;
    const uint8_t *at = list_at(area, &found.length);
    found.items = bh_allocate(found.length * sizeof *found.items);
    for (size_t i = 0; i < found.length; i++)
        found.items[i] = optional ? optional_text_at(at + 12 * i) : text_at(at + 8 * i);
    return found;
}
static bh_numbers numbers(void) {
    bh_numbers found;
    found.items = (double *)(uintptr_t)list_at(area, &found.length);
    return found;
}
static bh_flags flags(void) {
    bh_flags found;
    found.items = (bool *)(uintptr_t)list_at(area, &found.length);
    return found;
}
static bh_counts counts(void) {
    bh_counts found;
    found.items = (u32 *)(uintptr_t)list_at(area, &found.length);
    return found;
}

/* Functions of the host. A text is an address and a length. */
#define TEXT(text) (text), strlen(text)
#define M(resource, name) IMPORT(resource, "[method]" resource "." name)

IMPORT("context", "now-ms") int64_t context_now_ms(void);
IMPORT("context", "seed") uint64_t context_seed(void);
IMPORT("context", "plugin-name") void context_plugin_name(uint8_t *results);
IMPORT("log", "write") void log_write(u32 level, const char *text, size_t length);

int64_t bh_now_ms(void) { return context_now_ms(); }
uint64_t bh_seed(void) { return context_seed(); }
const char *bh_plugin_name(void) { context_plugin_name(area); return text_at(area); }
void bh_log(bh_level level, const char *message) { log_write(level, TEXT(message)); }

M("object", "get") void object_get(u32 self, const char *pointer, size_t length, uint8_t *results);
M("object", "get-each") void object_get_each(u32 self, const char *list, size_t list_length, const char *pointer, size_t length, uint8_t *results);
M("object", "get-string") void object_get_string(u32 self, const char *pointer, size_t length, uint8_t *results);
M("object", "get-s64") void object_get_s64(u32 self, const char *pointer, size_t length, uint8_t *results);
M("object", "get-f64") void object_get_f64(u32 self, const char *pointer, size_t length, uint8_t *results);
M("object", "get-bool") void object_get_bool(u32 self, const char *pointer, size_t length, uint8_t *results);
M("object", "get-quantity-milli") void object_get_quantity(u32 self, const char *pointer, size_t length, uint8_t *results);
M("object", "length") void object_length(u32 self, const char *pointer, size_t length, uint8_t *results);
M("object", "keys") void object_keys(u32 self, const char *pointer, size_t length, uint8_t *results);
M("object", "json") void object_json(u32 self, const char *pointer, size_t length, uint8_t *results);

static bh_object object_of(u32 handle) { return (bh_object){bh_release_later(handle, object_drop)}; }

bh_kind bh_kind_of(bh_object object, const char *pointer) {
    object_get(object.handle, TEXT(pointer), area);
    return area[0] == 1 ? (bh_kind)(area[8] + BH_NULL) : BH_ABSENT;
}
const char *bh_text(bh_object object, const char *pointer) {
    object_get_string(object.handle, TEXT(pointer), area);
    return optional_text_at(area);
}
bool bh_integer(bh_object object, const char *pointer, int64_t *value) {
    object_get_s64(object.handle, TEXT(pointer), area);
    if (area[0] == 1) *value = get_s64(area + 8);
    return area[0] == 1;
}
bool bh_number(bh_object object, const char *pointer, double *value) {
    object_get_f64(object.handle, TEXT(pointer), area);
    if (area[0] == 1) *value = get_f64(area + 8);
    return area[0] == 1;
}
bool bh_boolean(bh_object object, const char *pointer, bool *value) {
    object_get_bool(object.handle, TEXT(pointer), area);
    if (area[0] == 1) *value = area[1] == 1;
    return area[0] == 1;
}
bool bh_quantity_milli(bh_object object, const char *pointer, int64_t *value) {
    object_get_quantity(object.handle, TEXT(pointer), area);
    if (area[0] == 1) *value = get_s64(area + 8);
    return area[0] == 1;
}
bool bh_length(bh_object object, const char *pointer, uint32_t *value) {
    object_length(object.handle, TEXT(pointer), area);
    if (area[0] == 1) *value = get_u32(area + 4);
    return area[0] == 1;
}
bh_texts bh_keys(bh_object object, const char *pointer) {
    object_keys(object.handle, TEXT(pointer), area);
    return texts(false);
}
bh_texts bh_each_text(bh_object object, const char *list, const char *pointer) {
    object_get_each(object.handle, TEXT(list), TEXT(pointer), area);
    bh_texts found;
    const uint8_t *at = list_at(area, &found.length);
    found.items = bh_allocate(found.length * sizeof *found.items);
    for (size_t i = 0; i < found.length; i++, at += 24)
        found.items[i] = at[0] == 1 && at[8] == 4 ? text_at(at + 16) : NULL;
    return found;
}
const char *bh_json(bh_object object, const char *pointer) {
    object_json(object.handle, TEXT(pointer), area);
    return optional_text_at(area);
}

M("observations", "clusters") void observations_clusters(u32 self, uint8_t *results);
M("observations", "applied") void observations_applied(u32 self, uint8_t *results);
M("observations", "health") void observations_health(u32 self, uint8_t *results);
M("observations", "number") void observations_number(u32 self, const char *pointer, size_t length, uint8_t *results);
M("observations", "text") void observations_text(u32 self, const char *pointer, size_t length, uint8_t *results);
M("observations", "status") void observations_status(u32 self, u32 index, uint8_t *results);

bh_texts bh_observations_clusters(bh_observations reports) {
    observations_clusters(reports.handle, area);
    return texts(false);
}
bh_flags bh_observations_applied(bh_observations reports) {
    observations_applied(reports.handle, area);
    return flags();
}
bh_numbers bh_observations_number(bh_observations reports, const char *pointer) {
    observations_number(reports.handle, TEXT(pointer), area);
    return numbers();
}
bh_texts bh_observations_text(bh_observations reports, const char *pointer) {
    observations_text(reports.handle, TEXT(pointer), area);
    return texts(true);
}
bh_state bh_observations_health(bh_observations reports, uint32_t index) {
    observations_health(reports.handle, area);
    size_t length;
    const uint8_t *at = list_at(area, &length);
    return index < length && at[2 * index] == 1 ? (bh_state)at[2 * index + 1] : BH_UNDETERMINED;
}
bool bh_observations_status(bh_observations reports, uint32_t index, bh_object *status) {
    observations_status(reports.handle, index, area);
    if (area[0] == 1) *status = object_of(get_u32(area + 4));
    return area[0] == 1;
}

M("binding", "namespace") void binding_namespace(u32 self, uint8_t *results);
M("binding", "name") void binding_name(u32 self, uint8_t *results);
M("binding", "workload-kind") void binding_workload_kind(u32 self, uint8_t *results);
M("binding", "workload-name") void binding_workload_name(u32 self, uint8_t *results);
M("binding", "replicas") u32 binding_replicas(u32 self);
M("binding", "targets") void binding_targets(u32 self, uint8_t *results);
M("binding", "evicting-from") void binding_evicting_from(u32 self, uint8_t *results);
M("binding", "observed") u32 binding_observed(u32 self);
M("binding", "document") u32 binding_document(u32 self);

const char *bh_binding_namespace(bh_binding binding) {
    binding_namespace(binding.handle, area);
    return optional_text_at(area);
}
const char *bh_binding_name(bh_binding binding) { binding_name(binding.handle, area); return text_at(area); }
bh_object_kind bh_binding_workload_kind(bh_binding binding) {
    binding_workload_kind(binding.handle, area);
    return (bh_object_kind){text_at(area), text_at(area + 8)};
}
const char *bh_binding_workload_name(bh_binding binding) {
    binding_workload_name(binding.handle, area);
    return text_at(area);
}
uint32_t bh_binding_replicas(bh_binding binding) { return binding_replicas(binding.handle); }
bh_targets bh_binding_targets(bh_binding binding) {
    binding_targets(binding.handle, area);
    bh_targets found;
    const uint8_t *at = list_at(area, &found.length);
    found.items = bh_allocate(found.length * sizeof *found.items);
    for (size_t i = 0; i < found.length; i++, at += 12) found.items[i] = (bh_target){text_at(at), get_u32(at + 8)};
    return found;
}
bh_texts bh_binding_evicting_from(bh_binding binding) {
    binding_evicting_from(binding.handle, area);
    return texts(false);
}
bh_observations bh_binding_observed(bh_binding binding) {
    return (bh_observations){bh_release_later(binding_observed(binding.handle), observations_drop)};
}
bh_object bh_binding_document(bh_binding binding) { return object_of(binding_document(binding.handle)); }

#define T(name) IMPORT("binding", "[method]eviction-task." name)
T("from-cluster") void task_from_cluster(u32 self, uint8_t *results);
T("reason") void task_reason(u32 self, uint8_t *results);
T("producer") void task_producer(u32 self, uint8_t *results);
T("since-s") void task_since_s(u32 self, uint8_t *results);
T("grace-period-s") void task_grace_period_s(u32 self, uint8_t *results);
T("replicas") void task_replicas(u32 self, uint8_t *results);
T("document") u32 task_document(u32 self);

const char *bh_task_from_cluster(bh_task task) { task_from_cluster(task.handle, area); return text_at(area); }
const char *bh_task_reason(bh_task task) { task_reason(task.handle, area); return text_at(area); }
const char *bh_task_producer(bh_task task) { task_producer(task.handle, area); return text_at(area); }
bool bh_task_since_s(bh_task task, int64_t *seconds) {
    task_since_s(task.handle, area);
    if (area[0] == 1) *seconds = get_s64(area + 8);
    return area[0] == 1;
}
bool bh_task_grace_period_s(bh_task task, uint32_t *seconds) {
    task_grace_period_s(task.handle, area);
    if (area[0] == 1) *seconds = get_u32(area + 4);
    return area[0] == 1;
}
bool bh_task_replicas(bh_task task, uint32_t *replicas) {
    task_replicas(task.handle, area);
    if (area[0] == 1) *replicas = get_u32(area + 4);
    return area[0] == 1;
}
bh_object bh_task_document(bh_task task) { return object_of(task_document(task.handle)); }

M("cluster", "name") void cluster_name(u32 self, uint8_t *results);
M("cluster", "label") void cluster_label(u32 self, const char *key, size_t length, uint8_t *results);
M("cluster", "provider") void cluster_provider(u32 self, uint8_t *results);
M("cluster", "region") void cluster_region(u32 self, uint8_t *results);
M("cluster", "zones") void cluster_zones(u32 self, uint8_t *results);
M("cluster", "taints") void cluster_taints(u32 self, uint8_t *results);
M("cluster", "conditions") void cluster_conditions(u32 self, uint8_t *results);
M("cluster", "condition") void cluster_condition(u32 self, const char *name, size_t length, uint8_t *results);
M("cluster", "serves") u32 cluster_serves(u32 self, const char *version, size_t version_length, const char *kind, size_t length);
M("cluster", "document") u32 cluster_document(u32 self);

const char *bh_cluster_name(bh_cluster cluster) { cluster_name(cluster.handle, area); return text_at(area); }
const char *bh_cluster_label(bh_cluster cluster, const char *key) {
    cluster_label(cluster.handle, TEXT(key), area);
    return optional_text_at(area);
}
const char *bh_cluster_provider(bh_cluster cluster) { cluster_provider(cluster.handle, area); return text_at(area); }
const char *bh_cluster_region(bh_cluster cluster) { cluster_region(cluster.handle, area); return text_at(area); }
bh_texts bh_cluster_zones(bh_cluster cluster) { cluster_zones(cluster.handle, area); return texts(false); }
bh_taints bh_cluster_taints(bh_cluster cluster) {
    cluster_taints(cluster.handle, area);
    bh_taints found;
    const uint8_t *at = list_at(area, &found.length);
    found.items = bh_allocate(found.length * sizeof *found.items);
    for (size_t i = 0; i < found.length; i++, at += 40)
        found.items[i] = (bh_taint){text_at(at), text_at(at + 8), (bh_effect)at[16], optional_seconds_at(at + 24)};
    return found;
}
static bh_condition condition_at(const uint8_t *at) {
    return (bh_condition){
        text_at(at), (bh_status)at[8], text_at(at + 12), text_at(at + 20), optional_seconds_at(at + 32),
    };
}
bh_conditions bh_cluster_conditions(bh_cluster cluster) {
    cluster_conditions(cluster.handle, area);
    bh_conditions found;
    const uint8_t *at = list_at(area, &found.length);
    found.items = bh_allocate(found.length * sizeof *found.items);
    for (size_t i = 0; i < found.length; i++) found.items[i] = condition_at(at + 48 * i);
    return found;
}
bool bh_cluster_condition(bh_cluster cluster, const char *name, bh_condition *condition) {
    cluster_condition(cluster.handle, TEXT(name), area);
    if (area[0] == 1) *condition = condition_at(area + 8);
    return area[0] == 1;
}
bool bh_cluster_serves(bh_cluster cluster, bh_object_kind kind) {
    return cluster_serves(cluster.handle, TEXT(kind.api_version), TEXT(kind.kind)) == 1;
}
bh_object bh_cluster_document(bh_cluster cluster) { return object_of(cluster_document(cluster.handle)); }

M("clusters", "len") u32 clusters_len(u32 self);
M("clusters", "names") void clusters_names(u32 self, uint8_t *results);
M("clusters", "ready") void clusters_ready(u32 self, uint8_t *results);
M("clusters", "current") void clusters_current(u32 self, uint8_t *results);
M("clusters", "replicas") void clusters_replicas(u32 self, uint8_t *results);
M("clusters", "label") void clusters_label(u32 self, const char *key, size_t length, uint8_t *results);
M("clusters", "regions") void clusters_regions(u32 self, uint8_t *results);
M("clusters", "providers") void clusters_providers(u32 self, uint8_t *results);
M("clusters", "allocatable") void clusters_allocatable(u32 self, const char *name, size_t length, uint8_t *results);
M("clusters", "free") void clusters_free(u32 self, const char *name, size_t length, uint8_t *results);
M("clusters", "text") void clusters_text(u32 self, const char *pointer, size_t length, uint8_t *results);
M("clusters", "number") void clusters_number(u32 self, const char *pointer, size_t length, uint8_t *results);
M("clusters", "get") void clusters_get(u32 self, u32 index, uint8_t *results);

uint32_t bh_clusters_length(bh_clusters clusters) { return clusters_len(clusters.handle); }
bh_texts bh_clusters_names(bh_clusters clusters) { clusters_names(clusters.handle, area); return texts(false); }
bh_flags bh_clusters_ready(bh_clusters clusters) { clusters_ready(clusters.handle, area); return flags(); }
bh_flags bh_clusters_current(bh_clusters clusters) { clusters_current(clusters.handle, area); return flags(); }
bh_counts bh_clusters_replicas(bh_clusters clusters) { clusters_replicas(clusters.handle, area); return counts(); }
bh_texts bh_clusters_label(bh_clusters clusters, const char *key) {
    clusters_label(clusters.handle, TEXT(key), area);
    return texts(true);
}
bh_texts bh_clusters_regions(bh_clusters clusters) { clusters_regions(clusters.handle, area); return texts(false); }
bh_texts bh_clusters_providers(bh_clusters clusters) { clusters_providers(clusters.handle, area); return texts(false); }
bh_numbers bh_clusters_allocatable(bh_clusters clusters, const char *resource) {
    clusters_allocatable(clusters.handle, TEXT(resource), area);
    return numbers();
}
bh_numbers bh_clusters_free(bh_clusters clusters, const char *resource) {
    clusters_free(clusters.handle, TEXT(resource), area);
    return numbers();
}
bh_texts bh_clusters_text(bh_clusters clusters, const char *pointer) {
    clusters_text(clusters.handle, TEXT(pointer), area);
    return texts(true);
}
bh_numbers bh_clusters_number(bh_clusters clusters, const char *pointer) {
    clusters_number(clusters.handle, TEXT(pointer), area);
    return numbers();
}
bool bh_clusters_get(bh_clusters clusters, uint32_t index, bh_cluster *cluster) {
    clusters_get(clusters.handle, index, area);
    if (area[0] == 1) *cluster = (bh_cluster){bh_release_later(get_u32(area + 4), cluster_drop)};
    return area[0] == 1;
}
