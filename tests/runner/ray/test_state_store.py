"""States are saved by the actor beside the study or by the workers, and read back when they are lost."""

from pathlib import Path

import pytest

from paceline.runner.ray import state_store as module
from paceline.runner.ray.state_store import StateStore
from paceline.runner.ray.storage import Storage
from tests.runner.ray.fake_ray import FakeCluster, FakeRay, Reference

CLUSTER = FakeCluster("a")
PATH = Path("5-20.pt")


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeRay:
    ray = FakeRay(read=lambda: Reference("from disk"), write=lambda: Reference())
    monkeypatch.setattr(module, "ray", ray)
    return ray


def test_without_a_storage_an_actor_on_this_node_writes_states(fake: FakeRay) -> None:
    states, state = StateStore(CLUSTER, None), Reference("packed")
    saving = states.save(PATH, state)
    ((name, arguments, result),) = fake.actors[0].calls
    assert (name, arguments, result) == ("write", (state, PATH), saving)
    assert fake.options[0]["scheduling_strategy"].node_id == CLUSTER.node
    assert states.reference(PATH) is state
    states.close()
    assert fake.actors[0].is_killed


def test_a_lost_or_older_state_is_read_from_disk_once(fake: FakeRay) -> None:
    states = StateStore(CLUSTER, None)
    states.save(PATH, Reference("lost"))
    states.forget(PATH)
    states.forget(PATH)
    first = states.reference(PATH)
    assert first.value == "from disk"
    assert states.reference(PATH) is first


def test_references_to_states_that_nothing_needs_are_dropped(fake: FakeRay) -> None:
    states, state, other = StateStore(CLUSTER, None), Reference(), Reference()
    states.save(PATH, state)
    states.save(Path("6-20.pt"), other)
    states.keep_only({PATH})
    assert states.reference(PATH) is state
    assert states.reference(Path("6-20.pt")).value == "from disk"


def test_with_a_storage_workers_read_and_write_themselves(fake: FakeRay, tmp_path: Path) -> None:
    storage = Storage(str(tmp_path / "store"))
    states, state = StateStore(CLUSTER, storage), Reference()
    assert not fake.actors
    assert states.reference(PATH) is None
    assert states.save(PATH, state) is None
    assert states.reference(PATH) is state
    assert not states.is_saved(PATH)
    storage.write(PATH.name, b"x")
    assert states.is_saved(PATH)


def test_without_a_storage_a_state_is_saved_if_its_file_is_there(fake: FakeRay, tmp_path: Path) -> None:
    states = StateStore(CLUSTER, None)
    assert not states.is_saved(tmp_path / PATH)
    (tmp_path / PATH).touch()
    assert states.is_saved(tmp_path / PATH)
