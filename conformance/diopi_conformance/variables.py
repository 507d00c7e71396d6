"""Variables of the environment that hold for a while: no import and no command leaves any behind."""

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def variables(**values: str) -> Iterator[None]:
    """Sets `values` for this process, and for those that it starts meanwhile."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
