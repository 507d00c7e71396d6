"""Writes generators/diopigen/model/reserved_words.yaml: the words that nothing can be called in C or C++.

Compilers are asked. Keywords are those among the words inside of gcc and libclang that cannot name a parameter, under
each standard; macros are those of the headers that generated sources include, and declarations what these headers
declare outside of namespaces: an argument can be called so, the contract's own types and enumerators cannot. `--add`
keeps what the table has of other compilers and releases of torch. `--check` writes nothing and exits with 1 if the
compilers of this machine refuse a word that the table lacks.
"""

import argparse
import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import clang.native
import yaml

from diopigen.model.reserved import PATTERNS, TABLE, reserved, taken_by_languages
from diopigen.source.cpp.clang import keywords_in
from diopigen.text import wrapped

ROOT = Path(__file__).resolve().parent.parent
CONTRACT = ROOT / "generated" / "include"
# By the compiler's name of the standard, the earliest first; one that a compiler does not know is not asked.
STANDARDS = {
    ("c", "c89"): "C89",
    ("c++", "c++98"): "C++98",
    ("c", "c99"): "C99",
    ("c", "c11"): "C11",
    ("c++", "c++11"): "C++11",
    ("c++", "c++14"): "C++14",
    ("c", "c17"): "C17",
    ("c++", "c++17"): "C++17",
    ("c++", "c++20"): "C++20",
    ("c", "c2x"): "C23",
    ("c++", "c++2b"): "C++23",
    ("c++", "c++2c"): "C++26",
    ("c", "gnu2x"): "GNU C",
    ("c++", "gnu++2b"): "GNU C++",
}
# What headers and generated sources include, with the language that they are written in; torch only where it is there.
INCLUDED = (
    ("c", "gnu2x", ("stdbool.h", "stddef.h", "stdint.h")),
    (
        "c++",
        "gnu++17",
        ("stdbool.h", "string_view", "elementwise/elementwise.h", "composite/steps.h", "adaptor/call.h"),
    ),
    ("c++", "gnu++20", ("ATen/core/Tensor.h",)),
)
_WORD = re.compile(rb"(?<![A-Za-z0-9_])[a-z][a-z0-9_]{1,17}$")
_LONGEST = 20
_ERROR = re.compile(r"^[^:\n]*:(\d+):\d+: (?:fatal )?error:", re.MULTILINE)
_NAME = re.compile(r"(?<!\w)[A-Za-z_]\w*")
_EVERY_ERROR = ("-w", "-fmax-errors=0", "-fno-diagnostics-show-caret")
_DECLARED = re.compile(r"^asked:(\d+):\d+: error: .*\n(?:In file .*\n| +from .*\n)*(\S+):\d+:\d+: note: ", re.MULTILINE)
_DIRECTIVE = re.compile(r'(?:# \d+ "(?P<file>[^"]*)"|#(?P<word>define|undef) (?P<name>[A-Za-z]\w*)(?: (?P<text>.*))?$)')
_HEAD = """\
# Words that nothing can be called that reaches C or C++. tools/reserved_words.py asks compilers for all but the last.
# Keywords by the first standard that has them, macros and declarations by the header that has them.
"""

Words = dict[str, str]  # with the reason, e.g. {"class": "C++98"}


