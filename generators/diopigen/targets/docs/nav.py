"""The configuration of the site's builder, and the order of its pages."""

import json
from dataclasses import dataclass

from diopigen.targets.docs.guides import guide_groups, title
from diopigen.targets.docs.lists import spoken
from diopigen.targets.docs.paths import operator_page, source_page, topic_page, vendor_page
from diopigen.targets.docs.site import Index, Site


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
    groups: tuple[NavGroup, ...]
    topics: tuple[NavTopic, ...]
    vendors: tuple[NavEntry, ...]
    sources: tuple[NavEntry, ...]


def site_view(site: Site, index: Index) -> SiteView:
    """Every page with its place in the navigation."""
    return SiteView(
        groups=tuple(
            NavGroup(
                title=_quoted(heading),
                guides=tuple(NavEntry(title=_quoted(title(site.guides[n], n)), page=n) for n in names),
            )
            for heading, names in guide_groups(site)
        ),
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


def _quoted(text: str) -> str:
    """A JSON string is a YAML one."""
    return json.dumps(text, ensure_ascii=False)
