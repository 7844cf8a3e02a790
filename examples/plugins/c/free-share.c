/* Prefers clusters with a large free share of a resource: 100 if all of it is free, 0 if it is not reported. */
#include "bulkhead.h"
#include "bulkhead_json.h"

static const char *resource;

static void configure(const bh_value *config) { resource = bh_keep(bh_json_text(config, "/resource", "cpu")); }

static void score(bh_binding binding, bh_clusters feasible, uint32_t *scores) {
    (void)binding;
    bh_numbers free = bh_clusters_free(feasible, resource), all = bh_clusters_allocatable(feasible, resource);
    for (size_t i = 0; i < all.length; i++)
        scores[i] = all.items[i] > 0 ? (uint32_t)fmin(fmax(100 * free.items[i] / all.items[i], 0), 100) : 0;
}

const bh_plugin bulkhead_plugin = {
    .name = "free-share",
    .version = "0.1.0",
    .reusable = true,
    .config_schema = "{\"type\": [\"object\", \"null\"],"
                     " \"properties\": {\"resource\": {\"type\": \"string\", \"minLength\": 1}},"
                     " \"additionalProperties\": false,"
                     " \"examples\": [null, {\"resource\": \"memory\"}]}",
    .configure = configure,
    .score = score,
};
