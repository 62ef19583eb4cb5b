"""Build what would be released, and use it as a stranger would: `make release-check`.

The wheel and the source archive are built into `dist/` and checked by twine. Then the wheel is installed
in two empty environments. With all extras the README and all tutorials must run; without any, the README
must end in the one sentence that names the extra, as must the command line, and a first decision works.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "docs/start.md", *sorted((ROOT / "docs/tutorials").glob("*.md"))]
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
NEEDS_EXTRA = re.compile(r"this needs \w+: pip install 'dpbandits\[\w+\]'$")


def main() -> None:
    """Build, check, install, run."""
    wheel = build()
    with tempfile.TemporaryDirectory() as folder:
        full = Stranger(Path(folder) / "full", f"{wheel}[all]")
        full.runs("-m", "dpbandits", "list")
        programs = {page: program for page in PAGES if (program := program_of(page))}
        for page, program in programs.items():
            print(f"running {page.name} …", flush=True)
            full.runs("-c", program)
        bare = Stranger(Path(folder) / "bare", str(wheel))
        bare.says_what_it_needs("-m", "dpbandits", "list")
        bare.says_what_it_needs("-c", programs[ROOT / "README.md"])
        bare.runs("-c", BLOCK.findall((ROOT / "docs/start.md").read_text())[0])
    print(f"{wheel.name}: {len(programs)} pages run")


def program_of(page: Path) -> str:
    """All examples of a page."""
    return "\n".join(BLOCK.findall(page.read_text()))


def build() -> Path:
    """The wheel, built anew from the source archive."""
    dist = ROOT / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    print("building …", flush=True)
    builder = [sys.executable, "-m", "build", "--outdir", str(dist), str(ROOT)]
    subprocess.run(builder, stdout=subprocess.DEVNULL, check=True)  # it lists every file
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *dist.iterdir()], check=True)
    (wheel,) = dist.glob("*.whl")
    return wheel


class Stranger:
    """Somebody who has nothing but an empty environment and what was installed in it."""

    def __init__(self, home: Path, wanted: str) -> None:
        self.home, self.python = home, home / "venv" / "bin" / "python"
        print(f"installing {Path(wanted).name} in an empty environment …", flush=True)
        subprocess.run([sys.executable, "-m", "venv", home / "venv"], check=True)
        quiet = ["--quiet", "--disable-pip-version-check", "--no-compile"]
        pinned = ["--constraint", str(ROOT / "constraints.txt")]
        pip = [str(self.python), "-m", "pip", "install", *quiet, *pinned, wanted]
        subprocess.run(pip, check=True)

    def runs(self, *command: str) -> None:
        """The command succeeds."""
        done = self._run(*command)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}\nfailed:\n{done.stderr}")

    def says_what_it_needs(self, *command: str) -> None:
        """The command ends in the sentence that names an extra."""
        done = self._run(*command)
        if done.returncode == 0 or not NEEDS_EXTRA.search(done.stderr.strip()):
            sys.exit(
                f"{' '.join(command)}\nshould name the extra it needs, and ended with:\n{done.stderr}"
            )

    def _run(self, *command: str) -> subprocess.CompletedProcess[str]:
        # Compiled code is kept by the path of its source: of no use to anybody afterwards.
        clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        clean["XDG_CACHE_HOME"] = str(self.home / "cache")
        return subprocess.run(
            [self.python, *command], cwd=self.home, env=clean, capture_output=True, text=True
        )


if __name__ == "__main__":
    main()
