"""Connects a plugin to the component interface of the host. Only the build imports this module."""

from __future__ import annotations

import json
import math
import sys
import traceback
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Callable, Iterator, Optional, Sequence

from componentize_py_types import Err

from . import convert, registry
from .inputs import Binding, Cluster, Clusters, EvictionTask, Object, Observations
from .types import Condition, ConditionStatus, InvalidConfig, PolicyError, Taint, TaintEffect, Target
from .types import Health as HealthState
from .types import Unsupported


def _imported(name: str) -> Any:
    """Returns a module of the bindings; None if the world of this plugin lacks it."""
    try:
        return import_module(f"wit_world.{name}")
    except ImportError:
        return None


WIT = {
    name: _imported(name)
    for name in (
        "imports.types",
        "imports.context",
        "imports.log",
        "exports.health",
        "exports.taints",
        "exports.filter",
        "exports.eviction",
        "exports.interpreter",
    )
}
TYPES = WIT["imports.types"]

_HEALTH = {"HEALTHY": HealthState.HEALTHY, "UNHEALTHY": HealthState.UNHEALTHY, "UNKNOWN": HealthState.UNKNOWN}
_HANDLES: list[Any] = []


def _held(raw: Any) -> Any:
    """Notes a handle that the host gave out. All are released when the call returns.

    The arguments of a call are borrowed, and released by the bindings.
    """
    _HANDLES.append(raw)
    return raw


_KINDS = {"Value_Array": "list", "Value_Fields": "map"}


def _scalar(value: Any) -> Any:
    """Returns the Python value of a scalar; None for lists, maps and absent values."""
    if value is None or type(value).__name__ in ("Value_Null", "Value_Array", "Value_Fields"):
        return None
    return value.value


def _numbers(values: Sequence[float]) -> list[Optional[float]]:
    return [None if math.isnan(value) else value for value in values]


class HostObject(Object):
    def __init__(self, raw: Any) -> None:
        self._raw = raw

    def kind(self, pointer: str) -> Optional[str]:
        name = type(self._raw.get(pointer)).__name__
        return None if name == "NoneType" else _KINDS.get(name, name.removeprefix("Value_").lower())

    def get(self, pointer: str, default: Any = None) -> Any:
        value = self._raw.get(pointer)
        if value is None:
            return default
        if type(value).__name__ in ("Value_Array", "Value_Fields"):
            return json.loads(self._raw.json(pointer))
        return _scalar(value)

    def many(self, pointers: Sequence[str]) -> list[Any]:
        return [_scalar(value) for value in self._raw.get_many(list(pointers))]

    def each(self, in_list: str, pointer: str) -> list[Any]:
        return [_scalar(value) for value in self._raw.get_each(in_list, pointer)]

    def text(self, pointer: str) -> Optional[str]:
        return self._raw.get_string(pointer)

    def integer(self, pointer: str) -> Optional[int]:
        return self._raw.get_s64(pointer)

    def number(self, pointer: str) -> Optional[float]:
        return self._raw.get_f64(pointer)

    def boolean(self, pointer: str) -> Optional[bool]:
        return self._raw.get_bool(pointer)

    def quantity_milli(self, pointer: str) -> Optional[int]:
        return self._raw.get_quantity_milli(pointer)

    def length(self, pointer: str) -> Optional[int]:
        return self._raw.length(pointer)

    def keys(self, pointer: str) -> list[str]:
        return self._raw.keys(pointer)


class HostObservations(Observations):
    def __init__(self, raw: Any) -> None:
        self._raw = raw

    def __len__(self) -> int:
        return self._raw.len()

    def clusters(self) -> list[str]:
        return self._raw.clusters()

    def applied(self) -> list[bool]:
        return self._raw.applied()

    def health(self) -> list[Optional[HealthState]]:
        return [None if state is None else _HEALTH[state.name] for state in self._raw.health()]

    def number(self, pointer: str) -> list[Optional[float]]:
        return _numbers(self._raw.number(pointer))

    def text(self, pointer: str) -> list[Optional[str]]:
        return self._raw.text(pointer)

    def status(self, index: int) -> Optional[Object]:
        found = self._raw.status(index)
        return None if found is None else HostObject(_held(found))


