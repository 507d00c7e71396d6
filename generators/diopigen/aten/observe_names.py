"""Run alone, so that torch is imported by no other process: what the names on standard input are, as JSON.

A name that torch lacks is not among them; a function has its parameters, e.g. "(input, *, out=)".
"""

import importlib
import inspect
import json
import sys
from typing import Any


def _object(name: str) -> Any:
    """Raises AttributeError or ImportError where torch has no such name."""
    found: Any = importlib.import_module("torch")
    reached = "torch"
    for part in name.split(".")[1:]:
        reached = f"{reached}.{part}"
        if hasattr(found, part):
            found = getattr(found, part)
        elif inspect.ismodule(found):
            found = importlib.import_module(reached)
        else:
            raise AttributeError(name)
    return found


def _shown(found: Any) -> str:
    if inspect.isclass(found) or inspect.ismodule(found) or not callable(found):
        return type(found).__name__
    try:
        parameters = inspect.signature(found).parameters.values()
    except (TypeError, ValueError):
        return "function"
    words, keyword = [], False
    for each in parameters:
        if each.kind is each.KEYWORD_ONLY and not keyword:
            words.append("*")
        keyword = keyword or each.kind in (each.KEYWORD_ONLY, each.VAR_POSITIONAL)
        stars = "*" if each.kind is each.VAR_POSITIONAL else "**" if each.kind is each.VAR_KEYWORD else ""
        words.append(f"{stars}{each.name}{'' if each.default is each.empty else '='}")
    return f"({', '.join(words)})"


def main() -> None:
    observed = {}
    for name in sys.stdin.read().split():
        try:
            observed[name] = _shown(_object(name))
        except AttributeError:
            continue
        except ImportError as error:
            if error.name is not None and error.name.partition(".")[0] != "torch":
                sys.exit(f"{name} needs the package '{error.name}'")
    json.dump(observed, sys.stdout)


if __name__ == "__main__":
    main()
