"""Results of the CIFAR-10 experiment: one row per study in `rows.jsonl`, journals in `studies.tar.xz`."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments._cifar_studies import Unit
from experiments.study_archive import StudyArchive
from paceline.study import Study

FOLDER = Path(__file__).parent / "results" / "cifar"


@dataclass(frozen=True, slots=True)
class StudyRow:
    """A finished study: its settings and final measures, and where its journal is."""

    row: dict[str, Any]
    archive: StudyArchive

    @property
    def unit(self) -> Unit:
        """Network, method and seed."""
        return Unit(self.row["depth"], self.row["method"], self.row["seed"])

    @property
    def study(self) -> Study:
        """Its journal."""
        return self.archive.open(self.unit.name)


class CifarResults:
    """The finished studies in a folder.

    Args:
        folder: rows, journals and figures.
    """

    def __init__(self, folder: Path = FOLDER) -> None:
        self.folder = folder
        self.archive = StudyArchive(folder / "studies.tar.xz", folder / "studies")

    @property
    def rows_path(self) -> Path:
        """The file of rows."""
        return self.folder / "rows.jsonl"

    def rows(self) -> list[StudyRow]:
        """All rows, by name."""
        lines = self.rows_path.read_text().splitlines() if self.rows_path.exists() else []
        rows = [StudyRow(json.loads(line), self.archive) for line in lines]
        return sorted(rows, key=lambda row: row.unit.name)

    def of_network(self, depth: int) -> list[StudyRow]:
        """The studies of one network."""
        return [row for row in self.rows() if row.unit.depth == depth]

    def units(self) -> set[Unit]:
        """Which studies are finished."""
        return {row.unit for row in self.rows()}

    def add(self, row: dict[str, Any]) -> None:
        """Add the row of a study whose journal is in its folder already."""
        with self.rows_path.open("a") as file:
            file.write(json.dumps(row) + "\n")
