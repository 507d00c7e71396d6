"""Every page of a site in a browser at several widths of the screen, from a server on this machine.

The server asks the browser to report what a page wants of other machines; there is no network in which it gets it.
"""

import json
import subprocess
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.e2e.browser import browser

DRIVER = "/driver-of-the-test.html"
RESULT = "/result-of-the-test"
REPORTS = "/reports-of-the-browser"
_INDEX = '{"config": {"lang": ["en"], "pipeline": [], "separator": " "}, "docs": []}'
_HERE = "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:"
# A table or picture that ends behind the edge of what cuts it off, where nothing lets it scroll, cannot be read.
PROGRAM = """<!DOCTYPE html><meta charset="utf-8"><link rel="icon" href="data:,"><body style="margin: 0"><script>
const [pages, widths] = PLAN;
const pause = (time) => new Promise((done) => setTimeout(done, time));

function cut(element, root, view) {
  const end = element.getBoundingClientRect().right;
  for (let box = element.parentElement; box; box = box.parentElement) {
    const { overflowX } = view.getComputedStyle(box);
    if (box !== root && (overflowX === "auto" || overflowX === "scroll")) return false;
    if ((box === root || overflowX !== "visible") && end > box.getBoundingClientRect().right + 1) return true;
  }
  return false;
}

const words = (element) => `${element.localName} ${element.textContent.trim().replace(/\\s+/g, " ").slice(0, 60)}`;

async function seen(page, frame) {
  await new Promise((loaded) => { frame.onload = loaded; frame.src = page; });
  const view = frame.contentWindow, root = view.document.documentElement;
  const faults = [], still = view.document.createElement("style");
  still.textContent = "* { transition: none !important; animation: none !important; }";
  root.append(still);
  for (const width of widths) {
    frame.style.width = `${width}px`;
    await pause(PAUSE);
    if (view.innerWidth !== width) faults.push([width, `the screen is ${view.innerWidth} wide`]);
    if (root.scrollWidth > root.clientWidth) faults.push([width, `the page is ${root.scrollWidth} wide`]);
    const parts = [...view.document.querySelectorAll("table, pre, img, svg.chart, math")];
    faults.push(...parts.filter((part) => cut(part, root, view)).map((part) => [width, words(part)]));
  }
  const broken = [...view.document.images].filter((image) => !image.naturalWidth).map((image) => image.src);
  return {
    faults: [...faults, ...broken.map((image) => [0, image])],
    anchors: [...view.document.querySelectorAll("[id], a[name]")].map((element) => element.id || element.name),
    links: [...view.document.querySelectorAll("a[href]")].map((link) => link.href),
  };
}

const found = {};
const work = async () => {
  const frame = document.createElement("iframe");
  frame.style.cssText = "border: 0; height: 900px; display: block";
  document.body.append(frame);
  while (pages.length) {
    const page = pages.pop();
    found[page] = await seen(page, frame);
  }
};
Promise.all([work(), work(), work()]).then(() => fetch("RESULT", { method: "POST", body: JSON.stringify(found) }));
</script>"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the browser saw, and what it asked for."""

    pages: dict[str, dict[str, Any]]  # e.g. {"/index.html": {"faults": [[390, "table..."]], "links": [...], ...}}
    missing: list[str]  # what the server does not have, e.g. "/assets/gone.css"
    outside: list[str]  # what a page wanted of other machines, e.g. "https://fonts.invalid/serif.woff"


@dataclass(slots=True)
class _Requests:
    driver: str
    missing: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)
    result: dict[str, Any] | None = None
    done: threading.Event = field(default_factory=threading.Event)


class _Handler(SimpleHTTPRequestHandler):
    def __init__(self, *words: Any, requests: _Requests, **extra: Any) -> None:
        self.requests = requests
        super().__init__(*words, **extra)

    def do_GET(self) -> None:
        if self.path == DRIVER:
            self._answer(self.requests.driver)
        elif self.path.startswith("/search/search_index."):
            self._answer(_INDEX)  # each page would make an index of all
        else:
            super().do_GET()

    def do_POST(self) -> None:
        sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self._answer("")
        if self.path == REPORTS:
            self.requests.outside.append(sent["csp-report"]["blocked-uri"])
        else:
            self.requests.result = sent
            self.requests.done.set()

    def end_headers(self) -> None:
        self.send_header("Content-Security-Policy-Report-Only", f"{_HERE}; report-uri {REPORTS}")
        super().end_headers()

    def _answer(self, text: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(text.encode())

    def log_error(self, format: str, *words: Any) -> None:
        if words and words[0] == 404:
            self.requests.missing.append(self.path)

    def log_message(self, format: str, *words: Any) -> None: ...


def seen(root: Path, pages: Sequence[str], widths: Sequence[int], profile: Path, seconds: float) -> Seen:
    """Opens each of `pages`, e.g. "/index.html", of the site at `root`; the browser keeps its files in `profile`."""
    plan = json.dumps([list(pages), list(widths)])
    driver = PROGRAM.replace("PLAN", plan).replace("RESULT", RESULT).replace("PAUSE", "60")
    requests = _Requests(driver)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, requests=requests, directory=str(root)))
    address = f"http://127.0.0.1:{server.server_port}"
    command = [
        browser(),
        "--headless",
        "--no-sandbox",
        "--no-first-run",
        "--disable-gpu",
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
        "--remote-debugging-port=0",  # it stays until it is ended
        f"--user-data-dir={profile}",
        "--window-size=1600,2800",
        f"{address}{DRIVER}",
    ]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    started = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        assert requests.done.wait(seconds) and requests.result is not None, f"no answer in {seconds} seconds"
    finally:
        started.terminate()
        started.wait(30)
        server.shutdown()
        server.server_close()
    return Seen(pages=requests.result, missing=requests.missing, outside=requests.outside)
