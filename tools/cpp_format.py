"""Formats the C++ by hand as .clang-format says: `python -m tools.cpp_format`; with --check it only compares.

There is one include guard, `#pragma once`, and one spelling, `int64_t` without `std::`. What .clang-format-ignore lists
stays as it is.
"""

import argparse
import re
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_SUFFIXES = ("*.h", "*.hpp", "*.cpp", "*.cu", "*.cuh")
_GUARD = re.compile(r"^#ifndef (\w+_)\n#define \1\n(.*)^#endif *(?://|/\*) *\1[^\n]*\n*\Z", re.DOTALL | re.MULTILINE)
_SPELLED = re.compile(r"\bstd::(u?int(?:8|16|32|64)_t)\b")


def main() -> int:
    """The exit code is 1 where --check finds a file that is not formatted."""
    parser = argparse.ArgumentParser(prog="python -m tools.cpp_format", description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    check = parser.parse_args().check
    files = sources(ROOT)
    different = [
        path for path in files if spelled(path.read_text(encoding="utf-8")) != path.read_text(encoding="utf-8")
    ]
    for path in different:
        if check:
            print(
                f"{path.relative_to(ROOT)}: error: an include guard or a name of std; run 'make format'",
                file=sys.stderr,
            )
        else:
            path.write_text(spelled(path.read_text(encoding="utf-8")), encoding="utf-8")
    how = ("--dry-run", "-Werror", "--ferror-limit=1") if check else ("-i",)
    done = subprocess.run([Path(sys.executable).with_name("clang-format"), *how, *files], cwd=ROOT, check=False)
    return done.returncode or int(check and bool(different))


def sources(root: Path) -> list[Path]:
    """The C++ below `root` that git knows or would add, but for what .clang-format-ignore lists."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate", "--", *_SUFFIXES]
    listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout.splitlines()
    rules = (root / ".clang-format-ignore").read_text(encoding="utf-8").splitlines()
    ignored = [rule for rule in rules if rule and not rule.startswith("#")]
    return [root / name for name in listed if (root / name).is_file() and not any(fnmatch(name, i) for i in ignored)]


def spelled(text: str) -> str:
    """`text` with the one include guard, and integers as C spells them."""
    guard = _GUARD.search(text)
    if guard is not None:
        text = f"{text[: guard.start()]}#pragma once\n{guard[2].rstrip()}\n"
    return _SPELLED.sub(r"\1", text)


if __name__ == "__main__":
    sys.exit(main())
