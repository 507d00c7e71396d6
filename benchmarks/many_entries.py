"""A checkout with the entries of schemas/ops several times, the copies under other names, and edits of one entry."""

import re
import shutil
from pathlib import Path

from setting import ROOT

_LINKED = ("templates", "runtime_cpp", "generators", "vendors", "CMakeLists.txt")
EDITED = "activation.yaml"  # of schemas/ops: its first entries have all that the edits are of
# What is edited, by what is found first and what stands in its place; `{}` is a number that no earlier edit had.
EDITS = {
    "doc": (r"^  doc: .*", r"\g<0> Once more, {}."),
    "kernel": (r"^  kernel: (.*)", r"  kernel: \1 + {}"),
    "case": (r"^    - \{(.*?)\[", r"    - {{\1[{}, "),
}


def many_entries(root: Path, times: int) -> Path:
    """Writes it below `root`. Copies bind no operator of PyTorch, which one entry alone may do."""
    root.mkdir()
    for name in _LINKED:
        (root / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "schemas", root / "schemas")
    shutil.copytree(ROOT / "generated" / "include", root / "generated" / "include")
    for path in sorted((root / "schemas" / "ops").glob("*.yaml")):
        text = path.read_text(encoding="utf-8")
        for number in range(2, times + 1):
            path.with_name(f"{path.stem}_copy{number}.yaml").write_text(_copy(text, number), encoding="utf-8")
    return root


def _copy(text: str, number: int) -> str:
    """A file of entries, under names that end in the number."""
    unbound = re.sub(r"^  aten:.*\n(?:(?:    .*)?\n)*", "", text, flags=re.MULTILINE)
    # An argument that PyTorch's operator alone has tells the shape of one output.
    told = re.sub(r"(?s)(?<=\nstd:).*?, keepdim", lambda entry: entry[0].removesuffix(", keepdim"), unbound)
    named = re.sub(r"^(\w+):", rf"\1_copy{number}:", told, flags=re.MULTILINE)
    symbols = re.sub(r"^( +name: \w+)", rf"\1Copy{number}", named, flags=re.MULTILINE)
    return re.sub(r"(?<=\n  names: \{).*", lambda names: re.sub(r": (\w+)", rf": \1Copy{number}", names[0]), symbols)


def edit(project: Path, what: str, number: int) -> None:
    """Edits one entry of a project; of each of these edits no two with a number are alike."""
    path = project / "schemas" / "ops" / EDITED
    before = (ROOT / "schemas" / "ops" / EDITED).read_text(encoding="utf-8")
    form, text = EDITS[what]
    path.write_text(re.sub(form, text.format(number), before, count=1, flags=re.MULTILINE), encoding="utf-8")
