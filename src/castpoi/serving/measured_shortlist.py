"""The smallest shortlist that will do, found when a run begins to serve."""

from collections.abc import Mapping

from castpoi.core.provenance import Stopwatch
from castpoi.recommend.recommender import Recommender
from castpoi.recommend.shortlist_choice import chosen
from castpoi.serving.logs import log_event
from castpoi.serving.store import VisitStore
from castpoi.serving.tried_histories import histories_to_try


def with_measured_shortlist(recommender: Recommender, store: VisitStore) -> Recommender:
    """The same recommender with the shortlist that was measured, if one is to be; logged."""
    if recommender.shortlist.why != "to measure":
        return recommender
    from castpoi.model.ranker import CastPoiRanker  # it needs torch, as the next one does
    from castpoi.recommend.agreement import MOST_HISTORIES, agreement_of

    ranker = recommender.run.ranker
    assert isinstance(ranker, CastPoiRanker)  # only its scores have a shortlist
    work = Stopwatch()
    places, users = recommender.places, recommender.users
    of, histories = histories_to_try(store, users, places, most=MOST_HISTORIES)
    shortlist = chosen(agreement_of(ranker, histories), of=of)
    agreement = shortlist.agreement
    log_event(
        "shortlist chosen",
        size=shortlist.size or "all",
        size_new=shortlist.size_new or "all",
        agreement=_told(agreement.anywhere),
        agreement_new=_told(agreement.new),
        histories=agreement.histories,
        of=of,
        seconds=round(work.seconds, 3),
    )
    return recommender.with_shortlist(shortlist)


def _told(agreement: Mapping[int, float]) -> str:
    return ",".join(f"{size}:{share:.3f}" for size, share in agreement.items())
