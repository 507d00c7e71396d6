"""torchgen's spelling of types in ours."""

from diopigen.targets.aten.text import cpp_type


def test_types_are_spelled_as_ours() -> None:
    assert cpp_type("const ::std::optional<at::Tensor> &") == "const std::optional<at::Tensor>&"
