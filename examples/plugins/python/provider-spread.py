"""Prefers clusters of providers that run fewer replicas of the workload: 100 for a provider without any."""

from collections import Counter

from bulkhead import Binding, Clusters, plugin, scheduler_score

plugin(name="provider-spread", version="0.1.0", reusable=True)


@scheduler_score
def score(binding: Binding, feasible: Clusters) -> list[int]:
    providers, sums = feasible.providers(), Counter[str]()
    for provider, replicas in zip(providers, feasible.replicas()):
        sums[provider] += replicas
    total = sums.total()
    return [100 - 100 * sums[provider] // total if total else 100 for provider in providers]
