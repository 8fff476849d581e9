"""Claim: damage to a study is noticed or does no harm, and no crash, full disk or power cut changes a decision.

A small study that keeps its best weights (cost 1.5) is damaged in every way below, and continued. It is *noticed* if
that is an error of Paceline's, *harmless* if the study ends with the same decisions and bit-equal weights, and CHANGED
otherwise. A journal that is refused must stay as it is, byte for byte.

- flipped bits: one bit of a journal, finished or in its middle, of study.json, or of a checkpoint, which is continued
  from (many are never read again) and, in a second row, read at once;
- lines: each line deleted, doubled, swapped with the next, cut in half, and the file ended in the middle of it;
- checkpoints: two files swapped;
- kills: SIGKILL at random moments;
- full disk: a file system in memory with too little room, which is enlarged after the error;
- power cut: ext4 on a loop device is shut down without writing its log, the process is killed, and the device mounted
  again. A control runs without fsync: it must lose events, or the cut would show nothing. What the loop device itself
  has taken counts as on disk, so a disk that lies about its cache is not tried.

For comparison, the same flips are read without checksums: journals of format 2, and checkpoints without their last
line. Full disks and power cuts need Linux and root; elsewhere they are skipped with the reason.
"""

import argparse
import itertools
import json
import random
import re
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import torch

from benchmarks._damaged_study import CHANGED, HARMLESS, NOTICED, copy_of, own_process, run, stopped, verdict, wait_for
from benchmarks._failing_disks import CannotMountError, LoopDisk, enlarge, small_disk
from benchmarks._report import machine, print_results, result, table
from paceline import PacelineError
from paceline.study import read_journal
from paceline.study.events import to_json
from paceline.training import load_checkpoint

EVENTS = (12, 34, 57)  # after which studies are stopped, to be damaged in their middle
DAMAGES = ("deleted", "doubled", "swapped", "cut in half", "torn")


