"""How much time is left of work whose units have expected durations."""

from collections.abc import Callable, Iterable, Mapping
from itertools import islice

# So many expected seconds are taken on trust, at full speed, before what is measured weighs as much.
_TRUST = 10.0
_UNKNOWN = 2.0  # seconds of a unit, where nothing is known of any


def weights(units: Iterable[str], known: Callable[[str], float | None]) -> dict[str, float]:
    """The expected seconds of each unit; one that is not known takes what the known ones take on average."""
    found = {unit: known(unit) for unit in units}
    measured = [seconds for seconds in found.values() if seconds is not None]
    mean = sum(measured) / len(measured) if measured else _UNKNOWN
    return {unit: mean if seconds is None else seconds for unit, seconds in found.items()}


class Remaining:
    """The seconds left of builds that run one after another, each with `jobs` units at a time.

    Work is counted in expected seconds. The pace, seconds of the clock for a second of work, follows from the work
    done so far; a machine that is slower than the one that measured, or busy, only changes the pace.
    """

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._later = 0.0  # work of the builds after this one
        self._open: dict[str, float] = {}
        self._work = self._spent = 0.0  # of this build and those before it
        self._earlier = 0.0  # seconds spent on those before it
        self._begun = self._seen = 0.0
        self._share = 1.0

    def begin(self, units: Mapping[str, float], later: float, now: float) -> None:
        """The next build begins: its units in the order in which they begin; `later` is the work of those after it."""
        self._earlier = self._spent
        self._open = dict(units)
        self._later = later
        self._begun = self._seen = now
        self._share = 1.0

    def finish(self, unit: str, count: int, now: float) -> bool:
        """A unit is done, and `count` are left: fewer than planned where ninja found some up to date.

        False for a unit that is not of the plan, e.g. CMake's look for new files, which counts for nothing.
        """
        if unit not in self._open:
            return False
        self._work += self._open.pop(unit)
        self._spent = self._earlier + now - self._begun
        self._seen = now
        self._share = min(1.0, count / len(self._open)) if self._open else 1.0
        return True

    @property
    def units(self) -> int:
        """How many units of this build are left."""
        return len(self._open)

    @property
    def work_done(self) -> float:
        return self._work

    @property
    def work_left(self) -> float:
        return sum(self._open.values()) * self._share + self._later

    def left(self, now: float) -> float:
        """Seconds; it counts down while no unit ends."""
        running = self._running()
        pace = (self._spent + _TRUST / self._jobs) / (self._work + running + _TRUST)
        return max(0.0, pace * (self.work_left - running) - (now - self._seen))

    def _running(self) -> float:
        """The work done, when a unit has ended, on the others that run: half of those that were to begin first."""
        half = sum(seconds / 2 for seconds in islice(self._open.values(), self._jobs - 1))
        return min(half, (self._spent - self._earlier) * self._jobs)


def clock(seconds: float) -> str:
    """Minutes and seconds, e.g. "3:10"; with hours from the first on."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
