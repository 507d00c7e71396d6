"""What tools found, in lines for people."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from op_tools.tool import OpTool
from op_tools.tools.capture import OpCapture
from op_tools.tools.compare import OpAutoCompare
from op_tools.tools.fallback import OpFallback
from op_tools.tools.overflow import OpOverflowCheck
from op_tools.tools.record import OpRecord
from op_tools.tools.timing import OpTimeMeasure

_ROWS = 20
RECORDED = ("compare", "fallback", "capture", "overflow", "time")  # tools whose findings found_by() gives


def summaries(tools: Mapping[str, OpTool]) -> Iterator[str]:
    """Of each tool that has something to say."""
    for tool in tools.values():
        if isinstance(tool, OpAutoCompare):
            yield from _compared(tool)
        elif isinstance(tool, OpCapture):
            yield from _captured(tool)
        elif isinstance(tool, OpRecord):
            yield f"record: {tool.writer.lines} calls in {tool.writer.root}"
            yield from (
                f"  {name}: not recorded, {reason} ({count})" for (name, reason), count in tool.left.most_common(_ROWS)
            )
        elif isinstance(tool, OpFallback):
            yield f"fallback: {sum(tool.calls.values())} calls of {len(tool.calls)} operators ran on the CPU"
            yield from (
                f"  {name}: left on the device, {reason} ({count})"
                for (name, reason), count in tool.left.most_common(_ROWS)
            )
        elif isinstance(tool, OpOverflowCheck):
            yield f"overflow: {len(tool.found)} calls gave infinities or NaN"
        elif isinstance(tool, OpTimeMeasure):
            yield from _timed(tool)


def found_by(tools: Mapping[str, OpTool]) -> dict[str, Any]:
    """What the tools found, by tool, as JSON holds it."""
    record: dict[str, Any] = {}
    for name, tool in tools.items():
        if isinstance(tool, OpAutoCompare):
            wrong = [{**asdict(mismatch), "text": mismatch.text} for mismatch in tool.mismatches]
            record[name] = {"compared": dict(tool.compared), "mismatches": wrong, "left": _counts(tool.skipped)}
        elif isinstance(tool, OpFallback):
            record[name] = {"calls": dict(tool.calls), "left": _counts(tool.left)}
        elif isinstance(tool, OpRecord):
            record[name] = {"calls": tool.writer.lines, "root": str(tool.writer.root)}
        elif isinstance(tool, OpCapture):
            record[name] = {"written": dict(tool.writer.written), "root": str(tool.writer.root)}
        elif isinstance(tool, OpOverflowCheck):
            record[name] = {"found": [asdict(found) for found in tool.found]}
        elif isinstance(tool, OpTimeMeasure):
            record[name] = {"timings": [asdict(timing) for timing in tool.timings()]}
    return record


def _counts(left: Counter[tuple[str, str]]) -> list[tuple[str, str, int]]:
    """By operator and reason."""
    return [(name, reason, count) for (name, reason), count in left.items()]


def _compared(tool: OpAutoCompare) -> Iterator[str]:
    right, wrong = sum(tool.compared.values()), len(tool.mismatches)
    yield f"compare: {right + wrong} calls of {len(tool.compared)} operators, {wrong} wrong"
    by_operator: dict[str, int] = {}
    for mismatch in tool.mismatches:
        by_operator[mismatch.operator] = by_operator.get(mismatch.operator, 0) + 1
    for name, count in sorted(by_operator.items(), key=lambda row: -row[1])[:_ROWS]:
        yield f"  {name}: {count} wrong"
    yield from (
        f"  {name}: not compared, {reason} ({count})" for (name, reason), count in tool.skipped.most_common(_ROWS)
    )


def _captured(tool: OpCapture) -> Iterator[str]:
    writer = tool.writer
    yield f"capture: {sum(writer.written.values())} calls of {len(writer.written)} operators in {writer.root}"
    yield from (f"  {name}: not kept, {reason} ({count})" for (name, reason), count in writer.left.most_common(_ROWS))


def _timed(tool: OpTimeMeasure) -> Iterator[str]:
    timings = tool.timings()
    total, calls = sum(t.total for t in timings), sum(t.calls for t in timings)
    yield f"time: {total:.4g} ms in {calls} calls; those that took most:"
    yield f"  {'operator':44} {'calls':>7} {'total ms':>10} {'p50 ms':>9} {'p95 ms':>9} {'GB/s':>8} {'GFLOP/s':>9}"
    for t in timings[:_ROWS]:
        numbers = f"{t.calls:7} {t.total:10.3f} {t.percentile(0.5):9.4f} {t.percentile(0.95):9.4f}"
        yield f"  {t.operator:44} {numbers} {t.bandwidth / 1e9:8.1f} {t.flop_rate / 1e9:9.1f}"