class HostBinding(Binding):
    def __init__(self, raw: Any) -> None:
        self._raw = raw

    @property
    def namespace(self) -> Optional[str]:
        return self._raw.namespace()

    @property
    def name(self) -> str:
        return self._raw.name()

    @property
    def workload(self) -> tuple[str, str, str]:
        kind = self._raw.workload_kind()
        return (kind.api_version, kind.kind, self._raw.workload_name())

    @property
    def replicas(self) -> int:
        return self._raw.replicas()

    @property
    def targets(self) -> list[Target]:
        return [Target(target.cluster, target.replicas) for target in self._raw.targets()]

    @property
    def evicting_from(self) -> list[str]:
        return self._raw.evicting_from()

    @property
    def observed(self) -> Observations:
        return HostObservations(_held(self._raw.observed()))

    @property
    def document(self) -> Object:
        return HostObject(_held(self._raw.document()))


class HostEvictionTask(EvictionTask):
    def __init__(self, raw: Any) -> None:
        self._raw = raw

    @property
    def from_cluster(self) -> str:
        return self._raw.from_cluster()

    @property
    def reason(self) -> str:
        return self._raw.reason()

    @property
    def producer(self) -> str:
        return self._raw.producer()

    @property
    def since_s(self) -> Optional[int]:
        return self._raw.since_s()

    @property
    def grace_period_s(self) -> Optional[int]:
        return self._raw.grace_period_s()

    @property
    def replicas(self) -> Optional[int]:
        return self._raw.replicas()

    @property
    def document(self) -> Object:
        return HostObject(_held(self._raw.document()))


def _taint(raw: Any) -> Taint:
    return Taint(raw.key, raw.value, TaintEffect[raw.effect.name], raw.time_added_s)


def _condition(raw: Any) -> Condition:
    return Condition(raw.name, ConditionStatus[raw.status.name], raw.reason, raw.message, raw.last_transition_s)


class HostCluster(Cluster):
    def __init__(self, raw: Any) -> None:
        self._raw = raw

    @property
    def name(self) -> str:
        return self._raw.name()

    def label(self, key: str) -> Optional[str]:
        return self._raw.label(key)

    @property
    def provider(self) -> str:
        return self._raw.provider()

    @property
    def region(self) -> str:
        return self._raw.region()

    @property
    def zones(self) -> list[str]:
        return self._raw.zones()

    @property
    def taints(self) -> list[Taint]:
        return [_taint(taint) for taint in self._raw.taints()]

    @property
    def conditions(self) -> list[Condition]:
        return [_condition(condition) for condition in self._raw.conditions()]

    def condition(self, name: str) -> Optional[Condition]:
        found = self._raw.condition(name)
        return None if found is None else _condition(found)

    def serves(self, api_version: str, kind: str) -> bool:
        return self._raw.serves(api_version, kind)

    @property
    def document(self) -> Object:
        return HostObject(_held(self._raw.document()))


class HostClusters(Clusters):
    def __init__(self, raw: Any) -> None:
        self._raw = raw

    def __len__(self) -> int:
        return self._raw.len()

    def names(self) -> list[str]:
        return self._raw.names()

    def ready(self) -> list[bool]:
        return self._raw.ready()

    def current(self) -> list[bool]:
        return self._raw.current()

    def replicas(self) -> list[int]:
        return self._raw.replicas()

    def label(self, key: str) -> list[Optional[str]]:
        return self._raw.label(key)

    def regions(self) -> list[str]:
        return self._raw.regions()

    def providers(self) -> list[str]:
        return self._raw.providers()

    def allocatable(self, resource: str) -> list[Optional[float]]:
        return _numbers(self._raw.allocatable(resource))

    def free(self, resource: str) -> list[Optional[float]]:
        return _numbers(self._raw.free(resource))

    def text(self, pointer: str) -> list[Optional[str]]:
        return self._raw.text(pointer)

    def number(self, pointer: str) -> list[Optional[float]]:
        return _numbers(self._raw.number(pointer))

    def get(self, index: int) -> Optional[Cluster]:
        found = self._raw.get(index)
        return None if found is None else HostCluster(_held(found))


class HostContext(registry.Context):
    def now_ms(self) -> int:
        return WIT["imports.context"].now_ms()

    def seed(self) -> int:
        return WIT["imports.context"].seed()

    def plugin_name(self) -> str:
        return WIT["imports.context"].plugin_name()

    def log(self, level: str, message: str) -> None:
        log = WIT["imports.log"]
        log.write(log.Level[level.upper()], message)


