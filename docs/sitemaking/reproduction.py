"""docs/reproduction.md, which holds all that was measured, as a page for each paper; and the gallery."""

import inspect
import re
from pathlib import Path
from types import ModuleType

from dpbandits.experiments import FIGURES, PAPERS
from dpbandits.experiments.documentation import sections

Pages = dict[str, str]  # texts by path
_PAPER_OF = {figure.name: paper for paper in PAPERS for figure in paper.FIGURES}


def page_of(paper: ModuleType) -> str:
    """What the page of a paper is called."""
    return paper.__name__.rsplit(".", 1)[1].replace("_", "-")


def place_of_section(anchor: str) -> str:
    """Where a section of docs/reproduction.md is on the site, by the anchor of its heading there."""
    names = [name for name in _PAPER_OF if anchor.startswith(f"#{name}-")]
    return (
        f"reproduction/{page_of(_PAPER_OF[max(names, key=len)])}.md#{max(names, key=len)}"
        if names
        else ""
    )


def reproduction_pages(whole: str) -> Pages:
    """The index and the pages, under `reproduction/`."""
    parts: dict[str, list[str]] = {}
    titles: dict[str, str] = {}
    page, there = "", sections(whole)
    for name, text in there.items():
        if name in _PAPER_OF:  # what is no figure, such as the tails, belongs to the one before it
            page = page_of(_PAPER_OF[name])
            titles[page] = _title(_PAPER_OF[name])
        parts.setdefault(page, []).append(_anchored(name, text))
    for name, paper in _PAPER_OF.items():
        if name not in there:
            titles.setdefault(page_of(paper), _title(paper))
            parts.setdefault(page_of(paper), []).append(_anchored(name, _unmeasured(name)))
    head = whole[: whole.index("\n## ")]
    listed = "".join(
        f"- [{titles[page]}]({page}.md): {', '.join(_links(page, texts))}\n"
        for page, texts in parts.items()
    )
    pages = {"reproduction/index.md": f"{head}\n{listed}\n{_toctree(parts)}"}
    for page, texts in parts.items():
        pages[f"reproduction/{page}.md"] = f"# {titles[page]}\n{''.join(texts)}"
    return pages


def gallery_page(pages: Pages, tutorials: dict[str, str]) -> str:
    """Every figure of a paper and every picture of a tutorial, each a link to where it is explained."""
    drawn = [
        (f"figures/{name}.png", f"{path}#{name}", f"{name}: {FIGURES[name].title}")
        for path, text in pages.items()
        for name in re.findall(r"^\(([\w-]+)\)=$", text, re.MULTILINE)
        if f"figures/{name}.png" in text
    ]
    for path, text in tutorials.items():
        title = re.findall(r"^# (.*)", text)[0]
        for about, picture in re.findall(r"!\[([^]]+)\]\(([\w.-]+\.(?:png|svg))\)", text):
            drawn.append((f"{Path(path).parent}/{picture}", path, f"{title}: {about}"))
    cells = "".join(
        f"\n:::{{figure}} {picture}\n:target: {_html(target)}\n:alt: {_plain(about)}\n\n{about}\n:::\n"
        for picture, target, about in drawn
    )
    head = "# Gallery\n\nEach picture leads to the page that explains it.\n\n"
    return f"{head}::::{{container}} gallery\n{cells}::::\n"


def _title(paper: ModuleType) -> str:
    return inspect.cleandoc(paper.__doc__ or "").split("\n")[0].rstrip(".")


def _unmeasured(name: str) -> str:
    """The section of a figure that can be made, and is not part of docs/reproduction.md."""
    said = f"Not measured here yet: `dpbandits reproduce {name}` does."
    return f"\n## {name}: {FIGURES[name].title}\n\n{said}\n"


def _anchored(name: str, text: str) -> str:
    """A section with a name that links can use; its own links start one folder further down."""
    named = text.replace(f"\n## {name}: ", f"\n({name})=\n## {name}: ", 1)
    return re.sub(r"\]\((?!https?:|#)", "](../", named)


def _links(page: str, texts: list[str]) -> list[str]:
    names = re.findall(r"^\(([\w-]+)\)=$", "".join(texts), re.MULTILINE)
    return [f"[{name}]({page}.md#{name})" for name in names]


def _toctree(parts: dict[str, list[str]]) -> str:
    return "```{toctree}\n:hidden:\n\n" + "\n".join(parts) + "\n```\n"


def _html(target: str) -> str:
    return target.replace(".md", ".html", 1)


def _plain(about: str) -> str:
    return about.replace("\n", " ")
