"""torchgen's spelling of C++ in ours."""


def cpp_type(spelled: str) -> str:
    """torchgen's spelling of a type in ours: `at::Tensor &` is `at::Tensor&`."""
    return spelled.replace(" &", "&").replace("::std::", "std::")
