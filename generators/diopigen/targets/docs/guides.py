"""The hand-written pages, with links between files turned into links between pages of the site.

A command that a page names, e.g. `diopigen lint --vendor droplet`, leads to its description.
"""

import posixpath
import re
from collections.abc import Iterator

from diopigen.targets.docs.paths import guide_page, program_page, relative, source_page
from diopigen.targets.docs.site import Site

INDEX = "docs/index.md"

_LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]+)\]\((?P<target>[^)\s]+)\)")
_CODE = re.compile(rf"{_LINK.pattern}|^#.*$|`(?P<program>[\w-]+) (?P<command>[\w-]+)[^`\n]*`", re.MULTILINE)
_FENCE = re.compile(r"^(```|~~~).*?^\1[ \t]*$", re.DOTALL | re.MULTILINE)
_SECTION = re.compile(r"^## ", re.MULTILINE)
_HEADING = re.compile(r"^# (?P<title>.+)$", re.MULTILINE)


def guide(path: str, site: Site) -> str:
    """The text of the guide `path` for the site."""
    pieces, at = [], 0
    text = site.guides[path]
    for fence in _FENCE.finditer(text):
        pieces += [_linked(text[at : fence.start()], path, site), fence[0]]
        at = fence.end()
    return "".join([*pieces, _linked(text[at:], path, site)])


def _with_commands(text: str, page: str, site: Site) -> str:
    """Links and headings stay as they are."""
    described = {command.name for program in site.programs for _, found in program.sections for command in found}

    def link(match: re.Match[str]) -> str:
        name = f"{match['program']} {match['command']}"
        if name not in described:
            return match[0]
        return f"[{match[0]}]({relative(page, program_page(match['program']), name.replace(' ', '-'))})"

    return _CODE.sub(link, text)


def _linked(text: str, path: str, site: Site) -> str:
    page = guide_page(path)

    def link(match: re.Match[str]) -> str:
        file, _, anchor = match["target"].partition("#")
        if "://" in match["target"] or not file:
            return match[0]
        target = _target(path, file)
        if target in site.guides:
            return f"[{match['text']}]({relative(page, guide_page(target), anchor)})"
        if target in site.sources:
            return f"[{match['text']}]({relative(page, source_page(target), anchor)})"
        said = match["text"].strip("`")
        return f"`{target}`" if said in (target, posixpath.basename(target)) else f"{match['text']} (`{target}`)"

    return _with_commands(_LINK.sub(link, text), page, site)


def _target(path: str, link: str) -> str:
    """The file that a link of `path` leads to, from the project's root."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), link))


def title(text: str, path: str) -> str:
    """The first heading of a page."""
    match = _HEADING.search(text)
    return posixpath.basename(path).removesuffix(".md") if match is None else match["title"]


def guide_groups(site: Site) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Every guide but the first page, under the headings of its links there; those without a link last, by name."""
    placed = {INDEX}
    for section in _SECTION.split(site.guides.get(INDEX, ""))[1:]:
        heading, _, body = section.partition("\n")
        linked = (_target(INDEX, match["target"].partition("#")[0]) for match in _LINK.finditer(body))
        paths = tuple(path for path in dict.fromkeys(linked) if path in site.guides and path not in placed)
        placed.update(paths)
        if paths:
            yield heading.strip(), paths
    rest = tuple(path for path in sorted(site.guides) if path not in placed)
    if rest:
        yield "More", rest
