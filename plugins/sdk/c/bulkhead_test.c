#include "bulkhead_test.h"
#include "bulkhead_json.h"
#include "bulkhead_memory.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Inputs by handle. */
typedef struct { const bh_value *data, *reports; } input;
static struct { input *items; size_t length, room; } inputs;
static int64_t now_ms = 1767268800000; /* 2026-01-01T12:00:00Z */
static int failures, checks;

static uint32_t add(const bh_value *data, const bh_value *reports) {
    inputs.items = bh_grow(inputs.items, inputs.length, &inputs.room, sizeof *inputs.items);
    inputs.items[inputs.length] = (input){data, reports};
    return (uint32_t)inputs.length++;
}

static const bh_value *read(const char *json) {
    const bh_value *value = bh_json_parse(json);
    if (value == NULL) {
        fprintf(stderr, "bulkhead_test: this is not JSON: %s\n", json);
        exit(2);
    }
    return value;
}

static const bh_value *of(uint32_t handle) { return inputs.items[handle].data; }
static const bh_value *at(uint32_t handle, const char *pointer) { return bh_json_at(of(handle), pointer); }
static const char *text(uint32_t handle, const char *pointer) { return bh_json_text(of(handle), pointer, NULL); }
static const char *named(uint32_t handle, const char *pointer) { return bh_json_text(of(handle), pointer, ""); }
static size_t size(const bh_value *value) { return value == NULL ? 0 : value->length; }

static uint32_t count(const bh_value *value) {
    return value != NULL && value->kind == BH_INTEGER && value->integer > 0 ? (uint32_t)value->integer : 0;
}

/* Sorts a list of maps by a text. */
static const bh_value *sorted(const bh_value *list, const char *name) {
    bh_value *copy = bh_allocate(sizeof *copy);
    *copy = *list;
    copy->items = bh_allocate(list->length * sizeof *copy->items);
    if (list->length > 0) memcpy(copy->items, list->items, list->length * sizeof *copy->items);
    for (size_t i = 1; i < copy->length; i++)
        for (size_t j = i; j > 0; j--) {
            bh_value *a = &copy->items[j - 1], *b = &copy->items[j], saved = *a;
            if (strcmp(bh_json_text(a, name, ""), bh_json_text(b, name, "")) <= 0) break;
            *a = *b;
            *b = saved;
        }
    return copy;
}

static int64_t seconds(const bh_value *value) {
    int year, month, day, hour, minute, second;
    if (value == NULL || value->kind != BH_TEXT) return -1;
    if (sscanf(value->text, "%d-%d-%dT%d:%d:%dZ", &year, &month, &day, &hour, &minute, &second) != 6) return -1;
    /* Days since 1970 of a Gregorian date; the year begins in March. */
    int64_t y = month <= 2 ? year - 1 : year, m = (month + 9) % 12;
    int64_t days = 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719468;
    return days * 86400 + hour * 3600 + minute * 60 + second;
}

static bool quantity(const bh_value *value, double *found) {
    static const struct { const char *suffix; double factor; } units[] = {
        {"", 1}, {"n", 1e-9}, {"u", 1e-6}, {"m", 1e-3}, {"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}, {"P", 1e15},
        {"E", 1e18}, {"Ki", 0x1p10}, {"Mi", 0x1p20}, {"Gi", 0x1p30}, {"Ti", 0x1p40}, {"Pi", 0x1p50}, {"Ei", 0x1p60},
    };
    if (value == NULL || value->text == NULL) return false;
    char *end;
    double number = strtod(value->text, &end);
    if (end == value->text) return false;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(end, units[i].suffix) == 0) return *found = number * units[i].factor, true;
    return false;
}

bh_object bh_test_object(const char *json) { return (bh_object){add(read(json), NULL)}; }
bh_cluster bh_test_cluster(const char *json) { return (bh_cluster){add(read(json), NULL)}; }
bh_clusters bh_test_clusters(const char *json, bh_binding scheduled) {
    return (bh_clusters){add(sorted(read(json), "/name"), of(scheduled.handle))};
}
bh_observations bh_test_observations(const char *json) {
    return (bh_observations){add(sorted(read(json), "/clusterName"), NULL)};
}
bh_binding bh_test_binding(const char *json, const char *reports) {
    return (bh_binding){add(read(json), sorted(read(reports), "/clusterName"))};
}
bh_task bh_test_task(const char *json) { return (bh_task){add(read(json), NULL)}; }