class Damage:
    """Studies to damage, and what came of it.

    Args:
        folder: for the studies.
        seed: of what is damaged, and when.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.rng = folder, random.Random(seed)
        self.rows, self.rewritten, self.filled = list[list[object]](), 0, 0
        began = time.perf_counter()
        self.expected = run(folder / "whole")
        self.seconds = time.perf_counter() - began
        for events in EVENTS:
            stopped(folder / f"stopped {events}", events)
        self.studies = [folder / "whole", *(folder / f"stopped {events}" for events in EVENTS)]

    def add(self, name: str, verdicts: "Counter[str]") -> None:
        """A row of the table."""
        self.rows.append([name, verdicts.total(), *(verdicts[v] for v in (NOTICED, HARMLESS, CHANGED))])
        result(f"damage_{re.sub(r'[^a-z]+', '_', name)}_changed", verdicts[CHANGED])

    def try_content(self, template: Path, name: str, content: bytes) -> str:
        """Continue a copy of a study in which one file has other content."""
        study = copy_of(template, self.folder / "damaged")
        (study / name).write_bytes(content)
        found = verdict(study, self.expected)
        kept = content[: content.rfind(b"\n") + 1] if name == "journal.jsonl" else content  # a torn line is cut off
        self.rewritten += found == NOTICED and not (study / name).read_bytes().startswith(kept)
        return found

    def flipped(self, content: bytes) -> bytes:
        """The same with one bit flipped."""
        damaged = bytearray(content)
        damaged[self.rng.randrange(len(content))] ^= 1 << self.rng.randrange(8)
        return bytes(damaged)

    def flips(self, name: str, count: int) -> "Counter[str]":
        """Single bits of one file, shared by all studies."""
        return Counter(
            self.try_content(study, name, self.flipped((study / name).read_bytes()))
            for study in self.studies
            for _ in range(count // len(self.studies))
        )

    def checkpoint_flips(self, count: int) -> "Counter[str]":
        """Single bits of checkpoints that a study still needs."""
        files = [path for study in self.studies for path in sorted((study / "checkpoints").iterdir())]
        return Counter(
            self.try_content(path.parents[1], f"checkpoints/{path.name}", self.flipped(path.read_bytes()))
            for path in (files[i % len(files)] for i in range(count))
        )

    def checkpoint_reads(self, count: int) -> "Counter[str]":
        """Single bits of checkpoints that are read at once, whether a study would read them again or not."""
        verdicts, files = Counter[str](), [path for study in self.studies for path in (study / "checkpoints").iterdir()]
        for i in range(count):
            path = self.folder / files[i % len(files)].name
            path.write_bytes(self.flipped(files[i % len(files)].read_bytes()))
            try:
                load_checkpoint(path)
                verdicts[CHANGED] += 1
            except PacelineError:
                verdicts[NOTICED] += 1
        return verdicts

    def swaps(self) -> "Counter[str]":
        """Two checkpoints of a stopped study under each other's names."""
        verdicts = Counter[str]()
        for template in self.studies[1:]:
            names = [path.name for path in sorted((template / "checkpoints").iterdir())]
            for one, other in itertools.pairwise(names):
                study = copy_of(template, self.folder / "damaged") / "checkpoints"
                shutil.copy(template / "checkpoints" / one, study / other)
                shutil.copy(template / "checkpoints" / other, study / one)
                verdicts[verdict(study.parent, self.expected)] += 1
        return verdicts

    def lines(self, how: str) -> "Counter[str]":
        """Each line of the journals of a finished and of a stopped study."""
        verdicts = Counter[str]()
        for template in (self.studies[0], self.studies[-1]):
            whole = (template / "journal.jsonl").read_bytes().splitlines(keepends=True)
            for content in damaged_lines(whole, how):
                verdicts[self.try_content(template, "journal.jsonl", content)] += 1
        return verdicts

    def kills(self, count: int) -> "Counter[str]":
        """SIGKILL at random moments."""
        verdicts = Counter[str]()
        for i in range(count):
            study = self.folder / f"killed {i}"
            with own_process(study) as (child, on_disk):
                wait_for(child, on_disk, self.rng.randrange(len(self.expected.events)), self.rng.uniform(0, 0.01))
            verdicts[verdict(study, self.expected)] += 1
        return verdicts

    def full_disks(self, count: int) -> "Counter[str]":
        """A disk that has room for a part of the study, and is enlarged after the error."""
        verdicts, used = Counter[str](), sum(path.stat().st_size for path in self.studies[1].rglob("*.*"))
        for i in range(count):
            with small_disk(round(used * (0.2 + 0.8 * i / count))) as place:
                found = verdict(place / "study", self.expected)
                if found == NOTICED:
                    self.filled += 1
                    enlarge(place, 64 << 20)
                    found = verdict(place / "study", self.expected)
                verdicts[CHANGED if found == NOTICED else found] += 1
        return verdicts

    def power_cuts(self, count: int, *, syncs: bool = True) -> "tuple[Counter[str], int]":
        """What came of cuts at random moments, and how many of them lost events that were on disk by our account."""
        verdicts, lost = Counter[str](), 0
        for i in range(count):
            folder = self.folder / f"cut {i} {syncs}"
            folder.mkdir()
            disk = LoopDisk(folder)
            try:
                with own_process(disk.place / "study", syncs=syncs) as (child, on_disk):
                    moment = self.rng.randrange(len(self.expected.events))
                    wait_for(child, on_disk, moment, self.rng.uniform(0, 0.01))
                    disk.cut_power()
                    recorded = on_disk()
                disk.unmount()
                disk.mount()
                lost += events_in(disk.place / "study") < recorded
                found = verdict(disk.place / "study", self.expected)
                verdicts[CHANGED if found == NOTICED else found] += 1
            finally:
                disk.unmount()
        return verdicts, lost


