"""The environment variables of the compiler, read once for each compilation."""

import os
from dataclasses import dataclass
from pathlib import Path


class BadSetting(Exception):
    """A variable has a value that it does not take; the message is one sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    strict: bool  # DICP_STRICT=1: an operator without a binding is an error
    dump: Path | None  # DICP_DUMP=<folder>: graph, program, source and explanation of each compilation
    check: bool  # DICP_CHECK=1: each instruction against the eager operator
    profile: bool  # DICP_PROFILE=1: each instruction is a range of torch.profiler
    patterns: tuple[str, ...] | None  # DICP_PATTERNS=<names>; 0: none; None: those that pay for the vendor
    streams: int  # DICP_STREAMS=<n>: how many instructions may run at once, where that pays
    cache: Path | None  # DICP_CACHE=<folder>; empty: programs are compiled into a folder that goes with the process
    cache_graphs: bool  # DICP_CACHE_GRAPHS=1: torch's cache of compiled graphs holds those of dicp, too


def settings() -> Settings:
    """Raises BadSetting."""
    dump, cache = os.environ.get("DICP_DUMP"), os.environ.get("DICP_CACHE")
    default = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dicp"
    return Settings(
        strict=_switch("DICP_STRICT"),
        dump=Path(dump) if dump else None,
        check=_switch("DICP_CHECK"),
        profile=_switch("DICP_PROFILE"),
        patterns=_patterns(os.environ.get("DICP_PATTERNS", "1")),
        streams=_count("DICP_STREAMS"),
        cache=default if cache is None else Path(cache) if cache else None,
        cache_graphs=_switch("DICP_CACHE_GRAPHS"),
    )


def _switch(name: str) -> bool:
    word = os.environ.get(name, "0")
    if word not in ("0", "1", ""):
        raise BadSetting(f"{name} is '{word}': set it to 0 or 1")
    return word == "1"


def _count(name: str) -> int:
    word = os.environ.get(name) or "1"
    if not word.isdecimal() or not 1 <= int(word) <= 16:
        raise BadSetting(f"{name} is '{word}': set it to a number from 1 to 16")
    return int(word)


def _patterns(word: str) -> tuple[str, ...] | None:
    if word in ("1", ""):
        return None
    return () if word == "0" else tuple(name.strip() for name in word.split(","))