void bh_test_now_ms(int64_t now) { now_ms = now; }

const char *bh_test_error(void) {
    static const char *const messages[] = {"", "unsupported", "", ""};
    if (bh_current_error.kind == BH_NO_ERROR) return NULL;
    const char *message = bh_current_error.message != NULL ? bh_current_error.message : messages[bh_current_error.kind];
    bh_current_error.kind = BH_NO_ERROR;
    return message;
}

const char *bh_test_configure(const char *json) {
    bh_current_error.kind = BH_NO_ERROR;
    if (bulkhead_plugin.configure != NULL) bulkhead_plugin.configure(read(json));
    return bh_test_error();
}

void bh_test_check(bool holds, const char *condition, const char *file, int line) {
    checks++;
    if (holds) return;
    failures++;
    fprintf(stderr, "%s:%d: failed: %s\n", file, line, condition);
}

int bh_test_failures(void) {
    printf("%d passed, %d failed\n", checks - failures, failures);
    return failures == 0 ? 0 : 1;
}

int64_t bh_now_ms(void) { return now_ms; }
uint64_t bh_seed(void) { return 0; }
const char *bh_plugin_name(void) { return bulkhead_plugin.name; }
void bh_log(bh_level level, const char *message) {
    static const char *const names[] = {"debug", "info", "warn"};
    fprintf(stderr, "[%s] %s\n", names[level], message);
}

bh_kind bh_kind_of(bh_object object, const char *pointer) {
    const bh_value *value = at(object.handle, pointer);
    return value == NULL ? BH_ABSENT : value->kind;
}
const char *bh_text(bh_object object, const char *pointer) { return text(object.handle, pointer); }
bool bh_integer(bh_object object, const char *pointer, int64_t *value) {
    const bh_value *found = at(object.handle, pointer);
    if (found == NULL || found->kind != BH_INTEGER) return false;
    return *value = found->integer, true;
}
static double number(const bh_value *value) {
    return value != NULL && (value->kind == BH_INTEGER || value->kind == BH_NUMBER) ? value->number : NAN;
}
bool bh_number(bh_object object, const char *pointer, double *value) {
    double found = number(at(object.handle, pointer));
    if (isnan(found)) return false;
    return *value = found, true;
}
bool bh_boolean(bh_object object, const char *pointer, bool *value) {
    const bh_value *found = at(object.handle, pointer);
    if (found == NULL || found->kind != BH_BOOLEAN) return false;
    return *value = found->boolean, true;
}
bool bh_quantity_milli(bh_object object, const char *pointer, int64_t *value) {
    double found;
    if (!quantity(at(object.handle, pointer), &found)) return false;
    return *value = (int64_t)ceil(found * 1000 - 1e-6), true;
}
bool bh_length(bh_object object, const char *pointer, uint32_t *value) {
    const bh_value *found = at(object.handle, pointer);
    if (found == NULL || found->kind < BH_LIST) return false;
    return *value = (uint32_t)found->length, true;
}
static bh_texts column(const bh_value *list, const char *pointer, const char *otherwise) {
    bh_texts found = {bh_allocate(size(list) * sizeof *found.items), size(list)};
    for (size_t i = 0; i < found.length; i++) found.items[i] = bh_json_text(&list->items[i], pointer, otherwise);
    return found;
}
static bh_numbers number_column(const bh_value *list, const char *pointer) {
    bh_numbers found = {bh_allocate(size(list) * sizeof *found.items), size(list)};
    for (size_t i = 0; i < found.length; i++) found.items[i] = number(bh_json_at(&list->items[i], pointer));
    return found;
}
bh_texts bh_keys(bh_object object, const char *pointer) {
    const bh_value *found = at(object.handle, pointer);
    if (found == NULL || found->kind != BH_MAP) return (bh_texts){NULL, 0};
    return (bh_texts){found->keys, found->length};
}
bh_texts bh_each_text(bh_object object, const char *list, const char *pointer) {
    const bh_value *found = at(object.handle, list);
    return found != NULL && found->kind == BH_LIST ? column(found, pointer, NULL) : (bh_texts){NULL, 0};
}
const char *bh_json(bh_object object, const char *pointer) {
    (void)object;
    (void)pointer;
    fprintf(stderr, "bulkhead_test: bh_json is not available in tests; read single values\n");
    exit(2);
}

