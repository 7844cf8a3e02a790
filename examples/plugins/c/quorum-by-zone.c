/* Holds an eviction until other healthy copies run in a majority of the zones. */
#include "bulkhead.h"
#include "bulkhead_json.h"

#include <stdlib.h>

typedef struct {
    const char *cluster;
    size_t zone; /* index of the first cluster of the zone */
} place;

static place *places;
static size_t length, zones;

static void configure(const bh_value *config) {
    const bh_value *found = bh_json_at(config, "/zones");
    length = found == NULL ? 0 : found->length;
    zones = 0;
    places = malloc((length + 1) * sizeof *places);
    if (places == NULL) abort();
    for (size_t i = 0; i < length; i++) {
        size_t zone = 0;
        while (!bh_equal(found->items[zone].text, found->items[i].text)) zone++;
        zones += zone == i;
        places[i] = (place){bh_keep(found->keys[i]), zone};
    }
}

static bh_eviction_verdict check(bh_binding binding, bh_task task) {
    if (zones == 0) return (bh_eviction_verdict){.opinion = BH_NO_EVICTION_OPINION};
    const char *from = bh_task_from_cluster(task);
    bh_observations reports = bh_binding_observed(binding);
    bh_texts clusters = bh_observations_clusters(reports);
    bool *is_healthy = bh_allocate(length * sizeof *is_healthy);
    for (size_t j = 0; j < length; j++) is_healthy[j] = false;
    for (size_t i = 0; i < clusters.length; i++) {
        if (bh_equal(clusters.items[i], from)) continue;
        if (bh_observations_health(reports, (uint32_t)i) != BH_HEALTHY) continue;
        for (size_t j = 0; j < length; j++)
            if (bh_equal(places[j].cluster, clusters.items[i])) is_healthy[places[j].zone] = true;
    }
    size_t found = 0, needed = zones / 2 + 1;
    for (size_t j = 0; j < length; j++) found += is_healthy[j];
    const char *message = bh_format("healthy copies in %zu of %zu zones", found, zones);
    if (found >= needed) return bh_release("Quorum", message);
    return bh_hold("NoQuorum", bh_format("%s, %zu are needed", message, needed));
}

const bh_plugin bulkhead_plugin = {
    .name = "quorum-by-zone",
    .version = "0.1.0",
    .reusable = true,
    .config_schema = "{\"type\": [\"object\", \"null\"],"
                     " \"properties\": {\"zones\": {\"type\": \"object\","
                     " \"additionalProperties\": {\"type\": \"string\", \"minLength\": 1}}},"
                     " \"additionalProperties\": false,"
                     " \"examples\": [null,"
                     " {\"zones\": {\"member1\": \"a\", \"member2\": \"b\", \"member3\": \"c\"}}]}",
    .configure = configure,
    .eviction_check = check,
};
