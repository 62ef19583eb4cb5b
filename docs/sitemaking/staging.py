"""All pages of the site in one folder, ready for Sphinx; nothing made lies among what is written."""

import re
import shutil
from pathlib import Path

from sitemaking.pictures import draw_replay
from sitemaking.policies import policy_pages
from sitemaking.reference import MODULES, reference_pages
from sitemaking.reproduction import gallery_page, place_of_section, reproduction_pages
from sitemaking.running import run_page

DOCS = Path(__file__).parents[1]
ROOT = DOCS.parent
# Pages that lie elsewhere in the repository, or are made of a page there.
PLACES = {
    "SECURITY.md": "security.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "README.md": "index.md",
    "docs/reproduction.md": "reproduction/index.md",
}
LINK = re.compile(r"(?<=\])\((?!https?:|mailto:|#|<)([^)#\s]+)(#[^)\s]*)?\)")
_LANGUAGES = {
    ".py": "python",
    ".js": "javascript",
    ".sh": "sh",
    ".toml": "toml",
    ".yaml": "yaml",
    ".html": "html",
}


def stage(source: Path) -> None:
    """Write all pages and their pictures into an empty folder."""
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir(parents=True)
    shutil.copytree(DOCS / "figures", source / "figures")
    written = {page: (ROOT / page).read_text() for page in _written()}
    measured = (DOCS / "reproduction.md").read_text()
    papers = reproduction_pages(measured)
    tutorials = {place_of(page): text for page, text in written.items() if "tutorials/" in page}
    pages = {
        **{place_of(page): one_title(relinked(text, page), page) for page, text in written.items()},
        **reference_pages(),
        **policy_pages(measured),
        **papers,
        "gallery.md": gallery_page(papers, tutorials),
        "reference/api/index.md": _modules_page(),
        **_file_pages(written),
    }
    for path, text in pages.items():
        target = source / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(run_page(text, target.parent) if _is_run(path) else text)
    draw_replay(source / "figures" / "replay.svg")


def _is_run(path: str) -> bool:
    """Whether the examples of a page are run while the site is made; tests run those of the others."""
    return path.startswith("tutorials/") or path in (
        "start.md",
        "choosing-epsilon.md",
        "identification.md",
    )


def _written() -> list[str]:
    """All pages that are written by hand, or generated and kept, as paths in the repository."""
    pages = sorted(
        str(path.relative_to(ROOT)) for path in DOCS.rglob("*.md") if "build" not in path.parts
    )
    return [page for page in pages if page != "docs/reproduction.md"] + [
        page for page in PLACES if not page.startswith("docs/") and page != "README.md"
    ]


def place_of(page: str) -> str:
    """Where a file of the repository is on the site."""
    if page in PLACES:
        return PLACES[page]
    if page.startswith("docs/"):
        return page.removeprefix("docs/")
    return f"files/{page}.md"


def relinked(text: str, page: str) -> str:
    """A page with its links to files of the repository turned to where these are on the site."""
    here = Path(place_of(page)).parent

    def turned(link: re.Match[str]) -> str:
        target = (ROOT / page).parent.joinpath(link[1]).resolve()
        if target.is_relative_to(ROOT) and target.exists():
            name, anchor = str(target.relative_to(ROOT)), link[2] or ""
            if name == "docs/reproduction.md" and (section := place_of_section(anchor)):
                return f"({_relative(Path(section), here)})"
            return f"({_relative(Path(place_of(name)), here)}{anchor})"
        return link[0]

    return LINK.sub(turned, text)


def one_title(text: str, page: str) -> str:
    """A page with several titles gets one more, its name, above them: they become its sections."""
    outside = re.split(r"(^```.*?^```$)", text, flags=re.DOTALL | re.MULTILINE)
    if sum(len(re.findall(r"^# ", part, re.MULTILINE)) for part in outside[::2]) < 2:
        return text
    outside[::2] = [re.sub(r"^(?=#+ )", "#", part, flags=re.MULTILINE) for part in outside[::2]]
    return f"# {Path(page).stem.capitalize()}\n\n{''.join(outside)}"


def _relative(place: Path, here: Path) -> str:
    common = 0
    while common < min(len(place.parts), len(here.parts)) and place.parts[common] == here.parts[common]:
        common += 1
    return "/".join([".."] * (len(here.parts) - common) + list(place.parts[common:]))


def _file_pages(written: dict[str, str]) -> dict[str, str]:
    """A page with the text of each file of the repository that some page links to."""
    found = set()
    for page, text in written.items():
        for link, _ in LINK.findall(text):
            target = (ROOT / page).parent.joinpath(link).resolve()
            if target.is_file() and target.suffix not in (".md", ".png", ".svg"):
                found.add(str(target.relative_to(ROOT)))
    return {place_of(name): _file_page(name) for name in sorted(found)}


def _file_page(name: str) -> str:
    language = _LANGUAGES.get(Path(name).suffix, "text")
    text = (ROOT / name).read_text().rstrip()
    return f"---\norphan: true\n---\n\n# {name}\n\n`````{language}\n{text}\n`````\n"


def _modules_page() -> str:
    return (
        "# Modules\n\nUsers type `import dpbandits as dpb`, and a name. What everybody needs is there; "
        "the rest is a dot away.\n\n"
        + "".join(f"- [{name}]({name}.md)\n" for name in MODULES)
        + "\n```{toctree}\n:hidden:\n\n"
        + "\n".join(MODULES)
        + "\n```\n"
    )
