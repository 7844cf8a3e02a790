"""Verdicts, reasons and errors."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Mapping, Optional, Union


class PolicyError(Exception):
    """Error of a call. Its message appears in the fault that the operator sees."""


class Unsupported(PolicyError):
    """The plugin does not handle the object or operation; the host asks the next policy."""


class InvalidConfig(PolicyError):
    """The configuration is invalid; the message describes a valid one."""


class Health(Enum):
    """Health of an object in a member cluster."""

    HEALTHY = "Healthy"
    UNHEALTHY = "Unhealthy"
    UNKNOWN = "Unknown"


class ConditionStatus(Enum):
    """Status of a condition."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class TaintEffect(Enum):
    """Effect of a taint."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


@dataclass(frozen=True)
class Reason:
    """Reason for a verdict."""

    code: str
    """One CamelCase word of at most 64 characters, for example ``ChangeFreeze``."""
    message: str = ""
    """Text for people, at most 1024 characters."""


@dataclass(frozen=True)
class HealthVerdict:
    """Health of an object, and the reason for it."""

    health: Health
    reason: Reason

    @classmethod
    def healthy(cls, code: str, message: str = "") -> HealthVerdict:
        """The object works as specified."""
        return cls(Health.HEALTHY, Reason(code, message))

    @classmethod
    def unhealthy(cls, code: str, message: str = "") -> HealthVerdict:
        """The object does not work as specified."""
        return cls(Health.UNHEALTHY, Reason(code, message))

    @classmethod
    def unknown(cls, code: str, message: str = "") -> HealthVerdict:
        """The health cannot be determined; this never causes an eviction."""
        return cls(Health.UNKNOWN, Reason(code, message))


@dataclass(frozen=True)
class FilterVerdict:
    """Verdict on one candidate cluster."""

    fits: Optional[bool]
    """True if the cluster can run the binding, False if not, None without an opinion."""
    reason: Optional[Reason] = None

    @classmethod
    def fit(cls) -> FilterVerdict:
        """This plugin accepts the cluster."""
        return cls(True)

    @classmethod
    def unfit(cls, code: str, message: str = "") -> FilterVerdict:
        """The cluster cannot run the binding."""
        return cls(False, Reason(code, message))

    @classmethod
    def abstain(cls) -> FilterVerdict:
        """No opinion."""
        return cls(None)


@dataclass(frozen=True)
class EvictionVerdict:
    """Verdict on one graceful eviction task."""

    releases: Optional[bool]
    """True if the old copy may go, False if it must stay, None without an opinion."""
    reason: Optional[Reason] = None
    recheck_after_s: Optional[int] = None
    """Seconds until the next check of a hold; None for the host's default."""

    @classmethod
    def release(cls, code: str, message: str = "") -> EvictionVerdict:
        """This plugin agrees to the removal of the old copy."""
        return cls(True, Reason(code, message))

    @classmethod
    def hold(cls, code: str, message: str = "", *, recheck_after_s: Optional[int] = None) -> EvictionVerdict:
        """The old copy must stay."""
        return cls(False, Reason(code, message), recheck_after_s)

    @classmethod
    def abstain(cls) -> EvictionVerdict:
        """No opinion."""
        return cls(None)


@dataclass(frozen=True)
class AddTaint:
    """Adds a taint unless the cluster has one with the same key and effect."""

    key: str
    """One of the ``taint_keys`` of the plugin."""
    effect: TaintEffect
    reason: Reason
    value: str = ""


@dataclass(frozen=True)
class RemoveTaint:
    """Removes the taint with the same key and effect."""

    key: str
    """One of the ``taint_keys`` of the plugin."""
    effect: TaintEffect
    reason: Reason


@dataclass(frozen=True)
class Taint:
    """A taint of a cluster."""

    key: str
    value: str
    effect: TaintEffect
    time_added_s: Optional[int] = None
    """Seconds since the Unix epoch."""


@dataclass(frozen=True)
class Condition:
    """A condition of a cluster."""

    name: str
    status: ConditionStatus
    reason: str
    message: str
    last_transition_s: Optional[int] = None
    """Seconds since the Unix epoch."""


@dataclass(frozen=True)
class Target:
    """A cluster that a workload is scheduled to."""

    cluster: str
    replicas: int


@dataclass(frozen=True)
class Requirements:
    """Resource requirements of one replica."""

    requests: Mapping[str, str] = field(default_factory=dict)
    """Kubernetes quantities by resource name, for example ``{"cpu": "100m"}``."""
    node_claim: Optional[Mapping[str, Any]] = None
    """``hardNodeAffinity``, ``nodeSelector`` and ``tolerations``."""
    namespace: Optional[str] = None
    priority_class_name: Optional[str] = None


@dataclass(frozen=True)
class Replicas:
    """Desired replicas, 0 or more, and the requirements of one."""

    count: int
    requirements: Optional[Requirements] = None


@dataclass(frozen=True)
class Component:
    """One of several pod templates of an object."""

    name: str
    replicas: int
    requirements: Optional[Requirements] = None


@dataclass(frozen=True)
class Dependency:
    """An object that another one requires, by ``name`` or by ``label_selector``."""

    api_version: str
    kind: str
    namespace: str = ""
    name: Optional[str] = None
    label_selector: Optional[Mapping[str, Any]] = None


@dataclass(frozen=True)
class Edit:
    """One change of a document."""

    pointer: str
    value: Any = None
    removes: bool = False

    @classmethod
    def set(cls, pointer: str, value: Any) -> Edit:
        """Writes a value at a JSON Pointer; missing maps are created, ``-`` appends to a list."""
        return cls(pointer, value)

    @classmethod
    def remove(cls, pointer: str) -> Edit:
        """Removes the value at a JSON Pointer, if there is one."""
        return cls(pointer, removes=True)


TaintChange = Union[AddTaint, RemoveTaint]
