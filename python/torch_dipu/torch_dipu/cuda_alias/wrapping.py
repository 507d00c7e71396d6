"""Functions and classes that take ``cuda`` for ``dipu`` and are otherwise those that they stand for."""

import functools
from collections.abc import Callable
from typing import Any

from torch_dipu.cuda_alias.names import dipu_name

Function = Callable[..., Any]


def keyword_translated(function: Function) -> Function:
    """For functions that take a device by the keyword alone, which is cheap to look at."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if "device" in kwargs:
            kwargs["device"] = dipu_name(kwargs["device"])
        return function(*args, **kwargs)

    return call


def translated(function: Function) -> Function:
    """For functions that take a device anywhere."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*map(dipu_name, args), **{name: dipu_name(value) for name, value in kwargs.items()})

    return call


def with_first(function: Function, name: str, first: str, place: int = 1) -> Function:
    """`translated`, with the argument `name` `first` where none is given; `place` is its position, self included."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if len(args) <= place and name not in kwargs:
            kwargs[name] = first
        return function(*map(dipu_name, args), **{key: dipu_name(value) for key, value in kwargs.items()})

    return call


@functools.cache
def aliased_class(original: type) -> type:
    """A class whose calls make objects of `original`, all of which are its instances; it may be derived from.

    The two classes are equal, so that sets and tables of types find either.
    """
    kind = type(original)

    def call(cls: type, *args: Any, **kwargs: Any) -> Any:
        translated_args = tuple(map(dipu_name, args))
        translated_kwargs = {name: dipu_name(value) for name, value in kwargs.items()}
        if cls is alias:
            return original(*translated_args, **translated_kwargs)
        return kind.__call__(cls, *translated_args, **translated_kwargs)

    def instance(cls: type, value: object) -> bool:
        return isinstance(value, original) if cls is alias else kind.__instancecheck__(cls, value)

    def subclass(cls: type, other: type) -> bool:
        return issubclass(other, original) if cls is alias else kind.__subclasscheck__(cls, other)

    def equal(cls: type, other: object) -> bool:
        return other is cls or (cls is alias and other is original)

    methods = {
        "__call__": call,
        "__instancecheck__": instance,
        "__subclasscheck__": subclass,
        "__eq__": equal,
        "__hash__": lambda cls: hash(original) if cls is alias else kind.__hash__(cls),
    }
    metaclass = type(f"{original.__name__}Alias", (kind,), methods)
    # Pickles name the class by where it is found.
    names = {"__module__": original.__module__, "__qualname__": original.__qualname__, "__doc__": original.__doc__}
    alias: type = metaclass(original.__name__, (original,) if _derivable(original) else (), names)
    return alias


def _derivable(original: type) -> bool:
    py_tpflags_basetype = 1 << 10
    return bool(original.__flags__ & py_tpflags_basetype)
