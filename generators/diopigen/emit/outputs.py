"""What is written where: the targets, the folders that each is in charge of, and the texts kept between runs."""

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from diopigen.diagnostics import Diagnostics
from diopigen.kept import KeptTexts, kept_texts
from diopigen.model.program import Program
from diopigen.project import Project
from diopigen.targets import aten, editor, header
from diopigen.targets.output import OF_ENTRIES, Output, Part, Render, made
from diopigen.targets.sources import sources, wrapper_sources
from diopigen.vocabulary.codec import vocabulary_text

Known = Callable[[Output | Part], Output]  # makes an output, or finds its text among those that earlier runs kept

CONTRACT_OWNED = ("include/", *editor.FILES, "vocabulary.json")
WRAPPERS_OWNED = ("aten/", "sources.cmake")

# The targets that write for one vendor, in order, with the path prefixes that each is in charge of. A target is the
# package of that name in targets/, loaded when it is asked for.
VENDOR_TARGETS: dict[str, tuple[str, ...]] = {
    "adaptor": ("adaptor/", "declarations/", "include/"),
    "kernels": ("kernels/",),
    "calls": ("calls/",),
    "composites": ("composites/",),
    "compiler": ("compiler/",),
    "conformance": ("conformance/",),
    "torch_operators": ("torch/",),
}


def contract_outputs(program: Program, render: Render, known: Known = made) -> list[Output]:
    """The headers, the editors' schema and the vocabulary: what is checked in."""
    nothing = program.part(())
    editors = [known(Part(name, nothing, partial(_editor_schema, name))) for name in editor.FILES]
    vocabulary = Output(path="vocabulary.json", text=vocabulary_text(program.dtypes))
    return [*map(known, header.outputs(program, render)), *editors, vocabulary]


def _editor_schema(name: str, _: Program) -> str:
    from pydantic import BaseModel

    from diopigen.records.known_failures import KnownFailures
    from diopigen.source.schema.pattern_surface import PatternFile
    from diopigen.source.schema.surface import OpFile
    from diopigen.source.vendor.surface import FUNCTIONS, ConversionSurface, ListedSurface, VendorSurface

    models: dict[str, type[BaseModel]] = {
        "op": OpFile,
        "patterns": PatternFile,
        "vendor": VendorSurface,
        "known_failures": KnownFailures,
    }
    model = models.get(name.partition(".")[0])
    if model is not None:
        return editor.editor_schema(name, model.model_json_schema())
    listed, body = ListedSurface.model_json_schema(), ConversionSurface.model_json_schema()
    return editor.editor_schema(name, editor.conversions_schema(listed, body, FUNCTIONS))


def wrapper_outputs(program: Program, render: Render, known: Known) -> list[Output]:
    """The wrappers of the installed torch's operators, with the list of what is compiled."""
    program = program.frame()
    outputs = list(map(known, aten.outputs(program, render)))
    return [*outputs, wrapper_sources(program, outputs, render)]


def vendor_outputs(program: Program, render: Render, known: Known, targets: tuple[str, ...]) -> list[Output]:
    """The files of one vendor for the named targets; the list of sources only where all targets ran."""
    own = tuple(header.own_output(program, render)) if "adaptor" in targets else ()  # which tells docs
    bare, program = program.bare(), program.frame()
    modules = ((name, importlib.import_module(f"diopigen.targets.{name}")) for name in targets)
    made_of = ((module, bare if name in OF_ENTRIES else program) for name, module in modules)
    outputs = [*map(known, own), *(known(output) for module, of in made_of for output in module.outputs(of, render))]
    return [*outputs, sources(program, outputs, render)] if _is_complete(targets) else outputs


@contextmanager
def known_outputs(what: str, program: Program, project: Project, diagnostics: Diagnostics) -> Iterator[Known]:
    """`what` names the file of the texts."""
    templates = sorted(project.templates.rglob("*.j2"))
    texts = [(path.relative_to(project.templates).as_posix(), path.read_bytes()) for path in templates]
    ground = KeptTexts.key(program.dtypes, program.runtime, program.vendor, texts)

    def known(output: Output | Part) -> Output:
        if isinstance(output, Output):
            return output
        key = KeptTexts.key(ground, output.path, output.program.said)
        text = texts_of.found(key)
        if text is None:
            text = output.text
            texts_of.keep(key, text)
        return Output(path=output.path, text=text)

    path = project.cache / f"{what}.kept"
    with kept_texts(path, project.shown(path), diagnostics) as texts_of:
        yield known


def vendor_owned(targets: tuple[str, ...]) -> tuple[str, ...]:
    """The path prefixes that the named targets are in charge of."""
    owned = tuple(prefix for name in targets for prefix in VENDOR_TARGETS[name])
    return (*owned, "sources.cmake") if _is_complete(targets) else owned


def _is_complete(targets: tuple[str, ...]) -> bool:
    return set(targets) == set(VENDOR_TARGETS)
