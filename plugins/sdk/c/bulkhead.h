/* Write Bulkhead policy plugins in C.
 *
 * A plugin defines one constant, `bulkhead_plugin`, with a function for each kind of call that it answers. Texts and
 * lists that functions of this header return stay valid until the plugin's function returns; nothing is to be freed.
 *
 * Pointers are JSON Pointers (RFC 6901) such as "/status/readyReplicas"; "" is the whole document.
 */
#ifndef BULKHEAD_H
#define BULKHEAD_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Inputs. They stay with the host; getters copy only the values that they return. */
typedef struct { uint32_t handle; } bh_object;       /* a Kubernetes object, or a part of one */
typedef struct { uint32_t handle; } bh_observations; /* reports of the member clusters, in order of cluster name */
typedef struct { uint32_t handle; } bh_binding;      /* a workload and the clusters that it runs on */
typedef struct { uint32_t handle; } bh_task;         /* an old copy that is to be removed from a cluster */
typedef struct { uint32_t handle; } bh_cluster;      /* a member cluster */
typedef struct { uint32_t handle; } bh_clusters;     /* candidates as columns, in order of name */

/* Columns. An absent text is NULL, an absent number is NaN. */
typedef struct { const char **items; size_t length; } bh_texts;
typedef struct { double *items; size_t length; } bh_numbers;
typedef struct { uint32_t *items; size_t length; } bh_counts;
typedef struct { bool *items; size_t length; } bh_flags;

typedef enum { BH_ABSENT, BH_NULL, BH_BOOLEAN, BH_INTEGER, BH_NUMBER, BH_TEXT, BH_LIST, BH_MAP } bh_kind;
typedef enum { BH_HEALTHY, BH_UNHEALTHY, BH_UNKNOWN, BH_UNDETERMINED } bh_state;
typedef enum { BH_TRUE, BH_FALSE, BH_UNKNOWN_STATUS } bh_status;
typedef enum { BH_NO_SCHEDULE, BH_PREFER_NO_SCHEDULE, BH_NO_EXECUTE } bh_effect;

typedef struct { const char *api_version, *kind; } bh_object_kind;
typedef struct { const char *code, *message; } bh_reason;

/* Times are seconds since the Unix epoch; -1 if they are not known. */
typedef struct { const char *key, *value; bh_effect effect; int64_t time_added_s; } bh_taint;
typedef struct { bh_taint *items; size_t length; } bh_taints;
typedef struct { const char *name; bh_status status; const char *reason, *message; int64_t last_transition_s; } bh_condition;
typedef struct { bh_condition *items; size_t length; } bh_conditions;
typedef struct { const char *cluster; uint32_t replicas; } bh_target;
typedef struct { bh_target *items; size_t length; } bh_targets;

/* Verdicts. `bh_format` makes messages. */
typedef struct { bh_state state; bh_reason reason; } bh_health_verdict;
typedef enum { BH_FIT, BH_UNFIT, BH_NO_FILTER_OPINION } bh_filter_opinion;
typedef struct { bh_filter_opinion opinion; bh_reason reason; } bh_filter_verdict;
typedef enum { BH_RELEASE, BH_HOLD, BH_NO_EVICTION_OPINION } bh_eviction_opinion;
typedef struct { bh_eviction_opinion opinion; bh_reason reason; uint32_t recheck_after_s; /* 0: the host's default */ } bh_eviction_verdict;

bh_health_verdict bh_healthy(const char *code, const char *message);
bh_health_verdict bh_unhealthy(const char *code, const char *message);
bh_health_verdict bh_unknown(const char *code, const char *message); /* never causes an eviction */
bh_filter_verdict bh_fit(void);
bh_filter_verdict bh_unfit(const char *code, const char *message);
bh_eviction_verdict bh_release(const char *code, const char *message);
bh_eviction_verdict bh_hold(const char *code, const char *message);

