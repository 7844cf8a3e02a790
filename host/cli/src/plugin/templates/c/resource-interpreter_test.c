#include "bulkhead_test.h"

int main(void) {
    bh_object game = bh_test_object("{\"spec\": {\"rooms\": 3}}");
    BH_CHECK(bulkhead_plugin.replicas(game).count == 3);

    bh_edits edits = {0};
    bulkhead_plugin.revise_replicas(game, 5, &edits);
    BH_CHECK(edits.length == 1);
    BH_CHECK(bh_equal(edits.items[0].pointer, "/spec/rooms") && bh_equal(edits.items[0].json, "5"));

    BH_CHECK(bulkhead_plugin.health(bh_test_object("{\"status\": {\"phase\": \"Running\"}}")).state == BH_HEALTHY);
    return bh_test_failures();
}
