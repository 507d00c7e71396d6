"""Numbers in C++: literals, and a table of what follows from the symbols, filled once for each set of their values."""

from collections.abc import Sequence

import sympy
from torch.utils._sympy.printers import CppPrinter

from dicp.program import Dim


class Numbers:
    """Gives each expression over the symbols its place in the table."""

    def __init__(self, symbols: Sequence[sympy.Symbol]) -> None:
        self._names = {
            symbol: sympy.Symbol(f"s[{index}]" if symbol.is_integer else f"fraction(s[{index}])", real=True)
            for index, symbol in enumerate(symbols)
        }
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
        """In C++; what is no integer is there by its bits."""
        if isinstance(value, int):
            return f"{value}"
        entry = f"{table}[{self.place(value)}]"
        return entry if value.is_integer else f"fraction({entry})"

    def lines(self) -> list[str]:
        """The statements that fill the table."""
        return [f"t[{at}] = {self._spelled(expr)};" for expr, at in self._places.items()]

    def _spelled(self, expr: sympy.Expr) -> str:
        # The printer is for code that includes torch's headers; program_arguments.h has what it calls of them.
        names = {symbol: self._names[symbol] for symbol in expr.free_symbols}
        text = str(CppPrinter().doprint(expr.xreplace(names))).replace("c10::", "")
        return text if expr.is_integer else f"bits({text})"