/* Lists of answers, filled by `bh_add_taint` and the like. */
typedef struct { bool removes; const char *key, *value; bh_effect effect; bh_reason reason; } bh_taint_change;
typedef struct { bh_taint_change *items; size_t length, room; } bh_taint_changes;
typedef struct { bool removes; const char *pointer, *json; } bh_edit;
typedef struct { bh_edit *items; size_t length, room; } bh_edits;

void bh_add_taint(bh_taint_changes *changes, const char *key, bh_effect effect, const char *code, const char *message);
void bh_remove_taint(bh_taint_changes *changes, const char *key, bh_effect effect, const char *code, const char *message);
void bh_set(bh_edits *edits, const char *pointer, const char *json);
void bh_remove(bh_edits *edits, const char *pointer);

/* Resource requirements of one replica. NULL stands for none. */
typedef struct { const char *resource, *quantity; } bh_request;
typedef struct {
    const bh_request *requests;
    size_t requests_length;
    const char *node_claim; /* JSON */
    const char *namespace_, *priority_class_name;
} bh_requirements;
typedef struct { int32_t count; const bh_requirements *requirements; } bh_replicas;
typedef struct { const char *name; int32_t replicas; const bh_requirements *requirements; } bh_component;
typedef struct { bh_component *items; size_t length, room; } bh_components;
typedef struct { const char *api_version, *kind, *namespace_, *name, *label_selector; /* JSON */ } bh_dependency;
typedef struct { bh_dependency *items; size_t length, room; } bh_dependencies;

void bh_add_component(bh_components *components, bh_component component);
void bh_add_dependency(bh_dependencies *dependencies, bh_dependency dependency);

struct bh_value;

/* The plugin. Functions that are NULL are not called; interpreter operations without one have no rule. */
typedef struct {
    const char *name, *version, *description;
    const bh_object_kind *kinds; /* ends with {0}; NULL for every kind */
    const char *const *taint_keys; /* ends with NULL */
    const char *config_schema;   /* JSON Schema; NULL if there is no configuration */
    bool reusable;               /* several calls in one instance: no call may leave state behind */

    void (*configure)(const struct bh_value *config); /* checks and keeps the configuration (bulkhead_json.h); must be cheap */
    bh_health_verdict (*health)(bh_object observed);
    void (*cluster_taint)(bh_cluster cluster, bh_taint_changes *changes);
    void (*filter)(bh_binding binding, bh_clusters candidates, bh_filter_verdict *verdicts); /* one per candidate */
    void (*score)(bh_binding binding, bh_clusters feasible, uint32_t *scores);               /* 0 to 100 each */
    bh_eviction_verdict (*eviction_check)(bh_binding binding, bh_task task);
    bh_replicas (*replicas)(bh_object template_);
    void (*components)(bh_object template_, bh_components *components);
    void (*revise_replicas)(bh_object template_, int32_t replicas, bh_edits *edits);
    void (*retain)(bh_object desired, bh_object observed, bh_edits *edits);
    const char *(*reflect_status)(bh_object observed); /* JSON; NULL if there is nothing to collect */
    void (*aggregate_status)(bh_object template_, bh_observations reports, bh_edits *edits);
    void (*dependencies)(bh_object template_, bh_dependencies *dependencies);
} bh_plugin;

extern const bh_plugin bulkhead_plugin;

/* Errors. The answer of a function that called one of these is ignored. */
void bh_fail(const char *message);           /* a fault of the plugin */
void bh_unsupported(void);                   /* leaves the answer to the next policy */
void bh_invalid_config(const char *message); /* in `configure`: describes a valid configuration */

/* Memory and text of a call. */
void *bh_allocate(size_t size);
const char *bh_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
const char *bh_copy(const char *text);
/* Returns a copy that outlives the call, for `configure`. */
const char *bh_keep(const char *text);
bool bh_equal(const char *a, const char *b); /* false if one of them is NULL */

/* Context of a call. */
typedef enum { BH_DEBUG, BH_INFO, BH_WARN } bh_level;
int64_t bh_now_ms(void); /* milliseconds since the Unix epoch; constant during a call */
uint64_t bh_seed(void);
const char *bh_plugin_name(void);
void bh_log(bh_level level, const char *message);

