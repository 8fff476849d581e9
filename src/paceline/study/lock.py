"""The lock of a study folder: one writer at a time.

The operating system holds it, so it ends when its process ends, even if killed. A child process that was forked
meanwhile does not have it: filelock closes the child's copy of the file.
"""

import warnings
from pathlib import Path

from filelock import BaseFileLock, FileLock, Timeout

from paceline.errors import InputError, StudyLockedError

MOUNTS = Path("/proc/self/mountinfo")
LOCAL_LOCKS = {"nolock", "local_lock=flock", "local_lock=all", "localflock", "nobrl"}  # of NFS, Lustre and SMB


def lock_folder(folder: Path) -> BaseFileLock:
    """Take the lock of a study folder, or say why it cannot be taken."""
    # one lock for all threads: a study may be closed by another thread than the one that opened it
    lock = FileLock(folder / "lock", timeout=0, thread_local=False, fallback_to_soft=False)
    try:
        lock.acquire()
    except Timeout as error:
        raise StudyLockedError(
            f"{folder} is being written by another process: wait for it, stop it, or choose another study folder"
        ) from error
    except (OSError, NotImplementedError) as error:
        raise InputError(
            f"expected a study folder with a lock that can be taken, got {folder} ({error}): "
            "choose a folder that you may write to, on a disk that supports file locks"
        ) from error
    if (mount := mount_with_local_locks(folder, MOUNTS)) is not None:
        warnings.warn(
            f"{folder} is on a network disk that is mounted with {mount}: its locks are not seen on other machines, so "
            "never continue this study on two machines at the same time",
            stacklevel=4,
        )
    return lock


def mount_with_local_locks(folder: Path, mounts: Path) -> str | None:
    """The option by which a network disk keeps its locks to this machine; None if locks are seen everywhere.

    Args:
        folder: a folder.
        mounts: the kernel's list of mounts; other systems than Linux have none.
    """
    try:
        lines = mounts.read_text().splitlines()
    except OSError:
        return None
    options_of = dict[Path, set[str]]()
    for line in lines:
        before, _, after = line.partition(" - ")  # of one mount; a later one hides an earlier one at the same place
        place = Path(before.split()[4].replace("\\040", " "))
        options_of[place] = {*before.split()[5].split(","), *after.split()[-1].split(",")}
    whole = folder.resolve()
    place = next((one for one in (whole, *whole.parents) if one in options_of), None)
    return None if place is None else min(options_of[place] & LOCAL_LOCKS, default=None)
