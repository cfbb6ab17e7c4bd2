"""The oracle of the seven baselines: RecBole 1.2.1, run from an environment of its own.

RecBole needs older libraries than castpoi, so it never stands beside it. Make its environment once:

    python3.11 -m venv /tmp/oracle
    /tmp/oracle/bin/pip install torch==2.13.0 numpy==1.26.4 'pandas<3' 'setuptools<81' \\
        recbole==1.2.1 safetensors polars
    /tmp/oracle/bin/python tools/recbole_oracle.py fixtures tests/baselines/oracle
    /tmp/oracle/bin/python tools/recbole_oracle.py train SASRec CITY --out RESULT

`fixtures` writes what the official models score with small random weights; the tests of castpoi
compare with that and need no RecBole. `train` trains an official model on the train part of a
prepared city and ranks its test targets with castpoi's own evaluation, so that
`castpoi compare` can set the RESULT beside ours.
"""

import argparse
import sys
from pathlib import Path

from recbole_fixtures import write_fixtures
from recbole_models import MODELS
from recbole_training import say, time_epoch, train


def main() -> None:
    """Read the command line and do one of the two."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    fixtures = verbs.add_parser("fixtures", help="write weights, histories and scores for tests")
    fixtures.add_argument("folder", type=Path, metavar="OUT")
    fixtures.add_argument("--seed", type=int, default=7)
    training = verbs.add_parser("train", help="train an official model on a prepared city")
    training.add_argument("model", choices=MODELS)
    training.add_argument("city", type=Path, metavar="CITY")
    training.add_argument("--out", type=Path, metavar="RESULT", help="folder of the result")
    training.add_argument("--seed", type=int, default=42)
    training.add_argument("--epochs", type=int, default=300)
    training.add_argument("--prefixes", type=int, help="learn from the first so many, for a try")
    training.add_argument(
        "--time-epochs", type=float, metavar="SHARE", help="only time this part of an epoch; 1: all"
    )
    training.add_argument(
        "--hurry", action="store_true", help="the same steps in parts, without a search for NaN"
    )
    options = parser.parse_args()
    options.words = sys.argv[1:]
    sys.argv = sys.argv[:1]  # RecBole's Config reads it
    if options.verb == "fixtures":
        write_fixtures(options.folder, options.seed)
        return
    if options.time_epochs is not None:
        say(time_epoch(options))
    elif options.out is None:
        parser.error("train needs --out RESULT, or --time-epochs SHARE")
    else:
        say(train(options))


if __name__ == "__main__":
    main()
