"""The configuration of the site's builder, and the order of its pages."""

import json
from collections.abc import Iterable
from dataclasses import dataclass

from diopigen.targets.docs.guides import guide_groups, title
from diopigen.targets.docs.lists import spoken
from diopigen.targets.docs.paths import (
    guide_page,
    operator_page,
    program_page,
    source_page,
    topic_page,
    vendor_page,
)
from diopigen.targets.docs.site import Index, Site

REFERENCE = "Reference"  # the heading of the first page under which the generated pages are


@dataclass(frozen=True, slots=True, kw_only=True)
class NavEntry:
    title: str  # quoted for YAML
    page: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NavGroup:
    title: str
    guides: tuple[NavEntry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NavTopic:
    title: str
    page: str
    ops: tuple[NavEntry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteView:
    before: tuple[NavGroup, ...]  # the reference
    reference: tuple[NavEntry, ...]  # its guides
    after: tuple[NavGroup, ...]
    programs: tuple[NavEntry, ...]
    topics: tuple[NavTopic, ...]
    vendors: tuple[NavEntry, ...]
    sources: tuple[NavEntry, ...]


def site_view(site: Site, index: Index) -> SiteView:
    """Every page with its place in the navigation."""
    groups = dict(guide_groups(site))
    names = (described.program.name for described in site.programs)
    titles = list(groups)
    at = titles.index(REFERENCE) if REFERENCE in titles else len(titles)
    return SiteView(
        before=tuple(_group(heading, groups[heading], site) for heading in titles[:at]),
        reference=_guides(groups.get(REFERENCE, ()), site),
        after=tuple(_group(heading, groups[heading], site) for heading in titles[at + 1 :]),
        programs=tuple(NavEntry(title=_quoted(name), page=program_page(name)) for name in names),
        topics=tuple(
            NavTopic(
                title=_quoted(spoken(topic)),
                page=topic_page(topic),
                ops=tuple(NavEntry(title=_quoted(op.name), page=operator_page(topic, op.name)) for op in ops),
            )
            for topic, ops in index.topics.items()
        ),
        vendors=tuple(NavEntry(title=_quoted(c.vendor), page=vendor_page(c.vendor)) for c in site.coverages),
        sources=tuple(NavEntry(title=_quoted(path), page=source_page(path)) for path in site.sources),
    )


def _group(heading: str, paths: Iterable[str], site: Site) -> NavGroup:
    return NavGroup(title=_quoted(heading), guides=_guides(paths, site))


def _guides(paths: Iterable[str], site: Site) -> tuple[NavEntry, ...]:
    return tuple(NavEntry(title=_quoted(title(site.guides[path], path)), page=guide_page(path)) for path in paths)


def _quoted(text: str) -> str:
    """A JSON string is a YAML one."""
    return json.dumps(text, ensure_ascii=False)
