"""A synthetic city whose check-ins follow the published laws of human mobility."""

from castpoi.checkins.synthetic.plan import SynthesisConfig
from castpoi.checkins.synthetic.table import check_free, write_checkins
from castpoi.checkins.synthetic.walk import synthesize

__all__ = ["SynthesisConfig", "check_free", "synthesize", "write_checkins"]
