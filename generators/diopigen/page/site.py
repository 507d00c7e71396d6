"""Where a report finds the documentation site, which it links without needing it."""

import os
import sys
from pathlib import Path
from urllib.parse import quote

VARIABLE = "DIOPI_SITE"  # the address or folder of a site; default: that of this checkout
_BUILT = Path(__file__).resolve().parents[3] / "build" / "site"


def site_link(report: Path, page: str) -> str:
    """The address of a page of the site, e.g. "../build/site/op-tools.html", for the report at `report`; "" for none.

    Standard error says so where DIOPI_SITE names a folder without that page.
    """
    named = os.environ.get(VARIABLE, "")
    if "://" in named:
        return f"{named.rstrip('/')}/{page}"
    if report.exists() and not report.is_file():
        return ""  # a pipe lies nowhere
    target = (Path(named) if named else _BUILT) / page
    if not target.is_file():
        if named:
            print(f"{VARIABLE}: there is no {target}; the report has no link to it", file=sys.stderr)
        return ""
    return quote(Path(os.path.relpath(target.resolve(), report.resolve().parent)).as_posix())