bh_texts bh_observations_clusters(bh_observations reports) { return column(of(reports.handle), "/clusterName", ""); }
bh_flags bh_observations_applied(bh_observations reports) {
    const bh_value *list = of(reports.handle);
    bh_flags found = {bh_allocate(list->length * sizeof *found.items), list->length};
    for (size_t i = 0; i < found.length; i++) {
        const bh_value *applied = bh_json_at(&list->items[i], "/applied");
        found.items[i] = applied != NULL && applied->boolean;
    }
    return found;
}
bh_numbers bh_observations_number(bh_observations reports, const char *pointer) {
    return number_column(of(reports.handle), bh_format("/status%s", pointer));
}
bh_texts bh_observations_text(bh_observations reports, const char *pointer) {
    return column(of(reports.handle), bh_format("/status%s", pointer), NULL);
}
bh_state bh_observations_health(bh_observations reports, uint32_t index) {
    const char *health = text(reports.handle, bh_format("/%u/health", index));
    if (bh_equal(health, "Healthy")) return BH_HEALTHY;
    if (bh_equal(health, "Unhealthy")) return BH_UNHEALTHY;
    return bh_equal(health, "Unknown") ? BH_UNKNOWN : BH_UNDETERMINED;
}
bool bh_observations_status(bh_observations reports, uint32_t index, bh_object *status) {
    const bh_value *found = at(reports.handle, bh_format("/%u/status", index));
    if (found == NULL) return false;
    return *status = (bh_object){add(found, NULL)}, true;
}

const char *bh_binding_namespace(bh_binding binding) { return text(binding.handle, "/namespace"); }
const char *bh_binding_name(bh_binding binding) { return named(binding.handle, "/name"); }
bh_object_kind bh_binding_workload_kind(bh_binding binding) {
    const uint32_t handle = binding.handle;
    return (bh_object_kind){named(handle, "/spec/resource/apiVersion"), named(handle, "/spec/resource/kind")};
}
const char *bh_binding_workload_name(bh_binding binding) { return named(binding.handle, "/spec/resource/name"); }
uint32_t bh_binding_replicas(bh_binding binding) { return count(at(binding.handle, "/spec/replicas")); }
static bh_targets targets(const bh_value *list) {
    bh_targets found = {bh_allocate(size(list) * sizeof *found.items), size(list)};
    for (size_t i = 0; i < found.length; i++) {
        const bh_value *item = &list->items[i];
        found.items[i] = (bh_target){bh_json_text(item, "/name", ""), count(bh_json_at(item, "/replicas"))};
    }
    return found;
}
bh_targets bh_binding_targets(bh_binding binding) { return targets(at(binding.handle, "/spec/clusters")); }
bh_texts bh_binding_evicting_from(bh_binding binding) {
    return column(at(binding.handle, "/spec/gracefulEvictionTasks"), "/fromCluster", "");
}
bh_observations bh_binding_observed(bh_binding binding) {
    return (bh_observations){add(inputs.items[binding.handle].reports, NULL)};
}
bh_object bh_binding_document(bh_binding binding) { return (bh_object){binding.handle}; }

