"""Where float64 can be had: on every device that castpoi knows but Apple's (mps)."""

import torch


def has_float64(device: torch.device) -> bool:
    """Whether a device computes in float64."""
    return device.type != "mps"


def widest_float(device: torch.device) -> torch.dtype:
    """The most exact numbers in which a device computes."""
    return torch.float64 if has_float64(device) else torch.float32
