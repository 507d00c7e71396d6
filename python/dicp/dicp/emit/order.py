"""The statements that put instructions on streams and let these wait for each other."""

from dicp.program import Schedule


class Order:
    """What stands before and after each instruction; nothing where there is one stream."""

    def __init__(self, schedule: Schedule | None) -> None:
        self._schedule, self._now = schedule, 0
        waited = () if schedule is None else schedule.waits
        self._events = {at: event for event, at in enumerate(sorted({at for waits in waited for at in waits}))}

    @property
    def streams(self) -> int:
        return 1 if self._schedule is None else max(self._schedule.streams) + 1

    @property
    def events(self) -> int:
        return len(self._events)

    def before(self, instruction: int) -> str:
        if self._schedule is None:
            return ""
        stream, text = self._schedule.streams[instruction], ""
        if stream != self._now:
            self._now = stream
            text += _checked(f"enter(run->executor, {stream}, &ctx, &stream)")
        waits = self._schedule.waits[instruction]
        return text + "".join(_checked(f"wait(run->executor, {self._events[at]})") for at in waits)

    def after(self, instruction: int) -> str:
        event = self._events.get(instruction)
        return "" if event is None else _checked(f"mark(run->executor, {event})")


def _checked(call: str) -> str:
    return f"    status = run->{call};\n    if (status != diopiSuccess) return status;\n"
