"""Which column of a table means what: the usual names of each word of a check-in."""

from collections.abc import Mapping, Sequence
from typing import Final, Literal

from castpoi.core.errors import BadInput

Word = Literal[
    "user", "place", "lat", "lon", "time", "zone", "offset", "category", "name", "part", "session"
]
NEEDED: Final[tuple[Word, ...]] = ("user", "place", "lat", "lon", "time")

# Names are compared in lower case without spaces, dots, dashes and underscores, best first.
USUAL_NAMES: Final[Mapping[Word, tuple[str, ...]]] = {
    "user": ("user", "userid", "uid", "username", "personid", "person"),
    "place": (
        *("place", "placeid", "poi", "poiid", "venue", "venueid", "locationid", "locid"),
        *("location", "loc", "item", "itemid", "businessid", "spotid", "spot"),
    ),
    "lat": ("lat", "latitude", "placelat", "y"),
    "lon": ("lon", "lng", "long", "longitude", "placelon", "x"),
    "time": (
        *("utctime", "atutc", "timeutc", "timestamputc", "time", "timestamp", "datetime", "at"),
        *("checkintime", "checkinat", "createdat", "visitedat", "date", "localtime", "epoch"),
    ),
    "zone": ("zone", "tz", "timezonename", "tzname", "ianazone"),
    "offset": (
        *("tzoffsetminutes", "offset", "offsetminutes", "tzoffset", "timezoneoffset"),
        *("utcoffset", "utcoffsetminutes", "localoffsetminutes"),
    ),
    "category": ("category", "categoryname", "venuecategory", "poicatname", "placecategory"),
    "name": ("name", "placename", "venuename", "poiname", "title"),
    "part": ("split", "part", "splittag"),
    "session": ("trajectoryid", "session", "sessionid", "trailid"),
}


def plain(column: str) -> str:
    """A column's name as it is compared."""
    return "".join(letter for letter in column.lower() if letter not in " ._-\t\ufeff")


def usual_columns(columns: Sequence[str], word: Word) -> list[str]:
    """The columns with one of the usual names of a word, best first."""
    return [column for name in USUAL_NAMES[word] for column in columns if plain(column) == name]


def recognise(columns: Sequence[str], given: Mapping[str, str], *, where: str) -> dict[Word, str]:
    """Word -> column of the table; what is `given` by hand goes before usual names.

    Raises BadInput if a needed word has no column, or a given column does not exist.
    """
    for word, column in given.items():
        if column not in columns:
            raise BadInput(
                f"{where}, row 1: no column '{column}' for the {word}; "
                f"its columns are {', '.join(columns)}"
            )
    meaning: dict[Word, str] = {}
    for word in USUAL_NAMES:
        usual = usual_columns(columns, word)
        if word in given:
            meaning[word] = given[word]
        elif usual and usual[0] not in given.values():
            meaning[word] = usual[0]
    missing = [word for word in NEEDED if word not in meaning]
    if missing:
        raise BadInput(
            f"{where}, row 1: no column for the {' and the '.join(missing)}; its columns are "
            f"{', '.join(columns)}; name it with --columns "
            f"{','.join(f'{word}=COLUMN' for word in missing)}"
        )
    return meaning


def rivals(
    columns: Sequence[str], meaning: Mapping[Word, str], given: Mapping[str, str]
) -> dict[Word, list[str]]:
    """Word -> columns with one of its usual names that are not read, best first.

    Only of words that a check-in needs, and whose column nobody has given by hand.
    """
    found: dict[Word, list[str]] = {}
    for word in NEEDED:
        usual = usual_columns(columns, word)
        others = [column for column in usual if column not in meaning.values()]
        if word not in given and others:
            found[word] = others
    return found


def parse_columns(text: str) -> dict[str, str]:
    """Read `user=who,place=where` as given by hand."""
    given: dict[str, str] = {}
    for pair in text.split(","):
        word, equals, column = (piece.strip() for piece in pair.partition("="))
        if not equals or not column:
            raise BadInput(f"--columns: '{pair}' is not of the form word=column")
        if word not in USUAL_NAMES:
            raise BadInput(f"--columns: '{word}' is not one of {', '.join(USUAL_NAMES)}")
        given[word] = column
    return given
