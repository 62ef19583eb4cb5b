"""Build what would be released, and use it as a stranger would: `make release-check`.

The wheel and the source archive are built into `dist/` and checked by twine. Then the wheel is installed
in two empty environments. With all extras every block of the README must run; without any, a block must
run or end in the one sentence that names the extra, and so must the command line.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
NEEDS_EXTRA = re.compile(r"this needs \w+: pip install 'dpbandits\[\w+\]'$")


def main() -> None:
    """Build, check, install, run."""
    wheel = build()
    with tempfile.TemporaryDirectory() as folder:
        full = Stranger(Path(folder) / "full", f"{wheel}[all]")
        full.runs("-m", "dpbandits", "list")
        for block in BLOCKS:
            full.runs("-c", block)
        bare = Stranger(Path(folder) / "bare", str(wheel))
        bare.says_what_it_needs("-m", "dpbandits", "list")
        stopped = sum(bare.runs_or_says_what_it_needs("-c", block) for block in BLOCKS)
    if not 0 < stopped < len(BLOCKS):
        sys.exit(f"expected some README blocks to need an extra and others not, got {stopped} that do")
    print(f"{wheel.name}: {len(BLOCKS)} README blocks run, {len(BLOCKS) - stopped} without extras")


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

    def runs_or_says_what_it_needs(self, *command: str) -> bool:
        """Whether it needs an extra; any other failure ends the check."""
        needs = self._run(*command).returncode != 0
        if needs:
            self.says_what_it_needs(*command)
        return needs

    def _run(self, *command: str) -> subprocess.CompletedProcess[str]:
        # Compiled code is kept by the path of its source: of no use to anybody afterwards.
        clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        clean["XDG_CACHE_HOME"] = str(self.home / "cache")
        return subprocess.run(
            [self.python, *command], cwd=self.home, env=clean, capture_output=True, text=True
        )


if __name__ == "__main__":
    main()
