"""Declaration of the plugin: its metadata, its functions, and the context of a call."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any, Callable, Mapping, Optional, Sequence, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass
class Registry:
    """All that a plugin declares."""

    name: str = ""
    version: str = ""
    description: str = ""
    kinds: Sequence[tuple[str, str]] = ()
    taint_keys: Sequence[str] = ()
    config_schema: Optional[Mapping[str, Any]] = None
    reusable: bool = False
    functions: dict[str, Callable[..., Any]] = field(default_factory=dict)
    config: Any = None


REGISTRY = Registry()


class Context:
    """Source of time, seed, name and log lines. The host and the tests each install one."""

    def now_ms(self) -> int:
        """Returns milliseconds since the Unix epoch."""
        raise RuntimeError("there is no call under way; tests use `with bulkhead.testing.call(now=...)`")

    def seed(self) -> int:
        """Returns the seed of the call."""
        return 0

    def plugin_name(self) -> str:
        """Returns the name that the operator gave the plugin."""
        return REGISTRY.name

    def log(self, level: str, message: str) -> None:
        """Writes a log line."""


CONTEXT = Context()


def install(context: Context) -> Context:
    """Replaces the context. Returns the previous one."""
    global CONTEXT
    previous, CONTEXT = CONTEXT, context
    return previous


def plugin(
    *,
    name: str,
    version: str,
    description: str = "",
    kinds: Sequence[tuple[str, str]] = (),
    taint_keys: Sequence[str] = (),
    config_schema: Optional[Mapping[str, Any]] = None,
    reusable: bool = False,
) -> None:
    """Describes the plugin. Called once, in its module.

    ``kinds`` has the pairs of API version and kind that :func:`health` and :class:`interpret` handle; empty means
    every kind. ``config_schema`` is a JSON Schema (draft 2020-12) whose ``examples`` are valid configurations.
    ``reusable`` allows the host to answer several calls in one instance: set it only if no call leaves state behind
    that changes a later answer. It makes Python a hundred times as fast.
    """
    REGISTRY.name, REGISTRY.version, REGISTRY.description = name, version, description
    REGISTRY.kinds, REGISTRY.taint_keys = tuple(kinds), tuple(taint_keys)
    REGISTRY.config_schema, REGISTRY.reusable = config_schema, reusable


def _register(key: str) -> Callable[[Function], Function]:
    def decorate(function: Function) -> Function:
        if key in REGISTRY.functions:
            raise ValueError(f"{function.__name__}: @{key} is used twice in this plugin")
        REGISTRY.functions[key] = function
        return function

    return decorate


configure = _register("configure")
"""Decorates a function that checks the configuration and returns a value for :func:`config`. It must be cheap."""
health = _register("health")
"""Decorates ``(observed: Object) -> HealthVerdict``: the health of an object as a member cluster reports it."""
cluster_taint = _register("cluster_taint")
"""Decorates ``(cluster: Cluster) -> list[AddTaint | RemoveTaint]``: at most 64 changes of one cluster's taints."""
scheduler_filter = _register("scheduler_filter")
"""Decorates ``(binding: Binding, candidates: Clusters) -> list[FilterVerdict]``: one verdict per candidate."""
scheduler_score = _register("scheduler_score")
"""Decorates ``(binding: Binding, feasible: Clusters) -> list[int]``: one score from 0 to 100 per cluster."""
eviction_check = _register("eviction_check")
"""Decorates ``(binding: Binding, task: EvictionTask) -> EvictionVerdict``."""


class interpret:
    """Decorators for Karmada's interpreter operations other than health. Those without a function have no rule."""

    replicas = staticmethod(_register("replicas"))
    """``(template: Object) -> Replicas``: ``InterpretReplica``."""
    components = staticmethod(_register("components"))
    """``(template: Object) -> list[Component]``: ``InterpretComponent``."""
    revise_replicas = staticmethod(_register("revise_replicas"))
    """``(template: Object, replicas: int) -> list[Edit]``: ``ReviseReplica``."""
    retain = staticmethod(_register("retain"))
    """``(desired: Object, observed: Object) -> list[Edit]``: ``Retain``."""
    reflect_status = staticmethod(_register("reflect_status"))
    """``(observed: Object) -> Any``: ``InterpretStatus``; None if there is nothing to collect."""
    aggregate_status = staticmethod(_register("aggregate_status"))
    """``(template: Object, reports: Observations) -> list[Edit]``: ``AggregateStatus``."""
    dependencies = staticmethod(_register("dependencies"))
    """``(template: Object) -> list[Dependency]``: ``InterpretDependency``."""


def apply_config(text: str) -> None:
    """Reads the configuration and calls the function of :func:`configure`, if there is one."""
    value = json.loads(text)
    function = REGISTRY.functions.get("configure")
    REGISTRY.config = value if function is None else function(value)


def config() -> Any:
    """Returns the configuration, or the value that the function of :func:`configure` made from it."""
    return REGISTRY.config


def now() -> datetime:
    """Returns the time of the call in UTC. It is constant during a call."""
    return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=CONTEXT.now_ms())


def seed() -> int:
    """Returns a seed for pseudo-random numbers. The same question has the same seed."""
    return CONTEXT.seed()


def plugin_name() -> str:
    """Returns the name that the operator gave the plugin."""
    return CONTEXT.plugin_name()


def log(message: str, *, level: str = "info") -> None:
    """Writes a line of at most 512 characters for the operator; ``level`` is debug, info or warn."""
    if level not in ("debug", "info", "warn"):
        raise ValueError(f"log: {level!r} is not a level; use debug, info or warn")
    CONTEXT.log(level, message)
