"""The visits of people the run's city knows, read from the city when first asked for."""

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl

from castpoi.checkins import record
from castpoi.checkins.city import City
from castpoi.core.errors import UnknownUser
from castpoi.methods.run import Run, city_of
from castpoi.recommend.history import History


class UserVisits:
    """All check-ins of the city, by user; the split has no say in what a person did."""

    def __init__(self, run: Run, city: Path | None = None) -> None:
        self._run = run
        self._folder = city

    def history_of(self, user_id: str) -> History:
        """Everything a user of the city did."""
        number = self._number_of.get(user_id)
        if number is None:  # who is asked for is nobody else's business: the error names nobody
            raise UnknownUser(
                "this user has no check-ins in the run's city; give a history instead, or the id "
                "as it stands in the city's users.parquet"
            )
        return self._history(number)

    def some(self, most: int) -> Iterator[History]:
        """The histories of so many users at most, spread over all of them."""
        count = self._city.users.height
        for number in range(0, count, max(1, -(-count // most))):
            yield self._history(number)

    def _history(self, number: int) -> History:
        users = self._city.checkins[record.USER]
        start, end = (users.search_sorted(number, side=side) for side in ("left", "right"))
        own = self._city.checkins[start:end].select(pl.all().to_physical().cast(pl.Int64))
        return History(
            place=own[record.PLACE].to_numpy(),
            at_us=own[record.AT_UTC].to_numpy(),
            offset_minutes=own[record.OFFSET].to_numpy().astype(np.int64),
        )

    @cached_property
    def _city(self) -> City:
        return city_of(self._run, self._folder)

    @cached_property
    def _number_of(self) -> dict[str, int]:
        users = self._city.users
        return dict(zip(users[record.USER_ID], users[record.USER], strict=True))
