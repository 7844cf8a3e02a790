/* Lets workloads run only on clusters with a label. */
#include "bulkhead.h"
#include "bulkhead_json.h"

static const char *key;

static void configure(const bh_value *config) { key = bh_keep(bh_json_text(config, "/key", "example.io/allowed")); }

static void filter(bh_binding binding, bh_clusters candidates, bh_filter_verdict *verdicts) {
    (void)binding;
    const char *message = bh_format("no label %s", key);
    bh_texts labels = bh_clusters_label(candidates, key);
    for (size_t i = 0; i < labels.length; i++)
        verdicts[i] = labels.items[i] != NULL ? bh_fit() : bh_unfit("NoLabel", message);
}

const bh_plugin bulkhead_plugin = {
    .name = "{{name}}",
    .version = "0.1.0",
    .reusable = true,
    .config_schema = "{\"type\": [\"object\", \"null\"],"
                     " \"properties\": {\"key\": {\"type\": \"string\", \"minLength\": 1}},"
                     " \"additionalProperties\": false,"
                     " \"examples\": [null, {\"key\": \"tier\"}]}",
    .configure = configure,
    .filter = filter,
};
