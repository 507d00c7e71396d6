"""Programs that use every function of the headers, written from what libclang reads there."""

from collections.abc import Iterable, Iterator, Sequence

from diopigen.source.cpp.c_header import HeaderFunction


def calls_of(functions: Iterable[HeaderFunction], headers: Sequence[str]) -> str:
    """A function per declaration that calls it with one variable per parameter, each of the spelled type."""
    return "\n".join((*_includes(headers), *(line for f in functions for line in _caller(f))))


def addresses_of(functions: Sequence[HeaderFunction], headers: Sequence[str]) -> str:
    """A program with a pointer of the spelled type to each function; it exits with 0 if all weak ones are null."""
    lines = [*_includes(headers), "int main(void) {", "    int found = 0;"]
    for position, function in enumerate(functions):
        types = ", ".join(type_ for type_, _ in function.params) or "void"
        lines.append(f"    {function.returns} (*const f{position})({types}) = {function.name};")
        # the address of one that is not weak is never null, and a compiler says so
        lines.append(f"    found += f{position} ? 1 : 0;" if function.weak else f"    (void)f{position};")
    return "\n".join([*lines, "    return found > 0;", "}", ""])


def _includes(headers: Sequence[str]) -> Iterator[str]:
    yield from (f"#include <diopi/{name}.h>" for name in headers)


def _caller(function: HeaderFunction) -> Iterator[str]:
    """e.g. "diopiError_t call_diopiRelu(diopiContextHandle_t a0, ...);" and its body."""
    names = [f"a{position}" for position in range(len(function.params))]
    params = ", ".join(f"{type_} {name}" for (type_, _), name in zip(function.params, names, strict=True)) or "void"
    head = f"{function.returns} call_{function.name}({params})"
    back = "" if function.returns == "void" else "return "
    yield f"{head};"
    yield f"{head} {{ {back}{function.name}({', '.join(names)}); }}"
