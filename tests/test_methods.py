import pytest

from castpoi.errors import UnknownMethod
from castpoi.methods import METHODS, Method, Methods


def test_every_method_has_a_line_and_a_ranker_that_can_be_imported() -> None:
    assert METHODS.names[:3] == ["castpoi-next", "castpoi", "revisit"]
    for method in METHODS:
        assert method.line
        assert bool(method.presets) is method.needs_training
        assert method.ranker_class().__name__.lower() == method.ranker.partition(":")[2].lower()


def test_the_best_method_is_ours_since_it_has_won() -> None:
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
    with pytest.raises(
        UnknownMethod, match="no method is named 'zzz'; the methods are castpoi-next, castpoi, rev"
    ):
        METHODS.named("zzz")


def test_a_method_is_added_by_registering_it_once() -> None:
    methods = Methods()
    dice = Method(name="dice", line="throws dice", ranker="somewhere:Dice", trainer="there:throw")
    methods.register(dice)
    assert methods.named("dice").needs_training
    with pytest.raises(ValueError, match="a method named dice is already registered"):
        methods.register(dice)


def test_a_counted_method_has_no_trainer() -> None:
    with pytest.raises(TypeError, match="revisit is counted, not learned"):
        METHODS.named("revisit").trainer_function()
