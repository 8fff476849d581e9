"""A stand-in for ray without processes: what is ready, and what went wrong, is up to the test."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ray import cloudpickle

from paceline.runner.ray.cluster import Cluster, ForkResources


class Reference:
    """An object reference. It is ready once it has a value, which may be an error."""

    def __init__(self, value: Any = None, *, is_ready: bool = True) -> None:
        self.value, self.is_ready = value, is_ready

    def resolve(self, value: Any = None) -> None:
        self.value, self.is_ready = value, True


class Stream:
    """What a streaming call yields; an error is raised in place of the next object."""

    def __init__(self) -> None:
        self.messages: list[Any] = []

    @property
    def is_ready(self) -> bool:
        return bool(self.messages)

    def __iter__(self) -> Iterator[Reference]:
        return self

    def __next__(self) -> Reference:
        message = self.messages.pop(0)
        if isinstance(message, Exception):
            raise message
        return Reference(message)


class Call:
    """A method of an actor: `remote` records the arguments and returns what the test wants."""

    def __init__(self, actor: "Actor", name: str) -> None:
        self.actor, self.name = actor, name

    def options(self, **options: Any) -> "Call":
        return self

    def remote(self, *arguments: Any) -> Any:
        result = self.actor.results[self.name]()
        self.actor.calls.append((self.name, arguments, result))
        return result


class Actor:
    """An actor whose calls are recorded."""

    def __init__(self, results: dict[str, Callable[[], Any]]) -> None:
        self.results, self.calls, self.is_killed = results, list[tuple[str, tuple, Any]](), False

    def __getattr__(self, name: str) -> Call:
        return Call(self, name)


class ActorClass:
    def __init__(self, fake: "FakeRay") -> None:
        self.fake, self.requested = fake, dict[str, Any]()

    def options(self, **options: Any) -> "ActorClass":
        self.requested = options
        return self

    def remote(self) -> Actor:
        actor = Actor(self.fake.results)
        self.fake.actors.append(actor)
        self.fake.options.append(self.requested)
        return actor


class FakeRay:
    """The functions of ray that the runner calls.

    Args:
        results: what calls of actors' methods return, by name.
    """

    cloudpickle = cloudpickle

    def __init__(self, **results: Callable[[], Any]) -> None:
        self.results = results
        self.actors, self.options = list[Actor](), list[dict[str, Any]]()

    def remote(self, cls: type) -> ActorClass:
        return ActorClass(self)

    def get(self, reference: Reference) -> Any:
        assert reference.is_ready, "the runner must not block on a single object"
        if isinstance(reference.value, Exception):
            raise reference.value
        return reference.value

    def wait(
        self, references: Sequence[Any], *, num_returns: int, timeout: float, fetch_local: bool
    ) -> tuple[list[Any], list[Any]]:
        ready = [reference for reference in references if reference.is_ready][:num_returns]
        return ready, [reference for reference in references if reference not in ready]

    def kill(self, actor: Actor) -> None:
        actor.is_killed = True


@dataclass(frozen=True)
class NodeAffinity:
    """Ray's own checks that the id is one of a real node."""

    node_id: str
    soft: bool


class FakeCluster(Cluster):
    """A cluster of living nodes, each of which could run a fork."""

    def __init__(self, *nodes: str) -> None:
        self.resources, self.nodes, self.node = ForkResources(1, 0), list(nodes), "ab" * 28

    def suitable_nodes(self, *, other_than: str = "") -> list[str]:
        return [node for node in self.nodes if node != other_than]

    def is_alive(self, node: str) -> bool:
        return node in self.nodes

    def describe(self) -> str:
        return f"{len(self.nodes)} CPUs"
