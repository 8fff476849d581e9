"""The studies of an experiment: finished ones in one compressed file, others as folders until they are packed.

Journals are long and much alike, so one `studies.tar.xz` takes a seventh of their size. A study that is read from it
lies in a temporary folder, which goes when the process ends.
"""

import io
import lzma
import shutil
import tarfile
import tempfile
import weakref
from functools import cached_property
from pathlib import Path

from paceline.study import Study

FILES = ("study.json", "journal.jsonl", "known.jsonl")  # of a study's folder; checkpoints are not kept
COMPRESSION = 9 | lzma.PRESET_EXTREME


class StudyArchive:
    """The studies of an experiment, by name: `resnet20/greedy-0`.

    Args:
        packed: the compressed file, which need not exist yet.
        unpacked: a folder with the studies that are not packed yet, which need not exist either.
    """

    def __init__(self, packed: Path, unpacked: Path) -> None:
        self.packed, self.unpacked = packed, unpacked

    @property
    def names(self) -> list[str]:
        """All studies, in alphabetical order."""
        return sorted({*self._members, *_studies_in(self.unpacked)})

    def __contains__(self, name: str) -> bool:
        return name in self._members or (self.unpacked / name / "study.json").exists()

    def folder(self, name: str) -> Path:
        """The folder of a study; where a new study of this name is to be written, if there is none yet."""
        folder = self.unpacked / name
        if not (folder / "study.json").exists() and name in self._members:
            return self._temporary / name
        return folder

    def open(self, name: str) -> Study:
        """A study, to read."""
        return Study.open(self.folder(name))

    def pack(self) -> None:
        """Move all finished studies from their folders into the compressed file."""
        finished = [name for name in _studies_in(self.unpacked) if self.open(name).finished is not None]
        if not finished:
            return
        folders = {name: self.folder(name) for name in {*self._members, *finished}}
        write_archive(self.packed, folders)
        for name in finished:
            shutil.rmtree(self.unpacked / name)
        for cached in ("_members", "_temporary"):
            self.__dict__.pop(cached, None)

    @cached_property
    def _members(self) -> frozenset[str]:
        """Studies that are packed."""
        if not self.packed.exists():
            return frozenset()
        return frozenset(_studies_in(self._temporary))

    @cached_property
    def _temporary(self) -> Path:
        """The packed studies in a folder that is removed with this object, at the latest when the process ends."""
        folder = tempfile.mkdtemp(prefix="paceline-studies-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        with tarfile.open(self.packed) as archive:
            archive.extractall(folder, filter="data")
        return Path(folder)


def _studies_in(folder: Path) -> list[str]:
    """Names of the studies anywhere below a folder."""
    return [path.parent.relative_to(folder).as_posix() for path in folder.rglob("study.json")]


def write_archive(path: Path, folders: dict[str, Path]) -> None:
    """Write studies into one compressed file; the same studies give the same bytes."""
    part = path.with_suffix(".part")
    with tarfile.open(part, "w:xz", preset=COMPRESSION) as archive:
        for name in sorted(folders):
            for file in FILES:
                if (folders[name] / file).exists():
                    content = (folders[name] / file).read_bytes()
                    member = tarfile.TarInfo(f"{name}/{file}")
                    member.size = len(content)
                    archive.addfile(member, io.BytesIO(content))
    part.replace(path)
