"""Numbers in C++: literals, and a table of what follows from the symbols, filled once for each set of their values."""

from collections.abc import Sequence

import sympy
from torch.utils._sympy.printers import CppPrinter

from dicp.program import Dim


class Numbers:
    """Gives each expression over the symbols its place in the table."""

    def __init__(self, symbols: Sequence[sympy.Symbol]) -> None:
        self._names = {symbol: sympy.Symbol(f"s[{index}]", integer=True) for index, symbol in enumerate(symbols)}
        self._places: dict[sympy.Expr, int] = {}

    @property
    def count(self) -> int:
        return len(self._places)

    def place(self, value: sympy.Expr) -> int:
        """Where the table holds it. Raises KeyError for an expression over something that is no argument."""
        expr = sympy.expand(value)
        for symbol in expr.free_symbols:
            self._names[symbol]
        return self._places.setdefault(expr, len(self._places))

    def specified(self, value: Dim) -> int | tuple[int]:
        """For the executor: the number, or its place in a tuple."""
        return value if isinstance(value, int) else (self.place(value),)

    def text(self, value: Dim, table: str = "t") -> str:
        """In C++."""
        return f"{value}" if isinstance(value, int) else f"{table}[{self.place(value)}]"

    def lines(self) -> list[str]:
        """The statements that fill the table."""
        printer = CppPrinter()
        return [f"t[{at}] = {printer.doprint(expr.xreplace(self._names))};" for expr, at in self._places.items()]
