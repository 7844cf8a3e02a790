#include "bulkhead_test.h"

int main(void) {
    bh_object missing = bh_test_object("{\"spec\": {\"replicas\": 2}, \"status\": {\"readyReplicas\": 1}}");
    bh_health_verdict verdict = bulkhead_plugin.health(missing);
    BH_CHECK(verdict.state == BH_UNHEALTHY);
    BH_CHECK(bh_equal(verdict.reason.message, "1 of 2 replicas are ready"));

    verdict = bulkhead_plugin.health(bh_test_object("{\"spec\": \"replicas\"}"));
    BH_CHECK(verdict.state == BH_UNKNOWN);
    return bh_test_failures();
}
