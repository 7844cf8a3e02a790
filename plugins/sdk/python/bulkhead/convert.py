"""Conversion of the values that a plugin returns, with errors that name the function and the expected type."""

from __future__ import annotations

import json
from typing import Any, Mapping, Optional, Sequence, Type

from . import types as own

OPERATIONS = (
    "replicas",
    "components",
    "revise_replicas",
    "retain",
    "reflect_status",
    "aggregate_status",
    "dependencies",
)
"""Interpreter operations: those without a function have no rule."""


def _checked(function: str, value: Any, kind: Type[Any]) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"@{function} must return {kind.__name__}, not {type(value).__name__}")
    return value


def _items(function: str, values: Any, kinds: tuple[Type[Any], ...]) -> Sequence[Any]:
    names = " or ".join(kind.__name__ for kind in kinds)
    if not isinstance(values, (list, tuple)):
        raise TypeError(f"@{function} must return a list of {names}, not {type(values).__name__}")
    for index, value in enumerate(values):
        if not isinstance(value, kinds) or isinstance(value, bool):
            raise TypeError(f"@{function} must return a list of {names}; element {index} is {type(value).__name__}")
    return values


def _reason(wit: Mapping[str, Any], reason: Optional[own.Reason]) -> Any:
    code, message = ("Unspecified", "") if reason is None else (reason.code, reason.message)
    return wit["imports.types"].Reason(code, message)


def health(wit: Mapping[str, Any], verdict: Any) -> Any:
    _checked("health", verdict, own.HealthVerdict)
    state = wit["imports.types"].HealthState[verdict.health.name]
    return wit["exports.health"].Verdict(state, _reason(wit, verdict.reason))


def taints(wit: Mapping[str, Any], changes: Any) -> Any:
    module, effects = wit["exports.taints"], wit["imports.types"].TaintEffect
    found = []
    for change in _items("cluster_taint", changes, (own.AddTaint, own.RemoveTaint)):
        effect, reason = effects[change.effect.name], _reason(wit, change.reason)
        if isinstance(change, own.AddTaint):
            found.append(module.Change_Add(module.Addition(change.key, change.value, effect, reason)))
        else:
            found.append(module.Change_Remove(module.Removal(change.key, effect, reason)))
    return found


def filters(wit: Mapping[str, Any], verdicts: Any) -> Any:
    module = wit["exports.filter"]

    def one(verdict: own.FilterVerdict) -> Any:
        if verdict.fits is None:
            return module.Verdict_Abstain()
        return module.Verdict_Fit() if verdict.fits else module.Verdict_Unfit(_reason(wit, verdict.reason))

    return [one(verdict) for verdict in _items("scheduler_filter", verdicts, (own.FilterVerdict,))]


def scores(values: Any) -> Any:
    found = list(_items("scheduler_score", values, (int,)))
    for index, score in enumerate(found):
        if not 0 <= score <= 100:
            raise ValueError(f"@scheduler_score must return scores from 0 to 100; element {index} is {score}")
    return found


def eviction(wit: Mapping[str, Any], verdict: Any) -> Any:
    module = wit["exports.eviction"]
    _checked("eviction_check", verdict, own.EvictionVerdict)
    if verdict.releases is None:
        return module.Verdict_Abstain()
    reason = _reason(wit, verdict.reason)
    if verdict.releases:
        return module.Verdict_Release(reason)
    return module.Verdict_Hold(module.HoldVerdict(reason, verdict.recheck_after_s))


def _requirements(wit: Mapping[str, Any], value: Optional[own.Requirements]) -> Any:
    if value is None:
        return None
    claim = None if value.node_claim is None else json.dumps(value.node_claim)
    requests = sorted(value.requests.items())
    module = wit["exports.interpreter"]
    return module.ReplicaRequirements(requests, claim, value.namespace, value.priority_class_name)


def replicas(wit: Mapping[str, Any], value: Any) -> Any:
    _checked("interpret.replicas", value, own.Replicas)
    return wit["exports.interpreter"].Replicas(value.count, _requirements(wit, value.requirements))


def components(wit: Mapping[str, Any], values: Any) -> Any:
    module = wit["exports.interpreter"]
    return [
        module.Component(value.name, value.replicas, _requirements(wit, value.requirements))
        for value in _items("interpret.components", values, (own.Component,))
    ]


def edits(wit: Mapping[str, Any], function: str, values: Any) -> Any:
    module = wit["exports.interpreter"]

    def one(edit: own.Edit) -> Any:
        if edit.removes:
            return module.Edit_Remove(edit.pointer)
        return module.Edit_Set(module.Assignment(edit.pointer, json.dumps(edit.value)))

    return [one(edit) for edit in _items(f"interpret.{function}", values, (own.Edit,))]


def dependencies(wit: Mapping[str, Any], values: Any) -> Any:
    module = wit["exports.interpreter"]

    def one(value: own.Dependency) -> Any:
        selector = None if value.label_selector is None else json.dumps(value.label_selector)
        return module.Dependency(value.api_version, value.kind, value.namespace, value.name, selector)

    return [one(value) for value in _items("interpret.dependencies", values, (own.Dependency,))]
