"""One writer at a time, whoever it was that began to write."""

import errno
import multiprocessing
import os
import signal
import time
from pathlib import Path

import pytest

from paceline.errors import InputError, JournalError, StudyLockedError
from paceline.study import Created, Journal
from paceline.study.lock import lock_folder, mount_with_local_locks

MOUNTS = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro
30 22 0:40 / /home rw,relatime shared:2 - nfs4 server:/home rw,vers=4.2,hard,local_lock=none,addr=10.0.0.1
31 22 0:41 / /scratch rw,relatime shared:3 - nfs server:/scratch rw,vers=3,nolock,local_lock=all,addr=10.0.0.1
32 22 0:42 / /lustre\\040disk rw,relatime shared:4 - lustre 10.0.0.1@o2ib:/fs rw,localflock
33 31 8:2 / /scratch/local rw,relatime shared:5 - ext4 /dev/sdb1 rw
"""


def _try_to_write(folder: str, answer: "multiprocessing.Queue[str]") -> None:
    try:
        Journal(Path(folder)).close()
        answer.put("opened")
    except StudyLockedError as error:
        answer.put(str(error))


def test_a_second_process_is_refused_while_the_first_writes(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    answer = context.Queue()
    with Journal(tmp_path):
        process = context.Process(target=_try_to_write, args=(str(tmp_path), answer))
        process.start()
        assert "is being written by another process: wait for it, stop it" in answer.get(timeout=60)
        process.join()
    with Journal(tmp_path):
        pass


def test_a_second_writer_in_the_same_process_is_refused(tmp_path: Path) -> None:
    with Journal(tmp_path), pytest.raises(StudyLockedError, match="choose another study folder"):
        Journal(tmp_path)
    Journal(tmp_path).close()


def _hold_the_lock(folder: str, ready: "multiprocessing.Queue[bool]") -> None:
    journal = Journal(Path(folder))
    ready.put(True)
    time.sleep(600)
    journal.close()


def test_a_killed_writer_leaves_no_lock(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    ready = context.Queue()
    process = context.Process(target=_hold_the_lock, args=(str(tmp_path), ready))
    process.start()
    ready.get(timeout=60)
    with pytest.raises(StudyLockedError):
        Journal(tmp_path)
    process.kill()
    process.join()
    assert (tmp_path / "lock").exists()  # the file stays, the lock does not
    Journal(tmp_path).close()


def test_a_disk_without_file_locks_is_refused_with_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_lock(file: int, operation: int) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr("fcntl.flock", no_lock)
    with pytest.raises(InputError, match=r"lock that can be taken, got .*on a disk that supports file locks"):
        Journal(tmp_path)


def _hold_and_fork(folder: str, ready: "multiprocessing.Queue[int]") -> None:
    journal = Journal(Path(folder))
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
    ready.put(child)
    time.sleep(60)
    journal.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked there")
def test_a_child_that_outlives_its_parent_does_not_keep_the_lock(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    ready = context.Queue()
    process = context.Process(target=_hold_and_fork, args=(str(tmp_path), ready))
    process.start()
    child = ready.get(timeout=60)
    try:
        with pytest.raises(StudyLockedError):
            Journal(tmp_path)
        process.kill()
        process.join()
        os.kill(child, 0)  # it lives
        Journal(tmp_path).close()
    finally:
        os.kill(child, signal.SIGKILL)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked there")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_cannot_write_and_the_lock_stays_with_the_parent(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                journal.append(Created({}))
            except JournalError as error:
                status = 0 if "forked from: only that one may write" in str(error) else 2
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
        assert journal.path.read_bytes() == b""
        with pytest.raises(StudyLockedError):
            Journal(tmp_path)


@pytest.mark.parametrize(
    ("folder", "option"),
    [
        ("/home/a/study", None),
        ("/scratch/a/study", "local_lock=all"),
        ("/scratch/local/study", None),
        ("/lustre disk/study", "localflock"),
        ("/elsewhere", None),
    ],
)
def test_a_network_disk_whose_locks_stay_on_this_machine_is_known(
    folder: str, option: str | None, tmp_path: Path
) -> None:
    (tmp_path / "mounts").write_text(MOUNTS)
    assert mount_with_local_locks(Path(folder), tmp_path / "mounts") == option
    assert mount_with_local_locks(Path(folder), tmp_path / "there are none") is None


def test_such_a_disk_is_warned_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mounts").write_text(f"22 1 0:41 / {tmp_path} rw,relatime - nfs server:/a rw,nolock\n")
    monkeypatch.setattr("paceline.study.lock.MOUNTS", tmp_path / "mounts")
    with pytest.warns(UserWarning, match="mounted with nolock: its locks are not seen on other machines, so never"):
        lock_folder(tmp_path).release()
