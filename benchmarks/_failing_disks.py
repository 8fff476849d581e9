"""Disks that fail: a small one that fills up, and one whose power is cut. Both need Linux, and root to mount them."""

import fcntl
import os
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SHUTDOWN, NO_LOG_FLUSH = 0x8004587D, 2  # EXT4_IOC_SHUTDOWN: nothing more reaches the disk, not even ext4's own log
IMAGE_BYTES = 32 << 20


class CannotMountError(Exception):
    """This machine does not let us mount disks; the text is the reason."""


def call(*command: str) -> None:
    """Run a command, or say why it cannot be run."""
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        said = error.stderr.strip() if isinstance(error, subprocess.CalledProcessError) else str(error)
        raise CannotMountError(f"{' '.join(command[:3])}: {said}") from error


@contextmanager
def small_disk(size: int) -> Iterator[Path]:
    """A disk in memory that has room for so many bytes."""
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        call("mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(place))
        try:
            yield place
        finally:
            call("umount", "-l", str(place))


def enlarge(place: Path, size: int) -> None:
    """Make room on a disk in memory."""
    call("mount", "-o", f"remount,size={size}", str(place))


class LoopDisk:
    """An ext4 file system in a file. Cutting its power loses all that ext4 has not written by then."""

    def __init__(self, folder: Path) -> None:
        self.image, self.place = folder / "image", folder / "disk"
        self.place.mkdir()
        with self.image.open("wb") as file:
            file.truncate(IMAGE_BYTES)
        call("mkfs.ext4", "-q", str(self.image))
        self.mount()

    def mount(self) -> None:
        """Mount it; ext4 repairs itself by its log."""
        call("mount", "-o", "loop", str(self.image), str(self.place))

    def unmount(self) -> None:
        """Unmount it."""
        call("umount", str(self.place))

    def cut_power(self) -> None:
        """Let no write reach the disk from now on, until it is mounted again."""
        descriptor = os.open(self.place, os.O_RDONLY)
        try:
            fcntl.ioctl(descriptor, SHUTDOWN, struct.pack("I", NO_LOG_FLUSH))
        finally:
            os.close(descriptor)
