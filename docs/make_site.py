"""Make the documentation site, `docs/build/site`, or in the folder given: `make docs`.

Pages are laid out and their examples run, Sphinx makes HTML of them, where a warning is an error, and
all links are followed. Nothing is fetched from anywhere.
"""

import shutil
import sys
from pathlib import Path

from sphinx.cmd.build import build_main

from sitemaking.links import faults
from sitemaking.staging import DOCS, stage


def make_site(folder: Path) -> Path:
    """The site, in `folder`/site; ends with a sentence where something is wrong."""
    source, site = folder / "source", folder / "site"
    shutil.rmtree(site, ignore_errors=True)  # no pages that are no longer made
    stage(source)
    options = ["-c", str(DOCS), "-d", str(folder / "doctrees"), "-q", "-E", "-W", "--keep-going"]
    if build_main(["-b", "html", *options, str(source), str(site)]) != 0:
        sys.exit("Sphinx found something wrong, see above")
    if wrong := list(faults(site)):
        sys.exit("\n".join(wrong))
    return site


if __name__ == "__main__":
    made = make_site(Path(sys.argv[1]) if sys.argv[1:] else DOCS / "build")
    print(f"open {made / 'index.html'}")
