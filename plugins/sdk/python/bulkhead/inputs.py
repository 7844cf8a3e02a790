"""Inputs of a call. They stay with the host; methods copy only the values that they return.

Pointers are JSON Pointers (RFC 6901) such as ``/status/readyReplicas``: list elements by index, ``/`` in a key as
``~1``, ``~`` as ``~0``; the empty pointer is the whole document. Inputs are valid until the function returns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Optional, Sequence

from .types import Condition, Health, Taint, Target


class Object(ABC):
    """A Kubernetes object, or a part of one."""

    @abstractmethod
    def kind(self, pointer: str) -> Optional[str]:
        """Returns ``null``, ``boolean``, ``integer``, ``number``, ``text``, ``list`` or ``map``; copies nothing.

        None if the value is absent.
        """

    @abstractmethod
    def get(self, pointer: str, default: Any = None) -> Any:
        """Returns the value at a pointer as Python data; ``default`` if it is absent."""

    @abstractmethod
    def many(self, pointers: Sequence[str]) -> list[Any]:
        """Returns the scalars at several pointers with one call; None for others and for absent ones."""

    @abstractmethod
    def each(self, in_list: str, pointer: str) -> list[Any]:
        """Returns the scalar at ``pointer`` within each element of the list at ``in_list``."""

    @abstractmethod
    def text(self, pointer: str) -> Optional[str]:
        """Returns the string at a pointer; None if it is absent or not a string."""

    @abstractmethod
    def integer(self, pointer: str) -> Optional[int]:
        """Returns the integer at a pointer; None if it is absent or not a 64-bit integer."""

    @abstractmethod
    def number(self, pointer: str) -> Optional[float]:
        """Returns the number at a pointer; None if it is absent or not a number."""

    @abstractmethod
    def boolean(self, pointer: str) -> Optional[bool]:
        """Returns the boolean at a pointer; None if it is absent or not a boolean."""

    @abstractmethod
    def quantity_milli(self, pointer: str) -> Optional[int]:
        """Returns the Kubernetes quantity at a pointer in thousandths, rounded up; None if it is absent."""

    @abstractmethod
    def length(self, pointer: str) -> Optional[int]:
        """Returns the size of the list or map at a pointer; None if it is neither."""

    @abstractmethod
    def keys(self, pointer: str) -> list[str]:
        """Returns the keys of the map at a pointer, in order; empty if it is not a map."""


class Observations(ABC):
    """Reports of the member clusters about a workload, as columns in order of cluster name."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def clusters(self) -> list[str]:
        """Returns the names of the clusters."""

    @abstractmethod
    def applied(self) -> list[bool]:
        """Returns True for each cluster in which the object was applied."""

    @abstractmethod
    def health(self) -> list[Optional[Health]]:
        """Returns the health in each cluster; None if it has not been determined yet."""

    @abstractmethod
    def number(self, pointer: str) -> list[Optional[float]]:
        """Returns the number at a pointer of each status, such as ``/availableReplicas``; None if it is absent."""

    @abstractmethod
    def text(self, pointer: str) -> list[Optional[str]]:
        """Returns the string at a pointer of each status; None if it is absent."""

    @abstractmethod
    def status(self, index: int) -> Optional[Object]:
        """Returns one status; None if the index is out of range or the cluster reported none."""


class Binding(ABC):
    """A workload and the clusters that it runs on."""

    @property
    @abstractmethod
    def namespace(self) -> Optional[str]:
        """Namespace; None for a ``ClusterResourceBinding``."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the binding."""

    @property
    @abstractmethod
    def workload(self) -> tuple[str, str, str]:
        """API version, kind and name of the workload."""

    @property
    @abstractmethod
    def replicas(self) -> int:
        """Desired replicas over all clusters; 0 for a workload without replicas."""

    @property
    @abstractmethod
    def targets(self) -> list[Target]:
        """Clusters that the workload is scheduled to."""

    @property
    @abstractmethod
    def evicting_from(self) -> list[str]:
        """Clusters that the workload is being evicted from."""

    @property
    @abstractmethod
    def observed(self) -> Observations:
        """Reports of the member clusters."""

    @property
    @abstractmethod
    def document(self) -> Object:
        """The whole binding: namespace, name, labels, annotations, spec and status."""