/* Objects. Getters return false or NULL if the value is absent or of another type. */
bh_kind bh_kind_of(bh_object object, const char *pointer);
const char *bh_text(bh_object object, const char *pointer);
bool bh_integer(bh_object object, const char *pointer, int64_t *value);
bool bh_number(bh_object object, const char *pointer, double *value);
bool bh_boolean(bh_object object, const char *pointer, bool *value);
bool bh_quantity_milli(bh_object object, const char *pointer, int64_t *value); /* in thousandths, rounded up */
bool bh_length(bh_object object, const char *pointer, uint32_t *value);
bh_texts bh_keys(bh_object object, const char *pointer);
bh_texts bh_each_text(bh_object object, const char *list, const char *pointer);
const char *bh_json(bh_object object, const char *pointer);

bh_texts bh_observations_clusters(bh_observations reports);
bh_flags bh_observations_applied(bh_observations reports);
bh_numbers bh_observations_number(bh_observations reports, const char *pointer);
bh_texts bh_observations_text(bh_observations reports, const char *pointer);
bh_state bh_observations_health(bh_observations reports, uint32_t index); /* BH_UNDETERMINED if not known yet */
bool bh_observations_status(bh_observations reports, uint32_t index, bh_object *status);

const char *bh_binding_namespace(bh_binding binding); /* NULL for a ClusterResourceBinding */
const char *bh_binding_name(bh_binding binding);
bh_object_kind bh_binding_workload_kind(bh_binding binding);
const char *bh_binding_workload_name(bh_binding binding);
uint32_t bh_binding_replicas(bh_binding binding);
bh_targets bh_binding_targets(bh_binding binding);
bh_texts bh_binding_evicting_from(bh_binding binding);
bh_observations bh_binding_observed(bh_binding binding);
bh_object bh_binding_document(bh_binding binding);

const char *bh_task_from_cluster(bh_task task);
const char *bh_task_reason(bh_task task);
const char *bh_task_producer(bh_task task);
bool bh_task_since_s(bh_task task, int64_t *seconds);
bool bh_task_grace_period_s(bh_task task, uint32_t *seconds);
bool bh_task_replicas(bh_task task, uint32_t *replicas);
bh_object bh_task_document(bh_task task);

const char *bh_cluster_name(bh_cluster cluster);
const char *bh_cluster_label(bh_cluster cluster, const char *key);
const char *bh_cluster_provider(bh_cluster cluster);
const char *bh_cluster_region(bh_cluster cluster);
bh_texts bh_cluster_zones(bh_cluster cluster);
bh_taints bh_cluster_taints(bh_cluster cluster);
bh_conditions bh_cluster_conditions(bh_cluster cluster);
bool bh_cluster_condition(bh_cluster cluster, const char *name, bh_condition *condition);
bool bh_cluster_serves(bh_cluster cluster, bh_object_kind kind);
bh_object bh_cluster_document(bh_cluster cluster);

uint32_t bh_clusters_length(bh_clusters clusters);
bh_texts bh_clusters_names(bh_clusters clusters);
bh_flags bh_clusters_ready(bh_clusters clusters);
bh_flags bh_clusters_current(bh_clusters clusters);
bh_counts bh_clusters_replicas(bh_clusters clusters);
bh_texts bh_clusters_label(bh_clusters clusters, const char *key);
bh_texts bh_clusters_regions(bh_clusters clusters);
bh_texts bh_clusters_providers(bh_clusters clusters);
bh_numbers bh_clusters_allocatable(bh_clusters clusters, const char *resource);
bh_numbers bh_clusters_free(bh_clusters clusters, const char *resource);
bh_texts bh_clusters_text(bh_clusters clusters, const char *pointer);
bh_numbers bh_clusters_number(bh_clusters clusters, const char *pointer);
bool bh_clusters_get(bh_clusters clusters, uint32_t index, bh_cluster *cluster);

#endif
