"""The package as people install it: built, installed elsewhere, and run."""

import json
import os
import subprocess
import sys
import venv
from pathlib import Path
from zipfile import ZipFile

import pytest

import castpoi

ROOT = Path(__file__).parents[1]
pytest.importorskip("hatchling")  # of the extra dev; without it the wheel cannot be built offline


def run(*words: object, folder: Path) -> str:
    """The output of a command that sees nothing of this repository."""
    bare = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(word) for word in words], cwd=folder, env=bare, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", out, folder=ROOT)
    (built,) = out.glob(f"castpoi-{castpoi.__version__}-*.whl")
    return built


def test_the_wheel_has_every_file_of_the_package(wheel: Path) -> None:
    tracked = run("git", "ls-files", "castpoi", folder=ROOT / "src").split()
    assert set(tracked) <= set(ZipFile(wheel).namelist())


def test_the_installed_wheel_runs_the_demo(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=False)
    python = tmp_path / "venv" / "bin" / "python"
    own = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))",
                   folder=tmp_path).strip())  # fmt: skip
    of_tests = [each for each in sys.path if "site-packages" in each]
    (own / "dependencies.pth").write_text("\n".join(of_tests))
    run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps",
        "--no-index", "--disable-pip-version-check", wheel, folder=tmp_path)  # fmt: skip
    home = run(python, "-c", "import castpoi; print(castpoi.__file__)", folder=tmp_path)
    assert Path(home.strip()).is_relative_to(own)
    shown = run(python.with_name("castpoi"), "demo", "--quick", "--json", folder=tmp_path)
    assert json.loads(shown)["run"]["method"] == "castpoi-next"
    assert (tmp_path / "castpoi-demo" / "run" / "model.safetensors").is_file()
