"""What the connectionist temporal classification loss leaves for its gradient."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from diopi_conformance.values.elements import Array
from diopi_conformance.values.related.registry import related_inputs_for

Values = Mapping[str, Any]


@related_inputs_for("diopiCTCLossBackward")
def spelled(values: Values) -> dict[str, Any]:
    """Normalized `log_probs`, and the logarithms of the forward variables (Graves et al., equations 6 to 8)."""
    drawn = np.asarray(values["log_probs"], dtype=np.float64)
    log_probs = drawn - np.logaddexp.reduce(drawn, axis=-1, keepdims=True)
    alpha = np.full(values["log_alpha"].shape, -np.inf)
    likelihood = np.zeros(len(values["input_lengths"]))
    for n, (steps, target) in enumerate(zip(values["input_lengths"], _targets(values), strict=True)):
        states = [values["blank"]]
        for letter in target:
            states += [letter, values["blank"]]
        _run(alpha[n, :steps], log_probs[:steps, n], states)
        last = alpha[n, steps - 1, max(len(states) - 2, 0) : len(states)]
        likelihood[n] = np.logaddexp.reduce(last)
    return {"log_probs": log_probs, "neg_log_likelihood": -likelihood, "log_alpha": alpha}


def _targets(values: Values) -> list[list[int]]:
    """One list of classes for each sequence; the rows are padded, or all are joined in one."""
    targets, lengths = np.asarray(values["targets"]), np.asarray(values["target_lengths"])
    if targets.ndim == 2:
        return [row[:length].tolist() for row, length in zip(targets, lengths, strict=True)]
    return [part.tolist() for part in np.split(targets[: lengths.sum()], np.cumsum(lengths)[:-1])]


def _run(alpha: Array, log_probs: Array, states: list[int]) -> None:
    """Fills alpha[step, state]: a state is reached from itself, the one before, or past a blank between two letters."""
    alpha[0, :2] = log_probs[0, states[:2]]
    for step in range(1, len(alpha)):
        for s, letter in enumerate(states):
            skips = s >= 2 and letter != states[s - 2]  # of blanks the one before the last is a blank too
            sources = alpha[step - 1, max(s - 2 if skips else s - 1, 0) : s + 1]
            alpha[step, s] = np.logaddexp.reduce(sources) + log_probs[step, letter]
