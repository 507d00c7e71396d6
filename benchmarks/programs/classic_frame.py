"""The tests of the classic way: each reads its case's file, calls the function, and compares each output."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from diopi_conformance.process.call import LibraryCall
from diopi_conformance.process.leaks import LeakSanitizer
from diopi_conformance.process.library import Library
from diopi_conformance.values.elements import decode, storage_dtype

_FOLDER = Path(os.environ["CLASSIC_LIBRARIES"])
LIBRARY = Library(_FOLDER / "libdiopirt.so", _FOLDER / "libdiopi_impl.so")
LEAKS = LeakSanitizer()
CONTEXT = LIBRARY.created("standalone_context_create")


def judge(number):
    with np.load(f"{number}.npz", allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    head = json.loads(arrays["head"].tobytes())
    before = [arrays[f"before{i}"].tobytes() for i in range(len(head["tensors"]))]
    call = LibraryCall(LIBRARY, LEAKS, CONTEXT, head["request"], before)
    try:
        found, after = call.run()
    finally:
        call.close()
    if found["outcome"] == "missing" or found["status"] in (13, 1000):
        pytest.skip("the library lacks it")
    assert found["status"] == 0
    for index, tensor in enumerate(head["tensors"]):
        if f"expected{index}" in arrays:
            words = np.frombuffer(after[index], storage_dtype(tensor["dtype"]))
            actual = decode(words[arrays[f"positions{index}"]], tensor["dtype"])
            assert np.allclose(actual, arrays[f"expected{index}"], 1e-3, 1e-3, equal_nan=True)
