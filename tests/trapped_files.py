"""Files that run code when they are opened by what can: they make a folder."""

import io
import pickle
from pathlib import Path
from typing import Any

import torch

KINDS = ("pickle", "torch")


class _Trap:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.mkdir, (self.folder,)


def content(kind: str, folder: Path) -> bytes:
    """A pickle, or a file of torch.save, that makes the folder when it is opened."""
    file = io.BytesIO()
    if kind == "pickle":
        pickle.dump(_Trap(folder), file)
    else:
        torch.save(_Trap(folder), file)
    file.seek(0)
    if kind == "pickle":
        pickle.load(file)
    else:
        torch.load(file, weights_only=False)
    folder.rmdir()  # which fails if the trap has not sprung
    return file.getvalue()
