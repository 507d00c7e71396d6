"""Captures a training step of every model in every way, into the suite's own data.

    python conformance/zoo/rebuild.py [--model GLOB] [--out FOLDER]

It needs `pip install -e .[models]` and no network: models are built from configurations, with random weights.
"""

import argparse
import sys
from fnmatch import fnmatchcase
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import torch
from language import LANGUAGE
from own import OWN
from recipe import Recipe
from sizes import size_of
from speech import SPEECH
from training import train, way_of
from vision import VISION

from diopi_conformance.capture.context import CaptureContext, setting
from diopi_conformance.capture.session import Session, Tally
from diopi_conformance.capture.store import Store
from diopi_conformance.capture.summary import summary
from diopi_conformance.cases.model_cases import DATA

_VARIANTS = 1  # configurations of each model
# New models go to the end: a model's place decides its size.
ZOO = (*LANGUAGE, *VISION, *SPEECH, *OWN)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="*", help="only models whose name this pattern fits")
    parser.add_argument("--out", type=Path, default=DATA, help="the data folder")
    parser.add_argument("--plan", type=Path, required=True, help="a plan.json, whose references try every case")
    options = parser.parse_args()
    torch.set_num_threads(1)
    store, here = Store(options.out), setting(options.plan)
    totals = Tally()
    for place, recipe in enumerate(ZOO):
        if fnmatchcase(recipe.name, options.model):
            session = _captured(recipe, place, here)
            found = here.sound(session.cases.values())
            print(f"{recipe.name}: {len(session.cases)} calls, {store.add(recipe.name, found)} of them new", flush=True)
            totals.add(session.tally)
    store.write()
    print(summary(totals, here.refused))
    print(f"{len(store)} cases in {options.out}")


def _captured(recipe: Recipe, place: int, here: CaptureContext) -> Session:
    session = Session(here.program)
    for variant in range(_VARIANTS):
        way = way_of(place, variant, recipe.images)
        torch.manual_seed(1000 * place + variant)
        model, step = recipe.build(size_of(place, variant))
        # The CPU's fused kernels of recurrent layers would hide what they are made of.
        with torch.backends.mkldnn.flags(enabled=False), session.capturing():
            train(model, step, way)
    return session


if __name__ == "__main__":
    main()
