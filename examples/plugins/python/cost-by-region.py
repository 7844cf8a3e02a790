"""Prefers clusters of cheap regions: the cheapest has 100, one at twice its price 50, one without a price 0."""

from typing import Any

from bulkhead import Binding, Clusters, config, configure, plugin, scheduler_score

plugin(
    name="cost-by-region",
    version="0.1.0",
    reusable=True,
    config_schema={
        "type": ["object", "null"],
        "properties": {
            "prices": {
                "type": "object",
                "additionalProperties": {"type": "integer", "minimum": 1, "maximum": 1000000},
            }
        },
        "additionalProperties": False,
        "examples": [None, {"prices": {"eu-west": 40, "us-east": 30}}],
    },
)


@configure
def scores_by_region(settings: Any) -> dict[str, int]:
    prices = (settings or {}).get("prices", {})
    cheapest = min(prices.values(), default=0)
    return {region: 100 * cheapest // price for region, price in prices.items()}


@scheduler_score
def score(binding: Binding, feasible: Clusters) -> list[int]:
    scores = config()
    return [scores.get(region, 0) for region in feasible.regions()]
