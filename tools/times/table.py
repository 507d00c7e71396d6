"""The text that `make times` prints: tables of seconds beside those of the run before, 80 columns wide."""

from tools.builds.remaining import clock
from tools.times.records import Build, Run, Seconds, Tests, by_folder

LONGEST = 15  # rows of a table
_NAME = 50  # columns


def text_of_build(name: str, run: Run[Build]) -> str:
    """What one folder's build took: in whole, by unit and by folder."""
    last, before = run.last, run.before
    earlier = None if before is None else before.units
    lines = [f"build of {name}: {_whole(last)}"]
    lines += [] if before is None else [f"before: {_whole(before)}"]
    lines += table("unit", last.units, earlier)
    lines += table("folder", by_folder(last.units), None if earlier is None else by_folder(earlier))
    return "\n".join(lines) + "\n"


def text_of_tests(run: Run[Tests]) -> str:
    """What the tests took: in whole, by folder, by file and by fixture."""
    files, earlier_files = _files(run.last), None if run.before is None else _files(run.before)
    lines = [f"tests: {clock(run.last.wall)}"]
    lines += [] if run.before is None else [f"before: {clock(run.before.wall)}"]
    lines += table("test folder", by_folder(files), None if earlier_files is None else by_folder(earlier_files))
    lines += table("test file", files, earlier_files)
    lines += table("fixture", _fixtures(run.last), None if run.before is None else _fixtures(run.before))
    return "\n".join(lines) + "\n"


def table(title: str, last: Seconds, before: Seconds | None) -> list[str]:
    """The longest of the parts, in seconds; a part that was not measured before has no figure there."""
    lines = ["", f"{title:{_NAME}}{'seconds':>10}{'before':>10}{'change':>10}"]
    for name in sorted(last, key=lambda part: (-last[part], part))[:LONGEST]:
        seconds, earlier = last[name], (before or {}).get(name)
        compared = (
            f"{'-':>10}{'-':>10}" if earlier is None else f"{earlier:10.1f}{round(seconds - earlier, 1) + 0.0:+10.1f}"
        )
        lines.append(f"{shortened(name, _NAME):{_NAME}}{seconds:10.1f}{compared}")
    if len(last) > LONGEST:
        rest = sum(last.values()) - sum(sorted(last.values())[-LONGEST:])
        lines.append(f"{f'{len(last) - LONGEST} others':{_NAME}}{rest:10.1f}")
    return lines


def shortened(name: str, width: int) -> str:
    """The end of a name that is too long, which says more than its beginning."""
    return name if len(name) <= width else f"...{name[3 - width :]}"


def _whole(build: Build) -> str:
    count = len(build.units)
    return f"{clock(build.wall)}, {clock(build.processor)} of processors, {count} unit{'' if count == 1 else 's'}"


def _files(tests: Tests) -> Seconds:
    return {name: wall for name, (wall, _) in tests.files.items()}


def _fixtures(tests: Tests) -> Seconds:
    return {name: wall for name, (wall, _, _) in tests.fixtures.items()}
