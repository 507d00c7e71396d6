"""Where tools leave what they find: a folder of results, tables as CSV files, each written with one header."""

import atexit
import csv
import io
import json
import os
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from diopigen.atomic import append, write_bytes
from op_tools import environment


def results_folder() -> Path:
    """OP_TOOLS_RESULTS_DIR. Raises BadVariable where it is a file."""
    return environment.read(environment.RESULTS, _folder)


def _folder(text: str) -> Path:
    folder = Path(text)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"'{text}' is a file; set it to a folder")
    return folder


def stamp() -> str:
    """The time of day as parts of file names have it, e.g. "2026-02-27-10-05-31"."""
    return time.strftime("%Y-%m-%d-%H-%M-%S")


class Table:
    """Rows of one CSV file, kept for a while and appended together.

    The file is made with the first rows. Rows that are kept when the process ends are written then.
    """

    def __init__(self, path: Path, columns: tuple[str, ...], *, kept: int | None = None) -> None:
        """`kept` rows wait to be written; left out, OP_TOOLS_MAX_CACHE_SIZE. Raises BadVariable."""
        self.path = path
        self._columns = columns
        self._rows: list[tuple[Any, ...]] = []
        self._most = environment.count(environment.MAX_ROWS) if kept is None else kept
        self._lock = threading.Lock()
        self._process = os.getpid()
        atexit.register(self.write)

    def add(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """Keeps rows; writes them once there are as many as are kept."""
        with self._lock:
            self._rows += rows
            full = len(self._rows) >= self._most
        if full:
            self.write()

    def write(self) -> None:
        """Appends what is kept."""
        if os.getpid() != self._process:  # a forked process has rows that are not its own
            return
        with self._lock:
            rows, self._rows = self._rows, []
            if not rows:
                return
            text = io.StringIO(newline="")
            writer = csv.writer(text)
            if not self.path.exists():
                writer.writerow(self._columns)
            writer.writerows(rows)
            append(self.path, text.getvalue().encode())


def beside(table: Path) -> Path:
    """Where the statistics of a table lie, e.g. "op_elasped_summary_pid7_<time>.json"."""
    return table.with_name(table.name.replace("_info_", "_summary_")).with_suffix(".json")


def write_beside(table: Table, statistics: dict[str, Any]) -> None:
    """Writes, beside a table that has rows, what its columns have no place for."""
    if table.path.exists():
        write_bytes(beside(table.path), json.dumps(statistics).encode())


def table_in(folder: str, stem: str, columns: tuple[str, ...]) -> Table:
    """A table of this process, e.g. op_tools_results/op_autocompare_result/op_autocompare_info_pid17_<time>.csv."""
    return Table(results_folder() / folder / f"{stem}_pid{os.getpid()}_{stamp()}.csv", columns)
