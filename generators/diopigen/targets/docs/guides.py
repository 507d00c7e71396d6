"""The hand-written pages of docs/, with links that leave the folder turned into what the site has."""

import posixpath
import re
from collections.abc import Iterator

from diopigen.targets.docs.paths import relative, source_page
from diopigen.targets.docs.site import Site

INDEX = "index.md"

_LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]+)\]\((?P<target>[^)\s]+)\)")
_FENCE = re.compile(r"^(```|~~~).*?^\1[ \t]*$", re.DOTALL | re.MULTILINE)
_SECTION = re.compile(r"^## ", re.MULTILINE)
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


def guide_groups(site: Site) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Every guide but the first page, under the headings of its links there; those without a link last, by name."""
    placed = {INDEX}
    for section in _SECTION.split(site.guides.get(INDEX, ""))[1:]:
        heading, _, body = section.partition("\n")
        linked = (match["target"].partition("#")[0] for match in _LINK.finditer(body))
        names = tuple(name for name in dict.fromkeys(linked) if name in site.guides and name not in placed)
        placed.update(names)
        if names:
            yield heading.strip(), names
    rest = tuple(name for name in sorted(site.guides) if name not in placed)
    if rest:
        yield "More", rest
