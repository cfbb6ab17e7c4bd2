from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from castpoi.core.errors import UnknownMethod
from castpoi.methods.registry import GROUP, METHODS, Method, Methods
from tests.messages import refused


def test_every_method_has_a_line_and_a_ranker_that_can_be_imported() -> None:
    assert METHODS.names[:3] == ["castpoi-next", "castpoi", "revisit"]
    for method in METHODS:
        assert method.line
        assert METHODS.label_of(method.name) == method.label
        assert bool(method.presets) is method.needs_training
        assert not method.needs_training or callable(method.trainer_function())
        assert method.ranker_class().__name__.lower() == method.ranker.partition(":")[2].lower()


def test_the_best_method_is_castpoi_next() -> None:
    assert METHODS.best.name == "castpoi-next"


def test_the_default_preset_of_a_method_is_its_first() -> None:
    found = {name: METHODS.named(name).default_preset for name in METHODS.names}
    assert [found[name] for name in ("castpoi", "castpoi-next", "sasrec", "revisit")] == [
        *("fast", "next", "paper"),
        None,
    ]


def test_a_misspelt_method_gets_a_guess_and_the_list() -> None:
    words = "no method is named 'Revist'; did you mean 'revisit'\\? the methods are castpoi-n"
    with pytest.raises(UnknownMethod, match=words):
        METHODS.named("Revist")


def test_a_name_like_no_other_gets_the_list_only() -> None:
    with refused(UnknownMethod):
        METHODS.named("zzz")


def test_a_method_is_added_by_registering_it_once() -> None:
    methods = Methods()
    dice = Method(name="dice", line="throws dice", ranker="somewhere:Dice", trainer="there:throw")
    methods.register(dice)
    assert methods.named("dice").needs_training
    assert methods.label_of("dice") == methods.label_of("DICE").lower() == "dice"
    with pytest.raises(ValueError, match="a method named dice is already registered"):
        methods.register(dice)


def test_a_method_whose_package_is_not_installed_is_not_available() -> None:
    assert METHODS.named("boosted").is_available  # the tests need all extras
    assert not Method(name="m", line="", ranker="a:B", package="no_such_package").is_available


def test_a_counted_method_has_no_trainer() -> None:
    with pytest.raises(TypeError, match="revisit only counts, it is not trained"):
        METHODS.named("revisit").trainer_function()


@pytest.fixture
def points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[EntryPoint]:
    """Entry points of another package: one of a method, three that are wrong."""
    (tmp_path / "strangers.py").write_text(
        "from castpoi.methods.registry import Method\n"
        "DICE = Method(name='dice', line='throws dice', ranker='strangers:Dice')\n"
        "SIX = 6\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    named = {"dice": "DICE", "coin": "DICE", "six": "SIX", "gone": "GONE"}
    return [EntryPoint(name, f"strangers:{what}", GROUP) for name, what in named.items()]


def test_an_installed_package_adds_its_methods(points: list[EntryPoint]) -> None:
    methods = Methods()
    methods.add_installed(points)
    assert methods.names == ["dice"]
    assert methods.named("dice").line == "throws dice"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("coin", "ValueError: the entry point is named coin, its method dice"),
        ("six", "TypeError: strangers:SIX is no castpoi.methods.registry.Method"),
        ("gone", "AttributeError: module 'strangers' has no attribute 'GONE'"),
    ],
)
def test_an_installed_method_that_does_not_load_is_an_error_when_it_is_used(
    points: list[EntryPoint], name: str, why: str
) -> None:
    methods = Methods()
    methods.add_installed(points)
    words = f"method '{name}' is installed but does not load: {why}; fix the package that has it"
    with pytest.raises(UnknownMethod, match=words):
        methods.named(name)


def test_an_installed_method_does_not_take_the_name_of_another(points: list[EntryPoint]) -> None:
    ours = Method(name="dice", line="ours", ranker="castpoi.baselines.simple:Recent")
    methods = Methods(ours)
    methods.add_installed(points)
    assert methods.named("dice") is ours
