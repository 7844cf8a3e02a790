/* Prefers clusters of one region. */
#include "bulkhead.h"
#include "bulkhead_json.h"

static const char *region;

static void configure(const bh_value *config) { region = bh_keep(bh_json_text(config, "/region", "eu-west")); }

static void score(bh_binding binding, bh_clusters feasible, uint32_t *scores) {
    (void)binding;
    bh_texts regions = bh_clusters_regions(feasible);
    for (size_t i = 0; i < regions.length; i++) scores[i] = bh_equal(regions.items[i], region) ? 100 : 0;
}

const bh_plugin bulkhead_plugin = {
    .name = "{{name}}",
    .version = "0.1.0",
    .reusable = true,
    .config_schema = "{\"type\": [\"object\", \"null\"],"
                     " \"properties\": {\"region\": {\"type\": \"string\"}},"
                     " \"additionalProperties\": false,"
                     " \"examples\": [null, {\"region\": \"us-east\"}]}",
    .configure = configure,
    .score = score,
};
