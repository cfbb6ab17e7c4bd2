"""The reference for the seven baselines: RecBole 1.2.1, in its own environment.

RecBole needs older libraries than castpoi, so it cannot share an environment with it. Create one:

    python3.11 -m venv /tmp/oracle
    /tmp/oracle/bin/pip install torch==2.13.0 numpy==1.26.4 'pandas<3' 'setuptools<81' \\
        recbole==1.2.1 safetensors polars
    /tmp/oracle/bin/python tools/recbole_oracle.py fixtures tests/baselines/oracle
    /tmp/oracle/bin/python tools/recbole_oracle.py train SASRec CITY --out RESULT

`fixtures` writes the scores of the official models with small random weights; castpoi's tests
compare with these files and need no RecBole. `train` trains an official model on the train split
of a prepared city and ranks its test targets with castpoi's evaluation, so that
`castpoi compare` can compare the RESULT with ours.
"""

import argparse
import sys
from pathlib import Path

from recbole_fixtures import write_fixtures
from recbole_models import MODELS
from recbole_training import print_json, time_epoch, train


def main() -> None:
    """Run the verb of the command line."""
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
    training.add_argument("--prefixes", type=int, help="train on the first N prefixes only")
    training.add_argument(
        "--time-epochs", type=float, metavar="SHARE", help="only time this part of an epoch; 1: all"
    )
    training.add_argument(
        "--hurry",
        action="store_true",
        help="take steps in micro-batches, without anomaly detection",
    )
    options = parser.parse_args()
    options.words = sys.argv[1:]
    sys.argv = sys.argv[:1]  # RecBole's Config reads it
    if options.verb == "fixtures":
        write_fixtures(options.folder, options.seed)
        return
    if options.time_epochs is not None:
        print_json(time_epoch(options))
    elif options.out is None:
        parser.error("train needs --out RESULT, or --time-epochs SHARE")
    else:
        print_json(train(options))


if __name__ == "__main__":
    main()
