"""A host stub: inputs from Python data, for tests that need no WebAssembly.

Data has the shape of the cases of ``bulkhead plugin test``::

    observed = object_of({"spec": {"replicas": 2}, "status": {"readyReplicas": 2}})
    assert plugin.interpret(observed).health is Health.HEALTHY
"""

from __future__ import annotations

import math
import re
from contextlib import contextmanager
from datetime import datetime, timezone
from fractions import Fraction
from typing import Any, Iterator, Mapping, Optional, Sequence

from . import registry
from .inputs import Binding, Cluster, Clusters, EvictionTask, Object, Observations
from .types import Condition, ConditionStatus, Health, Taint, TaintEffect, Target

_MISSING = object()
_QUANTITY = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))([EPTGMkmun]?|[EPTGMK]i|[eE][+-]?\d+)$")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_S64_MAX = 2**63 - 1


def _lookup(value: Any, pointer: str) -> Any:
    if pointer == "":
        return value
    if not pointer.startswith("/"):
        return _MISSING
    for part in pointer[1:].split("/"):
        part = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdigit() and str(int(part)) == part and int(part) < len(value):
            value = value[int(part)]
        else:
            return _MISSING
    return value


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value <= _S64_MAX


def _number(value: Any) -> Optional[float]:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _scalar(value: Any) -> Any:
    return None if value is _MISSING or isinstance(value, (list, Mapping)) else value


def _quantity(value: Any) -> Optional[Fraction]:
    found = _QUANTITY.match(str(value)) if isinstance(value, (str, int, float)) else None
    if found is None or isinstance(value, bool):
        return None
    number, suffix = Fraction(found[1]), found[2]
    if suffix in _BINARY:
        return number * 1024 ** _BINARY[suffix]
    power = _DECIMAL[suffix] if suffix in _DECIMAL else int(suffix[1:])
    return number * Fraction(10) ** power


def _seconds(value: Any) -> Optional[int]:
    if not isinstance(value, str):
        return None
    return int(datetime.fromisoformat(value.replace("Z", "+00:00")).timestamp())


def _kind(value: Any) -> Optional[str]:
    if value is _MISSING:
        return None
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if _is_integer(value):
        return "integer"
    kinds = ((str, "text"), (list, "list"), (Mapping, "map"))
    return next((name for kind, name in kinds if isinstance(value, kind)), "number")


class _Object(Object):
    def __init__(self, data: Any) -> None:
        self._data = data

    def kind(self, pointer: str) -> Optional[str]:
        return _kind(_lookup(self._data, pointer))

    def get(self, pointer: str, default: Any = None) -> Any:
        value = _lookup(self._data, pointer)
        return default if value is _MISSING else value

    def many(self, pointers: Sequence[str]) -> list[Any]:
        return [_scalar(_lookup(self._data, pointer)) for pointer in pointers]

    def each(self, in_list: str, pointer: str) -> list[Any]:
        found = _lookup(self._data, in_list)
        return [_scalar(_lookup(item, pointer)) for item in found] if isinstance(found, list) else []

    def text(self, pointer: str) -> Optional[str]:
        value = _lookup(self._data, pointer)
        return value if isinstance(value, str) else None

    def integer(self, pointer: str) -> Optional[int]:
        value = _lookup(self._data, pointer)
        return value if _is_integer(value) else None

    def number(self, pointer: str) -> Optional[float]:
        return _number(_lookup(self._data, pointer))

    def boolean(self, pointer: str) -> Optional[bool]:
        value = _lookup(self._data, pointer)
        return value if isinstance(value, bool) else None

    def quantity_milli(self, pointer: str) -> Optional[int]:
        value = _quantity(_lookup(self._data, pointer))
        return None if value is None else min(math.ceil(value * 1000), _S64_MAX)

    def length(self, pointer: str) -> Optional[int]:
        value = _lookup(self._data, pointer)
        return len(value) if isinstance(value, (list, Mapping)) else None

    def keys(self, pointer: str) -> list[str]:
        value = _lookup(self._data, pointer)
        return sorted(value) if isinstance(value, Mapping) else []


