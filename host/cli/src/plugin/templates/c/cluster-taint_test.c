#include "bulkhead_test.h"

static bh_taint_changes decide(const char *cluster) {
    bh_taint_changes changes = {0};
    bulkhead_plugin.cluster_taint(bh_test_cluster(cluster), &changes);
    return changes;
}

int main(void) {
    bh_taint_changes changes = decide(
        "{\"name\": \"member1\", \"status\": {\"conditions\":"
        " [{\"type\": \"Ready\", \"status\": \"False\", \"message\": \"no answer\"}]}}");
    BH_CHECK(changes.length == 1 && !changes.items[0].removes);
    BH_CHECK(bh_equal(changes.items[0].reason.message, "no answer"));

    changes = decide(
        "{\"name\": \"member1\", \"spec\": {\"taints\": [{\"key\": \"example.io/not-ready\", \"effect\": \"NoSchedule\"}]},"
        " \"status\": {\"conditions\": [{\"type\": \"Ready\", \"status\": \"True\"}]}}");
    BH_CHECK(changes.length == 1 && changes.items[0].removes);
    return bh_test_failures();
}
