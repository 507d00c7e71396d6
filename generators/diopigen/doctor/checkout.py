"""Files of the checkout: generated ones against the schemas, built libraries against the headers, a vendor's SDK."""

from collections.abc import Iterator

from diopigen import pipeline
from diopigen.diagnostics import Diagnostics
from diopigen.doctor.check import Check, State, answer, shown_python
from diopigen.emit.fresh import common_inputs, file_hashes, fingerprint, is_fresh, request_words, vendor_inputs
from diopigen.emit.outputs import CONTRACT_OWNED, VENDOR_TARGETS, contract_outputs
from diopigen.emit.place import contract_place, vendor_place
from diopigen.emit.writer import plan_writes
from diopigen.model.program import Program
from diopigen.project import Project
from diopigen.targets.header import views
from diopigen.targets.output import renderer

_IMPLEMENTATION = "libdiopi_impl.so"
_BACKEND = "libtorch_dipu.so"
_USED_BY_ALL = ("diopirt", "diopi_register")  # headers that every library's record has


def checkout_checks(project: Project, vendor: str | None) -> Iterator[Check]:
    """The checked-in files; then, for one vendor, its headers, its generated files and its libraries."""
    found = Diagnostics()
    program = pipeline.run(project, found)
    if program is None or found.failed:
        count = sum(1 for _ in found.ordered())
        yield _stated("generate", "schemas", State.WRONG, f"{count} findings", "diopigen lint")
        return
    yield _contract(project, program)
    if vendor is None:
        return
    program = pipeline.run(project, found, pipeline.Stage.VENDOR, vendor=vendor, program=program) or program
    yield _sdk(found, vendor)
    built = project.root / "build" / vendor / "lib"
    yield _vendor_files(project, vendor)
    if not (built / _IMPLEMENTATION).is_file():
        yield _unbuilt(vendor, _IMPLEMENTATION)
        return
    yield _library(project, program, vendor)
    if (built / _BACKEND).is_file():
        yield _device(project, vendor)
    else:
        yield _unbuilt(vendor, _BACKEND)


def _stated(target: str, what: str, state: State, found: str, remedy: str, needed: bool = True) -> Check:
    return Check(target=target, what=what, state=state, found=found, wanted="", remedy=remedy, needed=needed)


def _unbuilt(vendor: str, library: str) -> Check:
    return _stated(f"vendor {vendor}", library, State.MISSING, "not built", f"make build IMPL={vendor}", needed=False)


def _contract(project: Project, program: Program) -> Check:
    place = contract_place(project, None)
    owned = tuple(place.path(prefix) for prefix in CONTRACT_OWNED)
    outputs = place.placed(contract_outputs(program, renderer(project.templates)))
    plan = plan_writes(outputs, place.root, place.manifest, owned)
    if not plan.changes:
        return _stated("generate", "headers", State.OK, "up to date", "")
    first = project.shown(plan.changes[0].path)
    more = f" and {len(plan.changes) - 1} more" if len(plan.changes) > 1 else ""
    return _stated("generate", "headers", State.STALE, f"{first}{more}", "diopigen header")


def _vendor_files(project: Project, vendor: str) -> Check:
    """Whether `diopigen all` would have nothing to do."""
    target, remedy = f"vendor {vendor}", f"diopigen all --vendor {vendor}"
    places = (contract_place(project, None), vendor_place(project, None, vendor))
    if not places[1].manifest.is_file():
        return _stated(target, "generated files", State.MISSING, "none", remedy, needed=False)
    words = request_words(True, tuple(VENDOR_TARGETS), vendor, None)
    inputs = common_inputs(project) + vendor_inputs(project, vendor)
    print_ = fingerprint(file_hashes(project.root, inputs), words)
    if is_fresh(places[1].root, print_, [(place.root, place.manifest) for place in places]):
        return _stated(target, "generated files", State.OK, "up to date", "")
    return _stated(target, "generated files", State.STALE, "older than what they are made from", remedy)


def _sdk(findings: Diagnostics, vendor: str) -> Check:
    """Whether the vendor's sources find every header that they include."""
    missing = [finding for finding in findings.ordered() if finding.code == "missing-header"]
    target = f"vendor {vendor}"
    if missing:
        remedy = f"name the SDK's folder under 'include_dirs' of vendors/{vendor}/vendor.yaml"
        return _stated(target, "headers of the SDK", State.MISSING, missing[0].message, remedy)
    return _stated(target, "headers of the SDK", State.OK, "all found", "")


def _library(project: Project, program: Program, vendor: str) -> Check:
    """Whether the built library was compiled against the headers of today: its ABI record holds their hashes."""
    content = (project.root / "build" / vendor / "lib" / _IMPLEMENTATION).read_bytes()
    planned = {plan.symbol for plan in program.plans}
    used = {*_USED_BY_ALL, *(f.header for f in program.functions if f.symbol in planned)}
    hashes = {name: int(view.hash.removesuffix("ULL"), 16) for name, view in views(program) if name in used}
    stale = [f"{name}.h" for name, value in hashes.items() if value.to_bytes(8, "little") not in content]
    target = f"vendor {vendor}"
    if stale:
        found = f"built against another {', '.join(stale)}"
        return _stated(target, _IMPLEMENTATION, State.STALE, found, f"make build IMPL={vendor}")
    return _stated(target, _IMPLEMENTATION, State.OK, "built against the headers of today", "")


def _device(project: Project, vendor: str) -> Check:
    """Whether PyTorch starts the device; what it says if not."""
    program = "import torch; print(torch.ones(2, device='dipu').cpu().sum().item())"
    environment = {"DIPU_VENDOR": vendor, "TORCH_DEVICE_BACKEND_AUTOLOAD": "1"}
    python = str(project.root / shown_python(project.root))
    status, text = answer(python, "-c", program, environment=environment)
    target, lines = f"vendor {vendor}", [line.strip() for line in text.splitlines() if line.strip()]
    if status == 0 and lines and lines[-1] == "2.0":
        return _stated(target, "device dipu", State.OK, "starts", "")
    told = next(
        (line for line in lines if "the device dipu is not available" in line), (lines or ["it says nothing"])[-1]
    )
    return _stated(
        target, "device dipu", State.WRONG, told.partition("RuntimeWarning: ")[2] or told, f"make build IMPL={vendor}"
    )
