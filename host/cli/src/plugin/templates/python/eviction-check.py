"""Holds old copies until the clusters that the workload moved to report as many available replicas as are desired."""

from bulkhead import Binding, EvictionTask, EvictionVerdict, eviction_check, plugin

plugin(name="{{name}}", version="0.1.0", reusable=True)


@eviction_check
def check(binding: Binding, task: EvictionTask) -> EvictionVerdict:
    desired, reports = binding.replicas, binding.observed
    numbers = zip(reports.clusters(), reports.number("/availableReplicas"))
    counted = [number for cluster, number in numbers if cluster != task.from_cluster and number and number > 0]
    available = sum(counted)
    message = f"{available:.0f} of {desired} replicas are available elsewhere"
    if 0 < desired <= available:
        return EvictionVerdict.release("Available", message)
    return EvictionVerdict.hold("NotAvailable", message)