def damaged_lines(lines: list[bytes], how: str) -> Iterator[bytes]:
    """A journal with each of its lines damaged in turn."""
    for i, line in enumerate(lines):
        before, after = b"".join(lines[:i]), b"".join(lines[i + 1 :])
        if how == "deleted":
            yield before + after
        elif how == "doubled":
            yield before + line + line + after
        elif how == "swapped" and i + 1 < len(lines):
            yield before + lines[i + 1] + line + b"".join(lines[i + 2 :])
        elif how == "cut in half":
            yield before + line[: len(line) // 2] + b"\n" + after
        elif how == "torn":
            yield before + line[: len(line) // 2]


def events_in(study: Path) -> int:
    """How many events a study has on disk; 0 if they cannot be read."""
    try:
        return len(read_journal(study / "journal.jsonl"))
    except PacelineError:
        return 0


def unnoticed_in_format_2(damage: Damage, count: int) -> float:
    """The share of flipped bits that change what a journal without checksums says, and are not noticed."""
    path, unnoticed = damage.folder / "format-2.jsonl", 0
    lines = [json.loads(line) for line in (damage.studies[0] / "journal.jsonl").read_text().splitlines()]
    older = [{k: 2 if k == "v" else v for k, v in line.items() if k != "crc32"} for line in lines]
    content = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in older).encode()
    path.write_bytes(content)
    expected = list(map(to_json, read_journal(path)))
    for _ in range(count):
        path.write_bytes(damage.flipped(content))
        try:
            unnoticed += list(map(to_json, read_journal(path))) != expected
        except PacelineError:
            continue
    return unnoticed / count


def unnoticed_without_digest(damage: Damage, count: int) -> float:
    """The share of flipped bits that change what a checkpoint without its last line holds, and are not noticed."""
    (path,) = (damage.studies[0] / "checkpoints").iterdir()
    other, unnoticed = damage.folder / "older.pt", 0
    expected, content = load_checkpoint(path), path.read_bytes().rpartition(b"\npaceline ")[0]
    for _ in range(count):
        other.write_bytes(damage.flipped(content))
        try:
            found = load_checkpoint(other)
            unnoticed += not all(torch.equal(found["model"][k], v) for k, v in expected["model"].items())
        except (PacelineError, LookupError, TypeError):
            continue
    return unnoticed / count


def main() -> None:
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--flips", type=int, default=2000, help="bits of journals; a fifth of it of checkpoints")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--disks", type=int, default=20, help="full disks, and power cuts")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(machine())
    skipped, began = list[str](), time.perf_counter()
    with tempfile.TemporaryDirectory() as temporary:
        damage = Damage(Path(temporary), options.seed)
        damage.add("flipped bits of journals", damage.flips("journal.jsonl", options.flips))
        damage.add("flipped bits of study.json", damage.flips("study.json", options.flips // 10))
        damage.add("flipped bits of checkpoints", damage.checkpoint_flips(options.flips // 5))
        damage.add("flipped bits of checkpoints, read", damage.checkpoint_reads(options.flips // 5))
        damage.add("swapped checkpoints", damage.swaps())
        for how in DAMAGES:
            damage.add(f"lines {how}", damage.lines(how))
        damage.add("kills", damage.kills(options.kills))

        def try_disks(name: str, attempt: "Callable[[], Counter[str]]") -> None:
            try:
                damage.add(name, attempt())
            except CannotMountError as error:
                skipped.append(f"skipped: {name}: {error}")

        def cuts() -> "Counter[str]":
            verdicts, lost = damage.power_cuts(options.disks)
            result("damage_power_cuts_that_lost_events", lost)
            _, lost = damage.power_cuts(max(1, options.disks // 4), syncs=False)
            result("damage_power_cuts_that_lost_events_without_fsync", lost / max(1, options.disks // 4))
            return verdicts

        try_disks("full disks", lambda: damage.full_disks(options.disks))
        result("damage_full_disks_that_stopped_a_study", damage.filled)
        try_disks("power cuts", cuts)
        result("damage_unnoticed_flips_of_journals_of_format_2", unnoticed_in_format_2(damage, options.flips // 5))
        result("damage_unnoticed_flips_of_checkpoints_without_digest", unnoticed_without_digest(damage, 200))
        lines = len(damage.expected.events)
    print(f"a study of {lines} lines, {damage.seconds:.1f} s; all in {time.perf_counter() - began:.0f} s")
    print(table(["damage", "tries", NOTICED, HARMLESS, CHANGED], damage.rows))
    print("\n".join(skipped), end="\n" if skipped else "")
    result("damage_changed", sum(int(str(row[-1])) for row in damage.rows))
    result("damage_refused_and_rewritten", damage.rewritten)
    print_results()


if __name__ == "__main__":
    main()
