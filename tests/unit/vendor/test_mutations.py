"""Any change of one token of a good convert_config.yaml gives a diagnostic or a plan, never a traceback."""

import re
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from diopigen.model.program import Program
from diopigen.targets.adaptor import outputs
from diopigen.targets.output import renderer
from tests.unit.vendor.small_project import ROOT, with_vendor

GOOD = """\
- common_config:
    dtype: (int64)->int32, (float64)->float32
    layout: NCHW
- diopiConvolution2d:
    dtype: (float16, bfloat16)->float32
    tensor_dtype: {bias: (float16)->float32}
    layout: NHWC, weight(NCHW)
- ops: [diopiAdd, diopiAddInp]
  dtype: (bool)->uint8
- diopiSgd: {contiguous: true, supportComposite: false}
"""

TOKENS = re.findall(r"\s+|->|\w+|[^\w\s]", GOOD)
SPARE = [
    "",
    ":",
    "-",
    "(",
    ")",
    "->",
    ",",
    "{",
    "}",
    "[",
    "]",
    "&",
    "*",
    "!",
    "|",
    "#",
    "null",
    "\t",
    "\n",
    "0",
    "'",
    '"',
    "\u00e9",
]


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    place=st.integers(0, len(TOKENS) - 1),
    token=st.one_of(st.sampled_from(SPARE), st.sampled_from(TOKENS)),
    how=st.sampled_from(["replace", "insert", "swap"]),
)
def test_one_token(contract: Program, tmp_path: Path, place: int, token: str, how: str) -> None:
    tokens = list(TOKENS)
    if how == "replace":
        tokens[place] = token
    elif how == "insert":
        tokens.insert(place, token)
    elif place + 2 < len(tokens):
        tokens[place], tokens[place + 2] = tokens[place + 2], tokens[place]
    program, diagnostics = with_vendor(contract, "".join(tokens), tmp_path)
    for finding in diagnostics.found:
        assert finding.span.path == "convert_config.yaml" and finding.span.line >= 1 and finding.span.column >= 1
        assert "Traceback" not in finding.message and finding.message
    if not diagnostics.failed:
        assert [o for o in outputs(program, renderer(ROOT / "templates")) if "None" in o.text] == []
