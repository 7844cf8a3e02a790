#include "bulkhead_test.h"

static bh_eviction_verdict check(int available) {
    const char *reports = bh_format(
        "[{\"clusterName\": \"member1\", \"applied\": true, \"status\": {\"availableReplicas\": 3}},"
        " {\"clusterName\": \"member2\", \"applied\": true, \"status\": {\"availableReplicas\": %d}}]", available);
    bh_binding binding = bh_test_binding("{\"spec\": {\"replicas\": 3}}", reports);
    return bulkhead_plugin.eviction_check(binding, bh_test_task("{\"fromCluster\": \"member1\"}"));
}

int main(void) {
    bh_eviction_verdict verdict = check(2);
    BH_CHECK(verdict.opinion == BH_HOLD);
    BH_CHECK(bh_equal(verdict.reason.message, "2 of 3 replicas are available elsewhere"));
    BH_CHECK(check(3).opinion == BH_RELEASE);
    return bh_test_failures();
}
