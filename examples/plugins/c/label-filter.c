/* Lets workloads run only on clusters with the configured labels. */
#include "bulkhead.h"
#include "bulkhead_json.h"

#include <stdlib.h>

typedef struct {
    const char *key, *value; /* any value fits if it is NULL */
} label;

static label *required;
static size_t length;

static void configure(const bh_value *config) {
    const bh_value *found = bh_json_at(config, "/labels");
    length = found == NULL ? 0 : found->length;
    required = malloc((length + 1) * sizeof *required);
    if (required == NULL) abort();
    for (size_t i = 0; i < length; i++) {
        const char *value = bh_json_text(&found->items[i], "/value", NULL);
        required[i].key = bh_keep(bh_json_text(&found->items[i], "/key", ""));
        required[i].value = value == NULL ? NULL : bh_keep(value);
    }
}

static void filter(bh_binding binding, bh_clusters candidates, bh_filter_verdict *verdicts) {
    (void)binding;
    uint32_t count = bh_clusters_length(candidates);
    for (uint32_t i = 0; i < count; i++) verdicts[i] = bh_fit();
    /* The first label that a cluster lacks is the reason. */
    for (size_t j = 0; j < length; j++) {
        const char *key = required[j].key, *value = required[j].value;
        bh_texts found = bh_clusters_label(candidates, key);
        for (size_t i = 0; i < found.length; i++) {
            if (verdicts[i].opinion != BH_FIT) continue;
            if (found.items[i] == NULL)
                verdicts[i] = bh_unfit("LabelMissing", bh_format("no label %s", key));
            else if (value != NULL && !bh_equal(found.items[i], value))
                verdicts[i] = bh_unfit("LabelDiffers",
                                       bh_format("label %s is %s, not %s", key, found.items[i], value));
        }
    }
}

const bh_plugin bulkhead_plugin = {
    .name = "label-filter",
    .version = "0.1.0",
    .reusable = true,
    .config_schema =
        "{\"type\": [\"object\", \"null\"],"
        " \"properties\": {\"labels\": {\"type\": \"array\", \"items\": {\"type\": \"object\","
        " \"properties\": {\"key\": {\"type\": \"string\", \"minLength\": 1}, \"value\": {\"type\": \"string\"}},"
        " \"required\": [\"key\"], \"additionalProperties\": false}}},"
        " \"additionalProperties\": false,"
        " \"examples\": [null, {\"labels\":"
        " [{\"key\": \"tier\", \"value\": \"gold\"}, {\"key\": \"example.io/audited\"}]}]}",
    .configure = configure,
    .filter = filter,
};
