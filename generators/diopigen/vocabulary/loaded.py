"""The vocabulary of this project, for what has no program: the suite, the compiler back end and the op tools."""

import json
from pathlib import Path

from diopigen.vocabulary.codec import dtypes_of

DTYPES = dtypes_of(json.loads(Path(__file__).with_name("vocabulary.json").read_text(encoding="utf-8")))
DTYPE = {dtype.name: dtype for dtype in DTYPES.types}  # e.g. DTYPE["f32"].size