registry.install(HostContext())


def _place(error: BaseException) -> str:
    """Returns the file, line and function of the plugin where an exception was raised; empty if it was in the SDK."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "/bulkhead/" not in frame.filename and not frame.filename.startswith("<")]
    if not own:
        return ""
    return f" ({own[-1].filename.rsplit('/', 1)[-1]}:{own[-1].lineno} in {own[-1].name})"


@contextmanager
def _call() -> Iterator[None]:
    """Turns exceptions into errors of the contract, and releases the handles of the call."""
    try:
        yield
    except Unsupported:
        raise Err(TYPES.PolicyError_Unsupported()) from None
    except InvalidConfig as error:
        raise Err(TYPES.PolicyError_InvalidConfig(str(error))) from None
    except PolicyError as error:
        raise Err(TYPES.PolicyError_Internal(str(error))) from None
    except MemoryError:
        raise
    except Exception as error:
        traceback.print_exc(file=sys.stderr)
        message = f"{type(error).__name__}: {error}{_place(error)}"
        raise Err(TYPES.PolicyError_Internal(message)) from None
    finally:
        while _HANDLES:
            _HANDLES.pop().__exit__(None, None, None)


def _function(key: str) -> Callable[..., Any]:
    function = registry.REGISTRY.functions.get(key)
    if function is None:
        if key in convert.OPERATIONS:
            raise Unsupported()
        raise PolicyError(f"the plugin has no function with the decorator @{key}")
    return function


class Plugin:
    def describe(self) -> Any:
        own = registry.REGISTRY
        if not own.name:
            raise RuntimeError("the plugin does not call bulkhead.plugin(name=..., version=...)")
        return TYPES.Metadata(
            name=own.name,
            version=own.version,
            description=own.description,
            object_kinds=[TYPES.ObjectKind(version, kind) for version, kind in own.kinds],
            taint_keys=list(own.taint_keys),
            config_schema="" if own.config_schema is None else json.dumps(own.config_schema),
            reusable=own.reusable,
            annotations=[("language", "python")],
        )

    def configure(self, config: str) -> None:
        with _call():
            registry.apply_config(config)


class Health:
    def interpret(self, observed: Any) -> Any:
        with _call():
            verdict = _function("health")(HostObject(observed))
            return convert.health(WIT, verdict)


class Taints:
    def decide(self, cluster: Any) -> Any:
        with _call():
            return convert.taints(WIT, _function("cluster_taint")(HostCluster(cluster)))


class Filter:
    def filter(self, binding: Any, candidates: Any) -> Any:
        with _call():
            found = _function("scheduler_filter")(HostBinding(binding), HostClusters(candidates))
            return convert.filters(WIT, found)


class Score:
    def score(self, binding: Any, feasible: Any) -> Any:
        with _call():
            return convert.scores(_function("scheduler_score")(HostBinding(binding), HostClusters(feasible)))


class Eviction:
    def check(self, binding: Any, task: Any) -> Any:
        with _call():
            found = _function("eviction_check")(HostBinding(binding), HostEvictionTask(task))
            return convert.eviction(WIT, found)


class Interpreter:
    def interpret_replicas(self, template: Any) -> Any:
        with _call():
            return convert.replicas(WIT, _function("replicas")(HostObject(template)))

    def interpret_components(self, template: Any) -> Any:
        with _call():
            return convert.components(WIT, _function("components")(HostObject(template)))

    def revise_replicas(self, template: Any, replicas: int) -> Any:
        with _call():
            return convert.edits(WIT, "revise_replicas", _function("revise_replicas")(HostObject(template), replicas))

    def retain(self, desired: Any, observed: Any) -> Any:
        with _call():
            found = _function("retain")(HostObject(desired), HostObject(observed))
            return convert.edits(WIT, "retain", found)

    def reflect_status(self, observed: Any) -> Any:
        with _call():
            found = _function("reflect_status")(HostObject(observed))
            return None if found is None else json.dumps(found)

    def aggregate_status(self, template: Any, reports: Any) -> Any:
        with _call():
            found = _function("aggregate_status")(HostObject(template), HostObservations(reports))
            return convert.edits(WIT, "aggregate_status", found)

    def interpret_dependencies(self, template: Any) -> Any:
        with _call():
            return convert.dependencies(WIT, _function("dependencies")(HostObject(template)))