class _Observations(Observations):
    def __init__(self, reports: Sequence[Mapping[str, Any]]) -> None:
        self._reports = sorted(reports, key=lambda report: report["clusterName"])

    def _status(self, pointer: str) -> list[Any]:
        return [_lookup(report.get("status"), pointer) for report in self._reports]

    def __len__(self) -> int:
        return len(self._reports)

    def clusters(self) -> list[str]:
        return [report["clusterName"] for report in self._reports]

    def applied(self) -> list[bool]:
        return [report.get("applied", False) for report in self._reports]

    def health(self) -> list[Optional[Health]]:
        return [Health(report["health"]) if report.get("health") else None for report in self._reports]

    def number(self, pointer: str) -> list[Optional[float]]:
        return [_number(value) for value in self._status(pointer)]

    def text(self, pointer: str) -> list[Optional[str]]:
        return [value if isinstance(value, str) else None for value in self._status(pointer)]

    def status(self, index: int) -> Optional[Object]:
        found = self._reports[index].get("status") if 0 <= index < len(self._reports) else None
        return None if found is None else _Object(found)


class _Binding(Binding):
    def __init__(self, data: Mapping[str, Any], reports: Sequence[Mapping[str, Any]]) -> None:
        self._data, self._reports = _Object(data), reports

    @property
    def namespace(self) -> Optional[str]:
        return self._data.text("/namespace")

    @property
    def name(self) -> str:
        return self._data.text("/name") or ""

    @property
    def workload(self) -> tuple[str, str, str]:
        parts = [self._data.text(f"/spec/resource/{part}") or "" for part in ("apiVersion", "kind", "name")]
        return (parts[0], parts[1], parts[2])

    @property
    def replicas(self) -> int:
        return self._data.integer("/spec/replicas") or 0

    @property
    def targets(self) -> list[Target]:
        clusters = self._data.get("/spec/clusters", [])
        return [Target(cluster["name"], cluster.get("replicas", 0)) for cluster in clusters]

    @property
    def evicting_from(self) -> list[str]:
        return self._data.each("/spec/gracefulEvictionTasks", "/fromCluster")

    @property
    def observed(self) -> Observations:
        return _Observations(self._reports)

    @property
    def document(self) -> Object:
        return self._data


class _EvictionTask(EvictionTask):
    def __init__(self, data: Mapping[str, Any]) -> None:
        self._data = _Object(data)

    @property
    def from_cluster(self) -> str:
        return self._data.text("/fromCluster") or ""

    @property
    def reason(self) -> str:
        return self._data.text("/reason") or ""

    @property
    def producer(self) -> str:
        return self._data.text("/producer") or ""

    @property
    def since_s(self) -> Optional[int]:
        return _seconds(self._data.text("/creationTimestamp"))

    @property
    def grace_period_s(self) -> Optional[int]:
        return self._data.integer("/gracePeriodSeconds")

    @property
    def replicas(self) -> Optional[int]:
        return self._data.integer("/replicas")

    @property
    def document(self) -> Object:
        return self._data


class _Cluster(Cluster):
    def __init__(self, data: Mapping[str, Any]) -> None:
        self._data = _Object(data)

    @property
    def name(self) -> str:
        return self._data.text("/name") or ""

    def label(self, key: str) -> Optional[str]:
        return self._data.get("/labels", {}).get(key)

    @property
    def provider(self) -> str:
        return self._data.text("/spec/provider") or ""

    @property
    def region(self) -> str:
        return self._data.text("/spec/region") or ""

    @property
    def zones(self) -> list[str]:
        return self._data.get("/spec/zones", [])

    @property
    def taints(self) -> list[Taint]:
        return [
            Taint(taint["key"], taint.get("value", ""), TaintEffect(taint["effect"]), _seconds(taint.get("timeAdded")))
            for taint in self._data.get("/spec/taints", [])
        ]

    @property
    def conditions(self) -> list[Condition]:
        return [
            Condition(
                condition["type"],
                ConditionStatus(condition["status"]),
                condition.get("reason", ""),
                condition.get("message", ""),
                _seconds(condition.get("lastTransitionTime")),
            )
            for condition in self._data.get("/status/conditions", [])
        ]

    def condition(self, name: str) -> Optional[Condition]:
        return next((condition for condition in self.conditions if condition.name == name), None)

    def serves(self, api_version: str, kind: str) -> bool:
        return any(
            group.get("groupVersion") == api_version and any(item.get("kind") == kind for item in group["resources"])
            for group in self._data.get("/status/apiEnablements", [])
        )

    @property
    def document(self) -> Object:
        return self._data


