"""The code version of a method: what changes it and what does not."""

from pathlib import Path

import pytest

from castpoi.experiments import code_version as module
from castpoi.experiments.code_version import code_version, modules_of
from castpoi.methods.registry import METHODS, Method

TOY = Method(name="toy", line="a toy", ranker="castpoi.model.toy_ranker:Toy")

SOURCES = {
    "evaluation/evaluate.py": "from castpoi.evaluation.ranks import ranks\n",
    "evaluation/ranks.py": '"""Ranks."""\nfrom castpoi.core.errors import Wrong\nranks = 1\n',
    "training/train.py": "from castpoi import geo\n",
    "geo/__init__.py": "",
    "errors.py": "class Wrong: pass\n",
    "model/toy_ranker.py": "def late():\n    from . import weights\n",
    "model/weights.py": "import castpoi.model.sizes\n",
    "model/sizes.py": "width = 8  # wide enough\n",
    "model/stranger.py": "width = 8\n",
    "baselines/toy.py": "x = 1\n",
}


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A castpoi of ten small files."""
    for name, content in SOURCES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    monkeypatch.setattr(module, "_SOURCES", tmp_path)
    return tmp_path


def test_imports_are_followed_wherever_they_stand(sources: Path) -> None:
    found = {name.removeprefix("castpoi.") for name in modules_of(TOY)}
    assert found == {
        "evaluation.evaluate", "evaluation.ranks", "training.train", "geo",
        "model.toy_ranker", "model.weights", "model.sizes", "baselines.toy",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "content", "is_same"),
    [
        ("model/sizes.py", '"""Sizes."""\n\nwidth = 8\n"""How wide."""\n', True),
        ("model/sizes.py", "width = 9\n", False),
        ("model/sizes.py", "width = (\n", False),  # saved halfway
        ("evaluation/ranks.py", "ranks = 2\n", False),
        ("baselines/toy.py", "x = 2\n", False),
        ("errors.py", "class Wronger: pass\n", True),
        ("model/stranger.py", "width = 9\n", True),
    ],
)
def test_only_code_that_numbers_depend_on_changes_the_version(
    sources: Path, name: str, content: str, is_same: bool
) -> None:
    before = code_version(TOY)
    (sources / name).write_text(content)
    assert (code_version(TOY) == before) is is_same


def test_a_learned_method_depends_on_its_model_its_training_and_the_evaluation() -> None:
    of_castpoi = modules_of(METHODS.named("castpoi"))
    assert {
        "castpoi.model.reader", "castpoi.training.loop", "castpoi.training.fused_loss",
        "castpoi.evaluation.ranking", "castpoi.checkins.trajectory",
    } <= of_castpoi  # fmt: skip
    assert "castpoi.baselines.sasrec" not in of_castpoi
    assert "castpoi.baselines.sasrec" in modules_of(METHODS.named("sasrec"))
    assert "castpoi.model.reader" not in modules_of(METHODS.named("revisit"))


def test_methods_have_versions_of_their_own() -> None:
    versions = {code_version(METHODS.named(name)) for name in ("revisit", "markov", "castpoi")}
    assert len(versions) == 3


@pytest.fixture
def stranger(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of somebody else, with a method of its own."""
    home = tmp_path_factory.mktemp("site") / "strangers"
    home.mkdir()
    (home / "__init__.py").write_text("from .sizes import width\n")
    (home / "ranker.py").write_text("import strangers\nimport numpy\n")
    (home / "sizes.py").write_text("width = 8\n")
    (home / "letters.py").write_text("a = 1\n")
    monkeypatch.syspath_prepend(home.parent)
    module._home_of.cache_clear()
    return home


def test_a_method_from_elsewhere_has_the_version_of_its_own_package_too(
    sources: Path, stranger: Path
) -> None:
    dice = Method(name="dice", line="throws dice", ranker="strangers.ranker:Dice")
    found = {name for name in modules_of(dice) if not name.startswith("castpoi")}
    assert found == {"strangers.ranker", "strangers", "strangers.sizes"}
    before = code_version(dice)
    (stranger / "letters.py").write_text("a = 2\n")
    assert code_version(dice) == before
    (stranger / "sizes.py").write_text("width = 9\n")
    assert code_version(dice) != before


def test_a_method_may_be_a_single_file(sources: Path, stranger: Path) -> None:
    (stranger.parent / "alone.py").write_text("width = 8\n")
    alone = Method(name="alone", line="alone", ranker="alone:Alone")
    before = code_version(alone)
    (stranger.parent / "alone.py").write_text("width = 9\n")
    assert code_version(alone) != before
