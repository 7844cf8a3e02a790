/* Holds old copies until the clusters that the workload moved to report as many available replicas as are desired. */
#include "bulkhead.h"

static bh_eviction_verdict check(bh_binding binding, bh_task task) {
    double desired = bh_binding_replicas(binding), available = 0;
    const char *from = bh_task_from_cluster(task);
    bh_observations reports = bh_binding_observed(binding);
    bh_texts clusters = bh_observations_clusters(reports);
    bh_numbers numbers = bh_observations_number(reports, "/availableReplicas");
    for (size_t i = 0; i < clusters.length; i++)
        /* NaN stands for a report without the field. */
        if (!bh_equal(clusters.items[i], from) && numbers.items[i] > 0) available += numbers.items[i];
    const char *message = bh_format("%.0f of %.0f replicas are available elsewhere", available, desired);
    return desired > 0 && available >= desired ? bh_release("Available", message) : bh_hold("NotAvailable", message);
}

const bh_plugin bulkhead_plugin = {
    .name = "{{name}}",
    .version = "0.1.0",
    .reusable = true,
    .eviction_check = check,
};
