"""Measure a machine against its roofline: `python -m roofline_lib measure`, or `measure()`.

The records that ship with the course are in roofline_lib/data/measured/.
"""

from roofline_lib.measuring.links import LinkFit, fit_link
from roofline_lib.measuring.record import (
    Absent,
    Chip,
    Counts,
    Point,
    Record,
    Sample,
    Settings,
    Sustained,
    Timing,
    Traffic,
    load,
    recorded,
    save,
    validate,
)
from roofline_lib.measuring.roofs import (
    NoNominalRoof,
    counted_peaks,
    nominal_roof,
    sustained_roof,
)
from roofline_lib.measuring.run import measure
from roofline_lib.measuring.verdicts import (
    Finding,
    efficiency,
    explain,
    launch_floor,
    regime,
    verdict,
)

__all__ = [
    "Absent",
    "Chip",
    "Counts",
    "Finding",
    "LinkFit",
    "NoNominalRoof",
    "Point",
    "Record",
    "Sample",
    "Settings",
    "Sustained",
    "Timing",
    "Traffic",
    "counted_peaks",
    "efficiency",
    "explain",
    "fit_link",
    "launch_floor",
    "load",
    "measure",
    "nominal_roof",
    "recorded",
    "regime",
    "save",
    "sustained_roof",
    "validate",
    "verdict",
]
