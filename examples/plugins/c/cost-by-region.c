/* Prefers clusters of cheap regions: the cheapest has 100, one at twice its price 50, one without a price 0. */
#include "bulkhead.h"
#include "bulkhead_json.h"

#include <stdlib.h>

typedef struct {
    const char *region;
    uint32_t score;
} price;

static price *prices;
static size_t length;

static void configure(const bh_value *config) {
    const bh_value *found = bh_json_at(config, "/prices");
    length = found == NULL ? 0 : found->length;
    prices = malloc((length + 1) * sizeof *prices);
    if (prices == NULL) abort();
    int64_t cheapest = INT64_MAX;
    for (size_t i = 0; i < length; i++)
        if (found->items[i].integer < cheapest) cheapest = found->items[i].integer;
    for (size_t i = 0; i < length; i++)
        prices[i] = (price){bh_keep(found->keys[i]), (uint32_t)(100 * cheapest / found->items[i].integer)};
}

static void score(bh_binding binding, bh_clusters feasible, uint32_t *scores) {
    (void)binding;
    bh_texts regions = bh_clusters_regions(feasible);
    for (size_t i = 0; i < regions.length; i++) {
        scores[i] = 0;
        for (size_t j = 0; j < length; j++)
            if (bh_equal(regions.items[i], prices[j].region)) scores[i] = prices[j].score;
    }
}

const bh_plugin bulkhead_plugin = {
    .name = "cost-by-region",
    .version = "0.1.0",
    .reusable = true,
    .config_schema = "{\"type\": [\"object\", \"null\"],"
                     " \"properties\": {\"prices\": {\"type\": \"object\","
                     " \"additionalProperties\": {\"type\": \"integer\", \"minimum\": 1, \"maximum\": 1000000}}},"
                     " \"additionalProperties\": false,"
                     " \"examples\": [null, {\"prices\": {\"eu-west\": 40, \"us-east\": 30}}]}",
    .configure = configure,
    .score = score,
};
