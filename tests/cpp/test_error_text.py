"""A library's words become UTF-8, whatever they are: what is UTF-8 stays, each other byte is a question mark."""

import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.built import ROOT, compiled

PROGRAM = """\
#include "contract/error_text.h"
#include <cstdio>
int main() {
    std::string text;
    for (int c = std::getchar(); c != EOF; c = std::getchar()) text.push_back(static_cast<char>(c));
    std::fputs(diopi::error_text(text.c_str()).c_str(), stdout);
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = tmp_path_factory.mktemp("error_text") / "error_text.cpp"
    source.write_text(PROGRAM, encoding="utf-8")
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined", f"-I{ROOT / 'runtime_cpp'}"]
    return compiled(["g++", *flags, source], "error_text")


def said(program: Path, text: bytes) -> bytes:
    return subprocess.run([program], input=text, capture_output=True, check=True).stdout


def characters(text: bytes) -> Iterator[bytes]:
    """As Python decodes them, with a question mark for each byte that begins none."""
    while text:
        for length in (1, 2, 3, 4):
            try:
                text[:length].decode()
            except UnicodeDecodeError:
                continue
            yield text[:length]
            text = text[length:]
            break
        else:
            yield b"?"
            text = text[1:]


def test_bytes_become_utf_8(program: Path) -> None:
    chosen = random.Random(0)
    edges = [0x01, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xED, 0xF0, 0xF4, 0xF5, 0xFF]
    for _ in range(40):
        text = bytes(chosen.choice(edges) for _ in range(1900))
        assert said(program, text) == b"".join(characters(text))
    words = "größer als 2³¹, 不支持, 🙂".encode()
    assert said(program, words) == words


@pytest.mark.parametrize("word", ["e", "é", "不", "🙂"])
def test_a_long_text_ends_between_characters(program: Path, word: str) -> None:
    text = ("x" + word * 5000).encode()
    begin, _, rest = said(program, text).decode().partition("...")
    assert text.decode().startswith(begin) and 2000 <= len(begin.encode()) < 2004
    assert rest == f" ({len(text) - len(begin.encode())} more bytes)"
