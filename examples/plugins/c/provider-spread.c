/* Prefers clusters of providers that run fewer replicas of the workload: 100 for a provider without any. */
#include "bulkhead.h"

typedef struct {
    const char *provider;
    uint64_t replicas;
} sum;

/* Returns the sum of a provider, and adds one if there is none. A federation has few providers. */
static sum *of(sum *sums, size_t *length, const char *provider) {
    for (size_t i = 0; i < *length; i++)
        if (bh_equal(sums[i].provider, provider)) return &sums[i];
    sums[*length] = (sum){provider, 0};
    return &sums[(*length)++];
}

static void score(bh_binding binding, bh_clusters feasible, uint32_t *scores) {
    (void)binding;
    bh_texts providers = bh_clusters_providers(feasible);
    bh_counts replicas = bh_clusters_replicas(feasible);
    sum *sums = bh_allocate((providers.length + 1) * sizeof *sums);
    size_t length = 0;
    uint64_t total = 0;
    for (size_t i = 0; i < providers.length; i++) {
        of(sums, &length, providers.items[i])->replicas += replicas.items[i];
        total += replicas.items[i];
    }
    for (size_t i = 0; i < providers.length; i++) {
        uint64_t found = of(sums, &length, providers.items[i])->replicas;
        scores[i] = total == 0 ? 100 : 100 - (uint32_t)(100 * found / total);
    }
}

const bh_plugin bulkhead_plugin = {
    .name = "provider-spread",
    .version = "0.1.0",
    .reusable = true,
    .score = score,
};
