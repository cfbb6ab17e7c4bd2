"""The paper's loss from the scores of all places, plain and readable.

    L  = CE_eps(s, y) + lambda / k  sum over the k best others of [m - (s_y - s_c)]+

    CE_eps: the target has mass 1 - eps + eps / (P - 1), every other place eps / (P - 1)

A target at a place its history does not know weighs w_explore, any other 1. The batch's loss is
the weighted sum over its targets divided by their *number* (not by the sum of weights), so that
a step of explore targets is a larger step. The fast objective computes the same in one pass.

Shapes: B targets, P places, k hardest others.
"""

import torch
from torch import Tensor

from castpoi.training.config import CastPoiTraining
from castpoi.training.fused_loss import LossConstants


def mean_loss(scores: Tensor, target: Tensor, is_new: Tensor, config: CastPoiTraining) -> Tensor:
    """Weighted mean of the loss over targets. [B, P], [B], [B] -> scalar"""
    constants = LossConstants(margin_weight=config.margin_weight)
    each = smoothed_cross_entropy(scores, target, smoothing=constants.label_smoothing)
    if config.margin_weight:
        short = margin_shortfall(
            scores, target, margin=constants.margin, hardest=constants.hard_negatives
        )
        each = each + config.margin_weight * short
    weight = torch.where(is_new, config.explore_weight, 1.0).to(each)
    return (weight * each).sum() / len(target)


def smoothed_cross_entropy(scores: Tensor, target: Tensor, *, smoothing: float) -> Tensor:
    """Cross-entropy with part of the target's mass spread over all places. [B, P], [B] -> [B]"""
    log_chance = scores.log_softmax(dim=1)  # [B, P]
    share = smoothing / max(1, scores.shape[1] - 1)
    of_target = log_chance.gather(1, target.unsqueeze(1)).squeeze(1)  # [B]
    return -(1 - smoothing) * of_target - share * log_chance.sum(dim=1)


def margin_shortfall(scores: Tensor, target: Tensor, *, margin: float, hardest: int) -> Tensor:
    """How much the target lacks to the margin over its rivals, their mean. [B, P], [B] -> [B]"""
    rivals = min(hardest, scores.shape[1] - 1)
    if not rivals:
        return scores.new_zeros(len(scores))
    column = target.unsqueeze(1)  # [B, 1]
    best = scores.scatter(1, column, -torch.inf).topk(rivals, dim=1).values  # [B, k]
    return (margin - scores.gather(1, column) + best).clamp(min=0).mean(dim=1)
