"""What is remembered of sources: by content, for every checkout, whatever happens to the file."""

import os
import threading
from pathlib import Path

import pytest

from diopigen.source.cpp.source_cache import SourceCache

REPORT = {"definitions": [{"symbol": "diopiAdd", "path": "/nowhere"}]}


class Checkout:
    """A folder with a source and a header, and the cache that it may share with others."""

    def __init__(self, root: Path, cache: Path) -> None:
        self.root, self.cache = root, cache
        self.source, self.header = root / "a.cpp", root / "include" / "a.h"
        self.header.parent.mkdir(parents=True)
        self.source.write_text("source", encoding="utf-8")
        self.header.write_text("header", encoding="utf-8")

    def open(self) -> SourceCache:
        return SourceCache(self.cache, {"${root}": self.root})

    @property
    def flags(self) -> list[str]:
        return [f"-I{self.header.parent}", "-DFAST"]

    def keep(self, report: dict[str, object]) -> None:
        store = self.open()
        store.keep(str(self.source), self.flags, [str(self.source), str(self.header)], report)
        store.write([str(self.source)])

    def found(self) -> dict[str, object] | None:
        return self.open().found(str(self.source), self.flags)


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    made = Checkout(tmp_path / "one", tmp_path / "cache.json")
    made.keep(REPORT)
    return made


def test_content_counts_and_time_does_not(checkout: Checkout) -> None:
    os.utime(checkout.header, (1, 1))
    assert checkout.found() == REPORT
    stamp = checkout.header.stat()
    checkout.header.write_text("HEADER", encoding="utf-8")
    os.utime(checkout.header, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert checkout.found() is None


def test_other_flags_are_another_question(checkout: Checkout) -> None:
    assert checkout.open().found(str(checkout.source), [*checkout.flags, "-DSLOW"]) is None


def test_it_serves_other_checkouts(checkout: Checkout, tmp_path: Path) -> None:
    report = {"definitions": [{"symbol": "diopiAdd", "path": str(checkout.source)}]}
    checkout.keep(report)
    other = Checkout(tmp_path / "deeper" / "two", checkout.cache)
    assert other.found() == {"definitions": [{"symbol": "diopiAdd", "path": str(other.source)}]}
    assert str(checkout.root) not in checkout.cache.read_text(encoding="utf-8")


def test_two_checkouts_that_differ_keep_both(checkout: Checkout, tmp_path: Path) -> None:
    other = Checkout(tmp_path / "two", checkout.cache)
    other.header.write_text("other header", encoding="utf-8")
    assert other.found() is None
    other.keep({"definitions": []})
    assert (checkout.found(), other.found()) == (REPORT, {"definitions": []})


def test_it_does_not_grow_with_every_change(checkout: Checkout) -> None:
    sizes = []
    for number in range(20):
        checkout.header.write_text(f"header {number:02}", encoding="utf-8")
        checkout.keep(REPORT)
        sizes.append(checkout.cache.stat().st_size)
    assert sizes[-1] == sizes[5]


def test_an_unchanged_cache_is_not_written(checkout: Checkout) -> None:
    before = checkout.cache.stat()
    store = checkout.open()
    assert store.found(str(checkout.source), checkout.flags) == REPORT
    store.write([str(checkout.source)])
    assert checkout.cache.stat().st_ino == before.st_ino


def test_runs_at_the_same_time(checkout: Checkout) -> None:
    """Each reader sees a whole file, whoever writes."""
    seen: list[dict[str, object] | None] = []
    damaged: list[bool] = []

    def run() -> None:
        for _ in range(50):
            checkout.keep(REPORT)
            store = checkout.open()
            damaged.append(store.damaged)
            seen.append(store.found(str(checkout.source), checkout.flags))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [REPORT] * 200 and not any(damaged)
    assert [path.name for path in checkout.cache.parent.iterdir() if path.is_file()] == ["cache.json"]


@pytest.mark.parametrize("at", [0.0, 0.1, 0.5, 0.9])
def test_a_changed_byte_is_seen(checkout: Checkout, at: float) -> None:
    content = bytearray(checkout.cache.read_bytes())
    content[int(at * len(content))] ^= 1
    checkout.cache.write_bytes(content)
    assert checkout.open().damaged and checkout.found() is None
    checkout.keep(REPORT)
    assert checkout.found() == REPORT


@pytest.mark.parametrize("share", [0.0, 0.2, 0.99])
def test_half_a_file(checkout: Checkout, share: float) -> None:
    content = checkout.cache.read_bytes()
    checkout.cache.write_bytes(content[: int(share * len(content))])
    assert checkout.open().damaged and checkout.found() is None


def test_a_file_of_an_earlier_version_is_no_damage(checkout: Checkout) -> None:
    checkout.cache.write_text('{"version": 1, "checksum": "0", "entries": {}}', encoding="utf-8")
    assert not checkout.open().damaged and checkout.found() is None


def test_a_folder_that_cannot_be_written_is_no_error(checkout: Checkout) -> None:
    blocked = checkout.root / "file"
    blocked.write_text("", encoding="utf-8")
    checkout.cache = blocked / "cache.json"
    checkout.keep(REPORT)