class EvictionTask(ABC):
    """An old copy of a workload that is to be removed from a cluster."""

    @property
    @abstractmethod
    def from_cluster(self) -> str:
        """Cluster that the copy is evicted from."""

    @property
    @abstractmethod
    def reason(self) -> str:
        """Reason of the eviction in one word, such as ``TaintUntolerated``."""

    @property
    @abstractmethod
    def producer(self) -> str:
        """Component that requested the eviction."""

    @property
    @abstractmethod
    def since_s(self) -> Optional[int]:
        """Start of the grace period in seconds since the Unix epoch; None if it has not started."""

    @property
    @abstractmethod
    def grace_period_s(self) -> Optional[int]:
        """Grace period in seconds; None for the host's default."""

    @property
    @abstractmethod
    def replicas(self) -> Optional[int]:
        """Replicas of the old copy; None for a workload without replicas."""

    @property
    @abstractmethod
    def document(self) -> Object:
        """The whole task."""


class Cluster(ABC):
    """A member cluster."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the cluster."""

    @abstractmethod
    def label(self, key: str) -> Optional[str]:
        """Returns the value of a label; None if the cluster does not have it."""

    @property
    @abstractmethod
    def provider(self) -> str:
        """Cloud provider; empty if not set."""

    @property
    @abstractmethod
    def region(self) -> str:
        """Region; empty if not set."""

    @property
    @abstractmethod
    def zones(self) -> list[str]:
        """Zones."""

    @property
    @abstractmethod
    def taints(self) -> list[Taint]:
        """Taints of the cluster."""

    @property
    @abstractmethod
    def conditions(self) -> list[Condition]:
        """Conditions of the cluster."""

    @abstractmethod
    def condition(self, name: str) -> Optional[Condition]:
        """Returns the condition of a type; None if the cluster does not have it."""

    @abstractmethod
    def serves(self, api_version: str, kind: str) -> bool:
        """Returns True if the cluster's API server serves a kind of object."""

    @property
    @abstractmethod
    def document(self) -> Object:
        """The whole cluster: name, labels, generation, spec and status."""


class Clusters(ABC):
    """Candidate clusters as columns, in order of name. One call covers all of them."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def names(self) -> list[str]:
        """Returns the names."""

    @abstractmethod
    def ready(self) -> list[bool]:
        """Returns True for each cluster whose ``Ready`` condition is ``True``."""

    @abstractmethod
    def current(self) -> list[bool]:
        """Returns True for each cluster that the binding is already scheduled to."""

    @abstractmethod
    def replicas(self) -> list[int]:
        """Returns the replicas of the binding on each cluster."""

    @abstractmethod
    def label(self, key: str) -> list[Optional[str]]:
        """Returns the value of a label of each cluster; None if the cluster does not have it."""

    @abstractmethod
    def regions(self) -> list[str]:
        """Returns the region of each cluster; empty if not set."""

    @abstractmethod
    def providers(self) -> list[str]:
        """Returns the provider of each cluster; empty if not set."""

    @abstractmethod
    def allocatable(self, resource: str) -> list[Optional[float]]:
        """Returns the allocatable amount of a resource in cores, bytes or pieces; None if it is not reported."""

    @abstractmethod
    def free(self, resource: str) -> list[Optional[float]]:
        """Returns the allocatable amount without the requests of pods; None if it is not reported."""

    @abstractmethod
    def text(self, pointer: str) -> list[Optional[str]]:
        """Returns the string at a pointer of each cluster's document; None if it is absent."""

    @abstractmethod
    def number(self, pointer: str) -> list[Optional[float]]:
        """Returns the number at a pointer of each cluster's document; None if it is absent."""

    @abstractmethod
    def get(self, index: int) -> Optional[Cluster]:
        """Returns one cluster; None if the index is out of range."""
