"""The tables of the visit store.

users    number, user_id             a user id is stored here and nowhere else
visits   user, place_id, at_us, key  key: digest of the client's name for the visit
about    name, value                 version of the tables, the imported city, whether
                                     somebody was added or erased, unfinished erasures
"""

from typing import Final

import sqlalchemy as sa

VERSION: Final = "1"

_TEXT: Final = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
"""Ids, ordered by their characters alone in every database."""
_NUMBER: Final = sa.BigInteger().with_variant(sa.Integer, "sqlite")

TABLES: Final = sa.MetaData()
USERS: Final = sa.Table(
    "users",
    TABLES,
    sa.Column("number", _NUMBER, primary_key=True),
    sa.Column("user_id", _TEXT, nullable=False, unique=True),
    sqlite_autoincrement=True,  # the number of an erased user never comes back
)
VISITS: Final = sa.Table(
    "visits",
    TABLES,
    sa.Column("visit", _NUMBER, primary_key=True),
    sa.Column("user", sa.ForeignKey("users.number"), nullable=False),
    sa.Column("place_id", _TEXT, nullable=False),
    sa.Column("at_us", sa.BigInteger, nullable=False),
    sa.Column("key", sa.LargeBinary(16), nullable=False),
    sa.UniqueConstraint("user", "key", name="one_visit_a_key"),
    sa.Index("history", "user", "at_us", "place_id"),
    sqlite_autoincrement=True,
)
ABOUT: Final = sa.Table(
    "about",
    TABLES,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)
