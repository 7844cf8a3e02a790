/* Interprets stages, secrets, status and health of a Pipeline of example.io/v1. */
#include "bulkhead.h"

#define RECORDS_MAX 1e12 /* largest number of records that a cluster can report */

static bool is_empty(const char *text) { return text == NULL || *text == '\0'; }

static bh_health_verdict interpret(bh_object observed) {
    const char *phase = bh_text(observed, "/status/phase");
    if (bh_equal(phase, "Running") || bh_equal(phase, "Done")) return bh_healthy(phase, "");
    if (bh_equal(phase, "Failed")) return bh_unhealthy("Failed", "");
    return bh_unknown("UnknownPhase", "");
}

static void components(bh_object template_, bh_components *components) {
    bh_texts names = bh_each_text(template_, "/spec/stages", "/name");
    for (size_t i = 0; i < names.length; i++) {
        bool is_new = !is_empty(names.items[i]);
        for (size_t j = 0; j < components->length; j++)
            is_new = is_new && !bh_equal(components->items[j].name, names.items[i]);
        if (!is_new) continue;
        int64_t workers = 1;
        bh_integer(template_, bh_format("/spec/stages/%zu/workers", i), &workers);
        workers = workers < 0 ? 0 : workers > INT32_MAX ? INT32_MAX : workers;
        bh_add_component(components, (bh_component){names.items[i], (int32_t)workers, NULL});
    }
}

static const char *reflect_status(bh_object observed) {
    const char *members = "";
    int64_t records;
    if (bh_kind_of(observed, "/status/phase") == BH_TEXT)
        members = bh_format(", \"phase\": %s", bh_json(observed, "/status/phase"));
    if (bh_integer(observed, "/status/records", &records))
        members = bh_format("%s, \"records\": %lld", members, (long long)records);
    return *members == '\0' ? NULL : bh_format("{%s}", members + 2);
}

static void aggregate_status(bh_object template_, bh_observations reports, bh_edits *edits) {
    (void)template_;
    bh_numbers records = bh_observations_number(reports, "/records");
    bh_texts phases = bh_observations_text(reports, "/phase");
    int64_t sum = 0;
    for (size_t i = 0; i < records.length; i++)
        if (records.items[i] > 0) sum += (int64_t)fmin(records.items[i], RECORDS_MAX);
    bool has_failed = false, is_done = phases.length > 0;
    for (size_t i = 0; i < phases.length; i++) {
        has_failed = has_failed || bh_equal(phases.items[i], "Failed");
        is_done = is_done && bh_equal(phases.items[i], "Done");
    }
    const char *phase = has_failed ? "Failed" : is_done ? "Done" : "Running";
    bh_set(edits, "/status", bh_format("{\"phase\": \"%s\", \"records\": %lld}", phase, (long long)sum));
}

static void dependencies(bh_object template_, bh_dependencies *dependencies) {
    const char *namespace_ = bh_text(template_, "/metadata/namespace");
    bh_texts secrets = bh_each_text(template_, "/spec/stages", "/secret");
    for (size_t i = 0; i < secrets.length; i++)
        if (!is_empty(secrets.items[i]))
            bh_add_dependency(dependencies, (bh_dependency){.api_version = "v1",
                                                            .kind = "Secret",
                                                            .namespace_ = namespace_ == NULL ? "" : namespace_,
                                                            .name = secrets.items[i]});
}

const bh_plugin bulkhead_plugin = {
    .name = "pipeline",
    .version = "0.1.0",
    .kinds = (bh_object_kind[]){{"example.io/v1", "Pipeline"}, {0}},
    .reusable = true,
    .health = interpret,
    .components = components,
    .reflect_status = reflect_status,
    .aggregate_status = aggregate_status,
    .dependencies = dependencies,
};
