"""Write Bulkhead policy plugins in Python.

A plugin is a module with one call of :func:`plugin` and one decorated function for each kind of call::

    from bulkhead import HealthVerdict, Object, health, plugin

    plugin(name="game-health", version="0.1.0", kinds=[("example.io/v1", "Game")])

    @health
    def interpret(observed: Object) -> HealthVerdict:
        if observed.text("/status/phase") == "Running":
            return HealthVerdict.healthy("Running")
        return HealthVerdict.unhealthy("NotRunning", f"its phase is {observed.text('/status/phase')}")

Decorators: :func:`health`, :func:`cluster_taint`, :func:`scheduler_filter`, :func:`scheduler_score`,
:func:`eviction_check`, and those of :class:`interpret` for Karmada's other interpreter operations.

An exception is a fault of the plugin; the host never treats it as a verdict. Raise :class:`Unsupported` to leave the
answer to the next policy.
"""

from .inputs import Binding, Cluster, Clusters, EvictionTask, Object, Observations
from .registry import (
    cluster_taint,
    config,
    configure,
    eviction_check,
    health,
    interpret,
    log,
    now,
    plugin,
    plugin_name,
    scheduler_filter,
    scheduler_score,
    seed,
)
from .types import (
    AddTaint,
    Component,
    Condition,
    ConditionStatus,
    Dependency,
    Edit,
    EvictionVerdict,
    FilterVerdict,
    Health,
    HealthVerdict,
    InvalidConfig,
    PolicyError,
    Reason,
    RemoveTaint,
    Replicas,
    Requirements,
    Taint,
    TaintEffect,
    Target,
    Unsupported,
)

__all__ = [
    "AddTaint",
    "Binding",
    "Cluster",
    "Clusters",
    "Component",
    "Condition",
    "ConditionStatus",
    "Dependency",
    "Edit",
    "EvictionTask",
    "EvictionVerdict",
    "FilterVerdict",
    "Health",
    "HealthVerdict",
    "InvalidConfig",
    "Object",
    "Observations",
    "PolicyError",
    "Reason",
    "RemoveTaint",
    "Replicas",
    "Requirements",
    "Taint",
    "TaintEffect",
    "Target",
    "Unsupported",
    "cluster_taint",
    "config",
    "configure",
    "eviction_check",
    "health",
    "interpret",
    "log",
    "now",
    "plugin",
    "plugin_name",
    "scheduler_filter",
    "scheduler_score",
    "seed",
]
