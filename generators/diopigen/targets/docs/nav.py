"""The configuration of the site's builder, and the order of its pages."""

import json
from dataclasses import dataclass

from diopigen.targets.docs.guides import guide_order, title
from diopigen.targets.docs.lists import spoken
from diopigen.targets.docs.paths import operator_page, source_page, topic_page, vendor_page
from diopigen.targets.docs.site import Index, Site


@dataclass(frozen=True, slots=True, kw_only=True)
class NavEntry:
    title: str  # quoted for YAML
    page: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NavTopic:
    title: str
    page: str
    ops: tuple[NavEntry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteView:
    guides: tuple[NavEntry, ...]
    topics: tuple[NavTopic, ...]
    vendors: tuple[NavEntry, ...]
    sources: tuple[NavEntry, ...]


def site_view(site: Site, index: Index) -> SiteView:
    """Every page with its place in the navigation."""
    return SiteView(
        guides=tuple(NavEntry(title=_quoted(title(site.guides[n], n)), page=n) for n in guide_order(site)),
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
