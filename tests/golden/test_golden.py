"""A miniature project through every target; `make golden` writes what it gives to expected/."""

import re

import pytest

from diopigen.commands.generate import Request, generate
from diopigen.emit.outputs import VENDOR_TARGETS
from diopigen.project import Project
from tests.golden.conftest import EXPECTED, VENDORS, Miniature

# Each with the reason why somebody reads its golden.
FORMS = {
    "include/diopi/functions.h": "every declaration, one of them deprecated",
    "chip/adaptor/adaptor_arithmetic.cpp": "casts of several tensors",
    "chip/adaptor/adaptor_window.cpp": "casts and layouts in one call, and per argument",
    "chip/adaptor/adaptor_shape.cpp": "lists, outputs that the function allocates, primitives left alone",
    "chip/kernels/elementwise_arithmetic.cpp": "one expression in four forms",
    "chip/conformance/plan.json": "cases as data",
    "chip/compiler/patterns.json": "an idiom as trees, which the vendor goes without",
    "chip/sources.cmake": "what is compiled",
    "card/adaptor/adaptor_arithmetic.cpp": "a plain call where nothing is converted",
    "card/composites/composite_arithmetic.cpp": "a function composed of another",
    "mirror/calls/calls_arithmetic.cpp": "calls of ATen",
    "mirror/adaptor/adaptor_activation.cpp": "a function by hand before a generated one",
    "card/sources.cmake": "without a base nothing portable is compiled",
}


def test_every_output_is_its_golden(generated: Miniature, request: pytest.FixtureRequest) -> None:
    texts = generated.texts()
    assert generated.exit_codes == {"header": 0, "chip": 0, "card": 0, "mirror": 0}
    if request.config.getoption("--snapshot-update"):
        write_goldens(texts)
    goldens = sorted(path for path in EXPECTED.rglob("*") if path.is_file())
    found = {path.relative_to(EXPECTED).as_posix(): path.read_text(encoding="utf-8") for path in goldens}
    assert sorted(texts) == sorted(found)
    for path, text in texts.items():
        assert of_any_torch(text) == of_any_torch(found[path]), f"{path} differs; 'make golden' takes it over"


def of_any_torch(text: str) -> str:
    """Without the lists of operators that the installed release of torch decides."""
    return re.sub(r"(\b(?:drifted|one_device)_operators\(\) \{).*?^\}", r"\1}", text, flags=re.MULTILINE | re.DOTALL)


def write_goldens(texts: dict[str, str]) -> None:
    """Replaces everything in expected/."""
    for path in EXPECTED.rglob("*"):
        if path.is_file() and path.relative_to(EXPECTED).as_posix() not in texts:
            path.unlink()
    for name, text in texts.items():
        path = EXPECTED / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


@pytest.mark.parametrize("path", FORMS)
def test_what_the_miniature_is_meant_to_show_is_there(path: str) -> None:
    assert (EXPECTED / path).is_file()


def test_conversions_show_in_the_adaptor() -> None:
    window = (EXPECTED / "chip/adaptor/adaptor_window.cpp").read_text(encoding="utf-8")
    plain = (EXPECTED / "card/adaptor/adaptor_arithmetic.cpp").read_text(encoding="utf-8")
    assert "cast(diopi_dtype_float16, diopi_dtype_float32)" in window and "Order::channels_last" in window
    assert "impl::card::diopiAdd(" in plain and "diopi_dtype" not in plain


def test_wrappers_do_not_depend_on_the_vendor(generated: Miniature) -> None:
    targets = tuple(VENDOR_TARGETS)
    for vendor in VENDORS:
        check = Request(contract=True, wrappers=True, targets=targets, vendor=vendor, check=True, error_format="github")
        assert generate(generated.project, check) == 0
    alone = Request(contract=True, wrappers=True, targets=(), vendor=None, check=True)
    assert generate(generated.project, alone) == 0
    assert any(path.startswith("torch_dipu/aten/") for path in generated.texts())


def test_a_function_by_hand_takes_the_place_of_the_generated_one() -> None:
    adaptor = (EXPECTED / "mirror/adaptor/adaptor_activation.cpp").read_text(encoding="utf-8")
    assert "impl::mirror::diopiTanh(" in adaptor and "impl::generated::diopiTanhInp(" in adaptor
    calls = (EXPECTED / "mirror/calls/calls_activation.cpp").read_text(encoding="utf-8")
    assert "diopiTanhInp(" in calls and "diopiTanh(" not in calls


def test_run_time_headers_are_those_of_the_checkout(generated: Miniature, checkout: Project) -> None:
    for name in ("diopirt.h", "diopirt_ext.h", "device.h", "diopi_register.h"):
        made = generated.project.generated / "include" / "diopi" / name
        assert made.read_bytes() == (checkout.generated / "include" / "diopi" / name).read_bytes()
