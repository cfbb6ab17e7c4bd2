"""The learning rate: a linear warm-up, then half a cosine down.

The unit is an epoch (the paper's) or a step, for runs so short that an epoch is a large part of
them. The first unit of the warm-up already learns; its last one has the highest rate, and so has
the first unit after it. The cosine would reach the final rate at the unit after the last one.
"""

import math

from castpoi.training.plan import Plan


def rate_at(unit: int, *, units: int, warmup: int, highest: float, final: float) -> float:
    """The learning rate of one unit (epoch or step) of so many, the first being 0."""
    if unit < warmup:
        return highest * (unit + 1) / warmup
    way = (unit - warmup) / max(1, units - warmup)
    return final + (highest - final) * (1 + math.cos(math.pi * way)) / 2


def learning_rate(config: Plan, *, epoch: int, step: int, steps: int) -> float:
    """The learning rate of a step of an epoch that has so many steps."""
    in_steps = config.schedule == "step"
    in_epoch = steps if in_steps else 1
    return rate_at(
        epoch * in_epoch + (step if in_steps else 0),
        units=config.epochs * in_epoch,
        warmup=round(config.warmup_epochs * in_epoch),
        highest=config.learning_rate,
        final=config.final_learning_rate,
    )
