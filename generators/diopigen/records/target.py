"""target.json, which CMake writes: how programs are compiled. "@FOLDER@" is the folder of the libraries."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetFile:
    vendor: str  # e.g. "droplet"
    compiler: str  # e.g. "/usr/bin/c++"
    flags: tuple[str, ...]
    include: tuple[str, ...]
    link: tuple[str, ...]
    suffix: str  # of a source: ".cpp", ".cu"
    kernels: tuple[str, ...] = ()  # the call that compiles a program's kernels, where `compiler` compiles only the rest
