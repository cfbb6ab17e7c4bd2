"""`python -m castpoi.cli.tethered VERB ...`: a castpoi command that ends with whoever started it.

The starter holds the other end of standard input and never writes to it. When the starter is gone,
however it went, the pipe closes and the command ends at once, so that nothing goes on unwatched in
folders that the next command will use.
"""

import os
import threading

from castpoi.cli.main import main


def end_with_starter() -> None:
    """Wait until the other end of standard input closes, then end this process."""
    while os.read(0, 1):
        pass
    os._exit(1)  # as a kill would: folders appear whole or not at all


if __name__ == "__main__":
    threading.Thread(target=end_with_starter, daemon=True).start()
    main()