const char *bh_task_from_cluster(bh_task task) { return named(task.handle, "/fromCluster"); }
const char *bh_task_reason(bh_task task) { return named(task.handle, "/reason"); }
const char *bh_task_producer(bh_task task) { return named(task.handle, "/producer"); }
bool bh_task_since_s(bh_task task, int64_t *since) {
    int64_t found = seconds(at(task.handle, "/creationTimestamp"));
    if (found < 0) return false;
    return *since = found, true;
}
static bool whole(const bh_value *value, uint32_t *found) {
    if (value == NULL || value->kind != BH_INTEGER) return false;
    return *found = (uint32_t)value->integer, true;
}
bool bh_task_grace_period_s(bh_task task, uint32_t *found) { return whole(at(task.handle, "/gracePeriodSeconds"), found); }
bool bh_task_replicas(bh_task task, uint32_t *replicas) { return whole(at(task.handle, "/replicas"), replicas); }
bh_object bh_task_document(bh_task task) { return (bh_object){task.handle}; }

static const char *label(const bh_value *cluster, const char *key) {
    const bh_value *labels = bh_json_at(cluster, "/labels");
    for (size_t i = 0; i < size(labels); i++)
        if (strcmp(labels->keys[i], key) == 0) return labels->items[i].text;
    return NULL;
}
const char *bh_cluster_name(bh_cluster cluster) { return named(cluster.handle, "/name"); }
const char *bh_cluster_label(bh_cluster cluster, const char *key) { return label(of(cluster.handle), key); }
const char *bh_cluster_provider(bh_cluster cluster) { return named(cluster.handle, "/spec/provider"); }
const char *bh_cluster_region(bh_cluster cluster) { return named(cluster.handle, "/spec/region"); }
bh_texts bh_cluster_zones(bh_cluster cluster) { return column(at(cluster.handle, "/spec/zones"), "", ""); }
bh_taints bh_cluster_taints(bh_cluster cluster) {
    const bh_value *list = at(cluster.handle, "/spec/taints");
    bh_taints found = {bh_allocate(size(list) * sizeof *found.items), size(list)};
    for (size_t i = 0; i < found.length; i++) {
        const bh_value *item = &list->items[i];
        const char *effect = bh_json_text(item, "/effect", "");
        found.items[i] = (bh_taint){
            bh_json_text(item, "/key", ""), bh_json_text(item, "/value", ""),
            bh_equal(effect, "NoExecute") ? BH_NO_EXECUTE
            : bh_equal(effect, "PreferNoSchedule") ? BH_PREFER_NO_SCHEDULE : BH_NO_SCHEDULE,
            seconds(bh_json_at(item, "/timeAdded")),
        };
    }
    return found;
}
static bh_conditions conditions(const bh_value *cluster) {
    const bh_value *list = bh_json_at(cluster, "/status/conditions");
    bh_conditions found = {bh_allocate(size(list) * sizeof *found.items), size(list)};
    for (size_t i = 0; i < found.length; i++) {
        const bh_value *item = &list->items[i];
        const char *status = bh_json_text(item, "/status", "");
        found.items[i] = (bh_condition){
            bh_json_text(item, "/type", ""),
            bh_equal(status, "True") ? BH_TRUE : bh_equal(status, "False") ? BH_FALSE : BH_UNKNOWN_STATUS,
            bh_json_text(item, "/reason", ""), bh_json_text(item, "/message", ""),
            seconds(bh_json_at(item, "/lastTransitionTime")),
        };
    }
    return found;
}
static bool condition_of(const bh_value *cluster, const char *name, bh_condition *condition) {
    bh_conditions all = conditions(cluster);
    for (size_t i = 0; i < all.length; i++)
        if (bh_equal(all.items[i].name, name)) return *condition = all.items[i], true;
    return false;
}
bh_conditions bh_cluster_conditions(bh_cluster cluster) { return conditions(of(cluster.handle)); }
bool bh_cluster_condition(bh_cluster cluster, const char *name, bh_condition *condition) {
    return condition_of(of(cluster.handle), name, condition);
}
bool bh_cluster_serves(bh_cluster cluster, bh_object_kind kind) {
    const bh_value *groups = at(cluster.handle, "/status/apiEnablements");
    for (size_t i = 0; i < size(groups); i++) {
        const bh_value *resources = bh_json_at(&groups->items[i], "/resources");
        if (!bh_equal(bh_json_text(&groups->items[i], "/groupVersion", ""), kind.api_version)) continue;
        for (size_t j = 0; j < size(resources); j++)
            if (bh_equal(bh_json_text(&resources->items[j], "/kind", ""), kind.kind)) return true;
    }
    return false;
}
bh_object bh_cluster_document(bh_cluster cluster) { return (bh_object){cluster.handle}; }