class _Clusters(Clusters):
    def __init__(self, clusters: Sequence[Mapping[str, Any]], binding: Optional[Binding]) -> None:
        self._data = sorted(clusters, key=lambda cluster: cluster["name"])
        self._targets = {target.cluster: target.replicas for target in (binding.targets if binding else [])}

    def _all(self, pointer: str) -> list[Any]:
        return [_lookup(cluster, pointer) for cluster in self._data]

    def _amounts(self, resource: str, *, requested: bool) -> list[Optional[float]]:
        found: list[Optional[float]] = []
        for cluster in self._data:
            summary = _lookup(cluster, "/status/resourceSummary")
            of = summary if isinstance(summary, Mapping) else {}
            amount = _quantity(of.get("allocatable", {}).get(resource))
            if amount is not None and requested:
                used = (_quantity(of.get(part, {}).get(resource, 0)) or 0 for part in ("allocated", "allocating"))
                amount = max(amount - sum(used), Fraction(0))
            found.append(None if amount is None else float(amount))
        return found

    def __len__(self) -> int:
        return len(self._data)

    def names(self) -> list[str]:
        return [cluster["name"] for cluster in self._data]

    def ready(self) -> list[bool]:
        conditions = [_Cluster(cluster).condition("Ready") for cluster in self._data]
        return [condition is not None and condition.status is ConditionStatus.TRUE for condition in conditions]

    def current(self) -> list[bool]:
        return [name in self._targets for name in self.names()]

    def replicas(self) -> list[int]:
        return [self._targets.get(name, 0) for name in self.names()]

    def label(self, key: str) -> list[Optional[str]]:
        return [cluster.get("labels", {}).get(key) for cluster in self._data]

    def regions(self) -> list[str]:
        return [_Cluster(cluster).region for cluster in self._data]

    def providers(self) -> list[str]:
        return [_Cluster(cluster).provider for cluster in self._data]

    def allocatable(self, resource: str) -> list[Optional[float]]:
        return self._amounts(resource, requested=False)

    def free(self, resource: str) -> list[Optional[float]]:
        return self._amounts(resource, requested=True)

    def text(self, pointer: str) -> list[Optional[str]]:
        return [value if isinstance(value, str) else None for value in self._all(pointer)]

    def number(self, pointer: str) -> list[Optional[float]]:
        return [_number(value) for value in self._all(pointer)]

    def get(self, index: int) -> Optional[Cluster]:
        return _Cluster(self._data[index]) if 0 <= index < len(self._data) else None


def object_of(data: Any) -> Object:
    """Returns an object with this content."""
    return _Object(data)


def cluster_of(data: Mapping[str, Any]) -> Cluster:
    """Returns a cluster from its name, labels, spec and status."""
    return _Cluster(data)


def clusters_of(clusters: Sequence[Mapping[str, Any]], binding: Optional[Binding] = None) -> Clusters:
    """Returns candidate clusters; those that ``binding`` is scheduled to are current."""
    return _Clusters(clusters, binding)


def binding_of(data: Mapping[str, Any], reports: Sequence[Mapping[str, Any]] = ()) -> Binding:
    """Returns a binding from its namespace, name and spec, with the reports of the member clusters."""
    return _Binding(data, reports)


def observations_of(reports: Sequence[Mapping[str, Any]]) -> Observations:
    """Returns the reports of the member clusters."""
    return _Observations(reports)


def task_of(data: Mapping[str, Any]) -> EvictionTask:
    """Returns a graceful eviction task."""
    return _EvictionTask(data)


class _Call(registry.Context):
    def __init__(self, now: datetime, seed: int) -> None:
        self._now, self._seed, self.lines = now, seed, list[tuple[str, str]]()

    def now_ms(self) -> int:
        return int(self._now.timestamp() * 1000)

    def seed(self) -> int:
        return self._seed

    def log(self, level: str, message: str) -> None:
        self.lines.append((level, message))


@contextmanager
def call(*, now: str = "2026-01-01T12:00:00Z", config: Any = None, seed: int = 0) -> Iterator[_Call]:
    """Sets the time, configuration and seed of the calls in its block. Its value has the ``lines`` of the log."""
    time = datetime.fromisoformat(now.replace("Z", "+00:00")).astimezone(timezone.utc)
    context = _Call(time, seed)
    previous, before = registry.install(context), registry.REGISTRY.config
    function = registry.REGISTRY.functions.get("configure")
    registry.REGISTRY.config = config if function is None else function(config)
    try:
        yield context
    finally:
        registry.install(previous)
        registry.REGISTRY.config = before
