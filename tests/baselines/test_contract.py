import pytest

from castpoi.methods import METHODS, Method
from tests.contract import check_contract


@pytest.mark.parametrize("method", list(METHODS), ids=lambda method: method.name)
def test_every_method_keeps_the_contract(method: Method) -> None:
    check_contract(method)