def main() -> int:
    """The exit code: 0, or 1 if the table lacks a word."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--add", action="store_true", help="keep the words that the table has")
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if the table lacks a word")
    options = parser.parse_args()
    found = {"keywords": keywords(known_words(ends=True)), "macros": macros(), "declarations": declarations()}
    if options.check:
        lacking = sorted(
            {word for group, words in found.items() for word in words if not _known(word, group == "declarations")}
        )
        print("\n".join(f"the table lacks '{word}'" for word in lacking), file=sys.stderr)
        return 1 if lacking else 0
    table = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
    known = {group: {word: where for where, words in table[group].items() for word in words.split()} for group in table}
    kept = {group: {**words, **known[group]} if options.add else words for group, words in found.items()}
    TABLE.write_text("".join(_lines({**kept, "generated": known["generated"]})), encoding="utf-8")
    return 0


def _lines(table: Mapping[str, Words]) -> Iterator[str]:
    yield _HEAD
    for group, words in table.items():
        by_reason: dict[str, list[str]] = {}
        for word, reason in sorted(words.items()):
            by_reason.setdefault(reason, []).append(word)
        yield f"{group}:\n"
        for reason, those in by_reason.items():
            yield f"  {reason}: >-\n"
            yield from (f"{line}\n" for line in wrapped(" ".join(those), 110, "    "))


def known_words(ends: bool) -> set[str]:
    """The words that stand in the compilers' own binaries, keywords among them.

    A linker may keep a word as the end of a longer one; with `ends` all of these count.
    """
    tools = (_output("gcc", f"-print-prog-name={name}").strip() for name in ("cc1", "cc1plus"))
    found: set[str] = set()
    for path in (*map(Path, tools), Path(clang.native.__file__).parent / "libclang.so"):
        content = path.read_bytes() if path.is_file() else b""
        texts = {text[-_LONGEST:] for text in content.split(b"\0")}
        found |= {match[0].decode() for text in texts if (match := _WORD.search(text)) is not None}
    if ends:
        found |= {word[at:] for word in found for at in range(len(word) - 1) if word[at].isalpha()}
    return found


def keywords(words: Iterable[str]) -> Words:
    """Those of `words` that no parameter can be called, with the first standard that says so."""
    asked = sorted(words)
    found: Words = {}
    for (language, standard), shown in STANDARDS.items():
        for word in refused(asked, language, standard):
            found.setdefault(word, shown)
    return found


def refused(words: Sequence[str], language: str, standard: str) -> Iterator[str]:
    """The words that gcc does not take for a parameter's name, and those that are keywords to clang."""
    text = "".join(f"int f{at}(int {word}) {{ return {word}; }}\n" for at, word in enumerate(words))
    command = ["gcc", "-x", language, f"-std={standard}", "-fsyntax-only", "-w", "-fmax-errors=0", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    yield from (words[place - 1] for place in sorted(set(map(int, _ERROR.findall(done.stderr)))))
    yield from keywords_in("\n".join(words), ("-x", language, f"-std={standard}"))


def _known(word: str, at_file_scope: bool) -> bool:
    return (taken_by_languages(word, at_file_scope=True) if at_file_scope else reserved(word)) is not None


def macros() -> Words:
    """Names that stand for something else, with the header that says so, or gcc itself."""
    found: Words = {}
    for language, standard, headers in INCLUDED:
        defined: Words = {}
        header = ""
        for line in _gcc(language, standard, _including(headers), "-E", "-dD").stdout.splitlines():
            match = _DIRECTIVE.match(line)
            if match is None:
                continue
            if match["file"] is not None:
                header = Path(match["file"]).name
            elif match["word"] == "undef" or (match["text"] or "").isidentifier():
                defined.pop(match["name"], None)
            elif reserved(match["name"]) not in PATTERNS.values():
                defined[match["name"]] = "gcc" if header.startswith("<") else header
        found = {**defined, **found}
    return found


def declarations() -> Words:
    """What is declared outside of namespaces, with the header that does it, but for the contract's own."""
    found: Words = {}
    for language, standard, headers in INCLUDED:
        text = _including(headers)
        words = sorted(set(_NAME.findall(_gcc(language, standard, text, "-E", "-P").stdout)))
        asked = [word for word in words if reserved(word) is None or word.endswith("_t")]
        tried = "".join(f"typedef enum {word} {{ probe_{at} }} {word};\n" for at, word in enumerate(asked))
        said = _gcc(language, standard, f'{text}#line 1 "asked"\n{tried}', "-fsyntax-only", *_EVERY_ERROR).stderr
        for at, path in _DECLARED.findall(said):
            if not Path(path).is_relative_to(CONTRACT):
                found.setdefault(asked[int(at) - 1], Path(path).name)
    return found


def _including(headers: Iterable[str]) -> str:
    return "".join(f"#include <{header}>\n" for header in headers)


def _gcc(language: str, standard: str, text: str, *options: str) -> subprocess.CompletedProcess[str]:
    folders = (CONTRACT, ROOT / "runtime_cpp", ROOT / "runtime_cpp" / "kernels", *_of_torch())
    command = ["gcc", "-x", language, f"-std={standard}", *options, *(f"-I{folder}" for folder in folders), "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


def _of_torch() -> Iterator[Path]:
    """The folders of torch's headers."""
    spec = importlib.util.find_spec("torch")
    if spec is not None and spec.origin is not None:
        yield from (Path(spec.origin).parent / "include" / inner for inner in ("", "torch/csrc/api/include"))


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    sys.exit(main())