/* Returns the replicas on a cluster; -1 if the binding of these clusters is not scheduled there. */
static int64_t replicas_on(bh_clusters clusters, const bh_value *cluster) {
    bh_targets all = targets(bh_json_at(inputs.items[clusters.handle].reports, "/spec/clusters"));
    for (size_t i = 0; i < all.length; i++)
        if (bh_equal(all.items[i].cluster, bh_json_text(cluster, "/name", ""))) return all.items[i].replicas;
    return -1;
}
static double amount(const bh_value *cluster, const char *part, const char *resource) {
    double found;
    const bh_value *value = bh_json_at(cluster, bh_format("/status/resourceSummary/%s/%s", part, resource));
    return quantity(value, &found) ? found : NAN;
}
#define EACH(type, list, value)                                                       \
    const bh_value *list_ = (list);                                                   \
    type found = {bh_allocate(list_->length * sizeof *found.items), list_->length};   \
    for (size_t i = 0; i < found.length; i++) {                                       \
        const bh_value *cluster = &list_->items[i];                                   \
        found.items[i] = (value);                                                     \
    }                                                                                 \
    return found

static bool is_ready(const bh_value *cluster) {
    bh_condition ready;
    return condition_of(cluster, "Ready", &ready) && ready.status == BH_TRUE;
}
static double free_amount(const bh_value *cluster, const char *resource) {
    double allocated = amount(cluster, "allocated", resource), allocating = amount(cluster, "allocating", resource);
    double left = amount(cluster, "allocatable", resource);
    left -= (isnan(allocated) ? 0 : allocated) + (isnan(allocating) ? 0 : allocating);
    return left < 0 ? 0 : left;
}
uint32_t bh_clusters_length(bh_clusters clusters) { return (uint32_t)of(clusters.handle)->length; }
bh_texts bh_clusters_names(bh_clusters clusters) { return column(of(clusters.handle), "/name", ""); }
bh_flags bh_clusters_ready(bh_clusters clusters) { EACH(bh_flags, of(clusters.handle), is_ready(cluster)); }
bh_flags bh_clusters_current(bh_clusters clusters) {
    EACH(bh_flags, of(clusters.handle), replicas_on(clusters, cluster) >= 0);
}
bh_counts bh_clusters_replicas(bh_clusters clusters) {
    EACH(bh_counts, of(clusters.handle), replicas_on(clusters, cluster) < 0 ? 0 : (uint32_t)replicas_on(clusters, cluster));
}
bh_texts bh_clusters_label(bh_clusters clusters, const char *key) {
    EACH(bh_texts, of(clusters.handle), label(cluster, key));
}
bh_texts bh_clusters_regions(bh_clusters clusters) { return column(of(clusters.handle), "/spec/region", ""); }
bh_texts bh_clusters_providers(bh_clusters clusters) { return column(of(clusters.handle), "/spec/provider", ""); }
bh_numbers bh_clusters_allocatable(bh_clusters clusters, const char *resource) {
    EACH(bh_numbers, of(clusters.handle), amount(cluster, "allocatable", resource));
}
bh_numbers bh_clusters_free(bh_clusters clusters, const char *resource) {
    EACH(bh_numbers, of(clusters.handle), free_amount(cluster, resource));
}
bh_texts bh_clusters_text(bh_clusters clusters, const char *pointer) { return column(of(clusters.handle), pointer, NULL); }
bh_numbers bh_clusters_number(bh_clusters clusters, const char *pointer) {
    return number_column(of(clusters.handle), pointer);
}
bool bh_clusters_get(bh_clusters clusters, uint32_t index, bh_cluster *cluster) {
    if (index >= bh_clusters_length(clusters)) return false;
    return *cluster = (bh_cluster){add(&of(clusters.handle)->items[index], NULL)}, true;
}
