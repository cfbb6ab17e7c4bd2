"""The synthetic city: check-ins after the published laws of human mobility."""

from castpoi.checkins.synthetic.config import SynthesisConfig
from castpoi.checkins.synthetic.synthesize import synthesize
from castpoi.checkins.synthetic.write import check_free, write_checkins

__all__ = ["SynthesisConfig", "check_free", "synthesize", "write_checkins"]
