"""Random values for a case's tensors, the same for the same case on every machine."""

import ast
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from diopi_conformance.values.elements import COMPLEX, Array, is_float
from diopi_conformance.values.views import Sizes


def source(case_id: str, name: str, seed: int) -> np.random.Generator:
    """The random numbers of one tensor of one case; Philox, keyed by their names."""
    digest = hashlib.blake2b(f"{case_id}\0{name}\0{seed}".encode(), digest_size=16).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(digest, "little")))


@dataclass(frozen=True, slots=True)
class Recipe:
    """A call under `data:`; names are already replaced by values."""

    function: str  # e.g. "uniform"
    args: tuple[Any, ...]  # e.g. (0.1, 4); of "columns" the recipes of the columns


def parse_recipe(text: str, values: Mapping[str, Any], sizes: Mapping[str, Sizes]) -> Recipe:
    """e.g. "index(input, dim)"; `values` gives numbers by argument, `sizes` shapes by tensor.

    Raises ValueError where the text is no such call.
    """
    return _recipe(ast.parse(text, mode="eval").body, values, sizes)


def _recipe(tree: ast.expr, values: Mapping[str, Any], sizes: Mapping[str, Sizes]) -> Recipe:
    if not isinstance(tree, ast.Call) or not isinstance(tree.func, ast.Name):
        raise ValueError(f"'{ast.unparse(tree)}' is not a way to draw values")
    return Recipe(tree.func.id, tuple(_operand(arg, values, sizes) for arg in tree.args))


def _operand(node: ast.expr, values: Mapping[str, Any], sizes: Mapping[str, Sizes]) -> Any:
    match node:
        case ast.Call():
            return _recipe(node, values, sizes)
        case ast.Constant(value=value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_operand(operand, values, sizes)
        case ast.Name(id="inf" | "nan" as word):
            return float(word)
        case ast.Name(id=name) if name in sizes:
            return sizes[name]
        case ast.Name(id=name) if name in values:
            return values[name]
        case _:
            raise ValueError(f"'{ast.unparse(node)}' has no value in this case")


def draw(recipe: Recipe | None, sizes: Sizes, dtype: str, rng: np.random.Generator) -> Array:
    """Values of shape `sizes` that `dtype` can hold, not yet rounded to it."""
    values = _default(sizes, dtype, rng) if recipe is None else _drawn(recipe, sizes, dtype, rng)
    return np.asarray(values).reshape(sizes)


def _default(sizes: Sizes, dtype: str, rng: np.random.Generator) -> Array:
    if dtype == "bool":
        return rng.random(sizes) < 0.5
    if is_float(dtype):
        return rng.standard_normal(sizes)
    if dtype in COMPLEX:
        return rng.standard_normal(sizes) + 1j * rng.standard_normal(sizes)
    return rng.integers(0 if dtype.startswith("u") else -10, 11, size=sizes)


def _drawn(recipe: Recipe, sizes: Sizes, dtype: str, rng: np.random.Generator) -> Any:
    match recipe.function, recipe.args:
        case "uniform", (lo, hi):
            drawn = rng.uniform(lo, hi, size=sizes)
            return drawn if is_float(dtype) or dtype in COMPLEX else np.floor(drawn)
        case "normal", (mean, std):
            return rng.normal(mean, std, size=sizes)
        case "integers", (lo, hi):
            return rng.integers(int(lo), int(hi), size=sizes)
        case "index", (shape, dim):
            return rng.integers(0, max(1, _length(shape, dim)), size=sizes)
        case "distinct_index", (shape, dim):
            return _distinct_positions(sizes, _length(shape, dim), int(dim), rng)
        case "distinct_integers", (lo, hi):
            return _distinct_positions(sizes, int(hi) - int(lo), -1, rng) + int(lo)
        case "permutations", (lo,):
            return _permutations(sizes, rng) + int(lo)
        case "mask", (p,):
            return rng.random(sizes) < p
        case "distinct", ():
            return _distinct(sizes, dtype, rng)
        case "probabilities", (dim,):
            weights = np.exp(rng.standard_normal(sizes))
            return weights / weights.sum(axis=int(dim), keepdims=True) if sizes else np.ones(sizes)
        case "positive_definite", ():
            return _positive_definite(sizes, rng)
        case "columns", recipes if recipes and all(isinstance(r, Recipe) for r in recipes) and sizes:
            columns = [_drawn(recipes[i % len(recipes)], sizes[:-1], dtype, rng) for i in range(sizes[-1])]
            return np.stack([np.reshape(column, sizes[:-1]) for column in columns], axis=-1)
        case "boxes", ():
            return _boxes(sizes, rng)
        case "distances", ():
            return _distances(sizes, rng)
        case "zeros", ():
            return np.zeros(sizes)
        case "values", choices if choices:
            return rng.choice(np.asarray(choices), size=sizes)
        case "listed", numbers if numbers:
            return np.resize(np.asarray(numbers), sizes)
        case function, args:
            raise ValueError(f"there is not a way to draw values by '{function}' of {len(args)} arguments")


def _positive_definite(sizes: Sizes, rng: np.random.Generator) -> Array:
    """Symmetric matrices in the last two dimensions; the identity keeps them far from singular."""
    factor = rng.standard_normal(sizes)
    return factor @ np.swapaxes(factor, -1, -2) / max(1, sizes[-1]) + np.eye(sizes[-1])


def _boxes(sizes: Sizes, rng: np.random.Generator) -> Array:
    """Rows of two corners, the lower first, that overlap now and then."""
    corner = rng.uniform(0, 10, size=(*sizes[:-1], 2))
    return np.concatenate([corner, corner + rng.uniform(1, 6, size=corner.shape)], axis=-1)


def _distances(sizes: Sizes, rng: np.random.Generator) -> Array:
    """The distances between points of space, in the last two dimensions."""
    points = rng.uniform(0, 4, size=(*sizes[:-1], 3))
    return np.asarray(np.linalg.norm(points[..., :, None, :] - points[..., None, :, :], axis=-1))


def _permutations(sizes: Sizes, rng: np.random.Generator) -> Array:
    """For each place along the last dimension another order of 0 to n - 1 over all others."""
    lines = rng.random((prod(sizes[:-1]), sizes[-1]))
    return np.argsort(lines, axis=0).reshape(sizes)


def _length(shape: Sizes, dim: int) -> int:
    return shape[int(dim)] if shape else 1


def _distinct(sizes: Sizes, dtype: str, rng: np.random.Generator) -> Array:
    count = prod(sizes)
    order = rng.permutation(count)
    if is_float(dtype):
        return (order - count // 2) / 8  # eighths are exact in half and bfloat16 up to their precision
    return order if dtype.startswith("u") else order - count // 2


def _distinct_positions(sizes: Sizes, length: int, dim: int, rng: np.random.Generator) -> Array:
    """Positions below `length`, none twice along `dim`."""
    if not sizes:
        return np.zeros(sizes, dtype=np.int64)
    lines = list(sizes)
    lines[dim] = length
    return np.argsort(rng.random(lines), axis=dim).take(range(sizes[dim]), axis=dim)
