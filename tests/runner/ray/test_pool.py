"""Workers are requested, taken when they have started, and kept while they are of use."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from ray.exceptions import NodeDiedError, RayTaskError

from paceline.errors import InputError, TrainingError
from paceline.runner.ray import pool as module
from paceline.runner.ray.errors import PackedError, packed_errors
from paceline.runner.ray.pool import MAX_FAILED_STARTS, WorkerPool
from tests.runner.ray.fake_ray import FakeCluster, FakeRay, NodeAffinity, Reference


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeRay:
    ray = FakeRay(start=lambda: Reference(is_ready=False))
    monkeypatch.setattr(module, "ray", ray)
    monkeypatch.setattr(module, "NodeAffinitySchedulingStrategy", NodeAffinity)
    return ray


def pool_of(nodes: Sequence[str], cluster=None) -> WorkerPool:
    """A pool with an idle worker on each of these nodes."""
    pool = WorkerPool(cluster or FakeCluster("a", "b"), dict, None)
    for node in nodes:
        pool.request()
        (reference,) = pool.starting
        reference.resolve(node)
        pool.add_started(reference)
    return pool


def test_a_request_becomes_a_worker_when_it_has_started(fake: FakeRay) -> None:
    pool = WorkerPool(FakeCluster("a", "b"), dict, None, seed=7)
    pool.request()
    assert (len(pool.starting), pool.idle, pool.take(None)) == (1, [], None)
    (reference,) = pool.starting
    reference.resolve("a")
    pool.add_started(reference)
    assert [worker.node for worker in pool.idle] == ["a"]
    (_, arguments, _) = fake.actors[0].calls[0]
    assert fake.cloudpickle.loads(arguments[0]) is dict
    assert arguments[2:4] == (1, None)
    assert arguments[5] == 7


def test_a_second_worker_is_requested_on_another_node(fake: FakeRay) -> None:
    pool = WorkerPool(FakeCluster("a", "b"), dict, None)
    pool.request()
    pool.request(other_than="a")
    assert fake.options[0]["scheduling_strategy"] == "SPREAD"
    assert (fake.options[1]["scheduling_strategy"].node_id, fake.options[1]["num_cpus"]) == ("b", 1)


def test_the_worker_that_holds_the_state_is_taken_first(fake: FakeRay) -> None:
    pool = pool_of("aba")
    pool.idle[2].loaded = Path("5-20.pt")
    assert pool.take(Path("5-20.pt")).loaded == Path("5-20.pt")
    assert pool.take(Path("5-20.pt")) is not None
    assert len(pool.idle) == 1


def test_a_worker_on_another_node_is_taken_only_if_there_is_one(fake: FakeRay) -> None:
    assert pool_of("ab").take(None, other_than="a").node == "b"
    assert pool_of("aa").take(None, other_than="a") is None  # one could come on node b
    assert pool_of("aa", FakeCluster("a")).take(None, other_than="a").node == "a"


def test_a_pool_shrinks_by_requests_and_by_workers_that_hold_nothing(fake: FakeRay) -> None:
    pool = pool_of("abab")
    kept = pool.idle[3]
    kept.loaded = Path("5-20.pt")
    pool.request()
    pool.shrink(1, [Path("5-20.pt")])
    assert pool.idle == [kept]
    assert pool.starting == {}
    assert [actor.is_killed for actor in fake.actors] == [True, True, True, False, True]
    pool.close()
    assert all(actor.is_killed for actor in fake.actors)


def test_workers_that_die_while_they_start_are_tolerated_a_few_times(fake: FakeRay) -> None:
    pool = pool_of("a")
    for _ in range(MAX_FAILED_STARTS - 1):
        pool.request()
        (reference,) = pool.starting
        reference.resolve(NodeDiedError("the process was killed"))
        pool.add_started(reference)
    pool.request()
    (reference,) = pool.starting
    reference.resolve(NodeDiedError("the process was killed"))
    with pytest.raises(TrainingError, match=r"3 workers in a row died before they were ready \(the process was killed"):
        pool.add_started(reference)


def test_an_error_of_the_factory_is_raised_as_it_is(fake: FakeRay) -> None:
    pool = WorkerPool(FakeCluster("a", "b"), dict, None)
    pool.request()
    (reference,) = pool.starting
    with pytest.raises(PackedError) as sent, packed_errors():
        raise ValueError("no such data")
    reference.resolve(RayTaskError("start", "", sent.value))
    with pytest.raises(ValueError, match="no such data") as raised:
        pool.add_started(reference)
    assert 'raise ValueError("no such data")' in str(raised.value.__cause__)


def test_a_factory_that_cannot_be_pickled_is_refused(fake: FakeRay) -> None:
    class Stubborn:
        def __call__(self) -> None: ...

        def __reduce__(self):
            raise TypeError("not this one")

    with pytest.raises(InputError, match=r"cannot be sent to workers .TypeError: not this one.: build what cannot be"):
        WorkerPool(FakeCluster("a", "b"), Stubborn(), None)
