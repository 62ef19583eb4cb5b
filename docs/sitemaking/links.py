"""Whether all links of a built site lead somewhere, and nothing of it is fetched from elsewhere."""

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit


class Page(HTMLParser):
    """The links, anchors and resources of a page; links of its text apart from those of its frame."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.text_links: list[str] = []
        self.resources: list[str] = []
        self._depth = 0  # within <article>
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a tag names, links to or loads."""
        given = {name: value or "" for name, value in attrs}
        if "id" in given:
            self.anchors.add(given["id"])
        self._depth += tag == "article"
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
            if self._depth:
                self.text_links.append(given["href"])
        elif tag in ("script", "img", "iframe", "source") and "src" in given:
            self.resources.append(given["src"])
        elif tag == "link" and given.get("rel") in ("stylesheet", "icon", "preload", "preconnect"):
            self.resources.append(given.get("href", ""))

    def handle_endtag(self, tag: str) -> None:
        """Leave an article."""
        self._depth -= tag == "article"


def read_site(site: Path) -> dict[str, Page]:
    """All pages by their path."""
    return {str(path.relative_to(site)): Page(path) for path in sorted(site.rglob("*.html"))}


def resolved(page: str, link: str) -> tuple[str, str] | None:
    """The path and the anchor of a link within the site, or None if it leaves it."""
    address, anchor = urldefrag(link)
    if urlsplit(address).scheme or address.startswith("//"):
        return None
    address = address.partition("?")[0]  # a version, which browsers keep copies by
    parts = list(Path(page).parent.parts)
    for part in unquote(address).split("/") if address else ():
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return ("/".join(parts) if address else page), unquote(anchor)


def faults(site: Path) -> Iterator[str]:
    """A sentence for each link that leads nowhere, and each resource that is not part of the site."""
    pages = read_site(site)
    for name, page in pages.items():
        for link in dict.fromkeys(page.links):
            found = resolved(name, link)
            if found is None:
                continue
            path, anchor = found
            if not (site / path).exists():
                yield f"{name} links to {link}, which is not there"
            elif anchor and path in pages and anchor not in pages[path].anchors:
                yield f"{name} links to {link}, and there is no such place on that page"
        for resource in page.resources:
            found = resolved(name, resource)
            if found is None and not resource.startswith("data:"):
                yield f"{name} loads {resource} from elsewhere"
            elif found is not None and not (site / found[0]).exists():
                yield f"{name} loads {resource}, which is not there"


def clicks(site: Path, start: str = "index.html") -> dict[str, int]:
    """How many clicks each page is away, by the links in the text of pages alone."""
    pages, away, edge = read_site(site), {start: 0}, [start]
    for name in edge:
        for link in pages[name].text_links:
            found = resolved(name, link)
            if found is not None and found[0] in pages and found[0] not in away:
                away[found[0]] = away[name] + 1
                edge.append(found[0])
    return away
