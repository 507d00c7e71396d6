"""The hand-written pages of docs/, with links that leave the folder turned into what the site has."""

import posixpath
import re
from collections.abc import Iterator

from diopigen.targets.docs.paths import relative, source_page
from diopigen.targets.docs.site import Site

INDEX = "index.md"

_LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]+)\]\((?P<target>[^)\s]+)\)")
_FENCE = re.compile(r"^(```|~~~).*?^\1[ \t]*$", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"^# (?P<title>.+)$", re.MULTILINE)


def guide(name: str, site: Site) -> str:
    """The text of docs/`name` for the site."""
    pieces, at = [], 0
    text = site.guides[name]
    for fence in _FENCE.finditer(text):
        pieces += [_linked(text[at : fence.start()], name, site), fence[0]]
        at = fence.end()
    return "".join([*pieces, _linked(text[at:], name, site)])


def _linked(text: str, name: str, site: Site) -> str:
    def link(match: re.Match[str]) -> str:
        path, _, anchor = match["target"].partition("#")
        target = posixpath.normpath(posixpath.join("docs", posixpath.dirname(name), path))
        if "://" in match["target"] or target.removeprefix("docs/") in site.guides or not path:
            return match[0]
        if target in site.sources:
            return f"[{match['text']}]({relative(name, source_page(target), anchor)})"
        said = match["text"].strip("`")
        return f"`{target}`" if said in (target, posixpath.basename(target)) else f"{match['text']} (`{target}`)"

    return _LINK.sub(link, text)


def title(text: str, name: str) -> str:
    """The first heading of a page."""
    match = _HEADING.search(text)
    return name.removesuffix(".md") if match is None else match["title"]


def guide_order(site: Site) -> Iterator[str]:
    """Every guide but the first page: in the order that the first page links them, then the others by name."""
    linked = (match["target"].partition("#")[0] for match in _LINK.finditer(site.guides.get(INDEX, "")))
    named = [name for name in dict.fromkeys(linked) if name in site.guides]
    rest = [name for name in sorted(site.guides) if name not in named]
    yield from (name for name in (*named, *rest) if name != INDEX)
