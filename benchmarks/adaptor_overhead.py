"""What the adaptor adds to a call with nothing to convert: time and allocations, beside the direct call."""

import json

from figures import Report
from setting import Setting

ABOUT = "a call of three tensors with nothing to convert: through the adaptor, and direct (peer); thread CPU time"


def measure(setting: Setting) -> Report:
    """Runs programs/adaptor_overhead.cpp on tensors of the runtime without a framework."""
    report = Report("adaptor_overhead", ABOUT)
    sources = ("runtime_cpp/adaptor/call.cpp", "runtime_cpp/adaptor/layout.cpp")
    program = setting.program("adaptor_overhead", *sources, with_torch=False)
    first, *lines = setting.output([str(program), str(setting.libraries / "libdiopi_impl.so")]).splitlines()
    found = {line["name"]: report.add(line["name"], "ns", line["ns"]) for line in map(json.loads, lines)}
    for name in ("adaptor, dtype rules", "adaptor, dtype and layout rules"):
        report.compare(f"{name}: above the direct call", found[name].median - found["direct call"].median, "ns")
    report.compare("allocations in 2,000 calls", json.loads(first)["allocations"], "", "0")
    return report
