"""A Chromium without a window and without a network: the document of a page after its scripts have run."""

import html
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def browser() -> str:
    """The browser; a test that finds none is skipped."""
    named = os.environ.get("DIOPI_BROWSER")
    found = named or next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("no Chromium is installed; DIOPI_BROWSER names one")
    return found


def rendered(program: str, address: str, profile: Path) -> str:
    """The document at `address` as HTML."""
    command = [
        program,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--host-resolver-rules=MAP * ~NOTFOUND",
        f"--user-data-dir={profile}",
        "--window-size=1300,900",
        "--virtual-time-budget=10000",
        "--dump-dom",
        address,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout


def probed(program: str, address: str, profile: Path) -> dict[str, Any]:
    """What the page's own script left as JSON in `<output id="probe">`."""
    match = re.search(r'<output id="probe">(.*?)</output>', rendered(program, address, profile), re.DOTALL)
    assert match is not None
    found: dict[str, Any] = json.loads(html.unescape(match[1]))
    return found
