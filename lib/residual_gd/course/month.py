"""Which month of the embedded weather record a student works with in problem set 5, and which windows of it."""

from dataclasses import dataclass

import numpy as np

from .person import generator

A_DAY = 144  # records, one every ten minutes
RECORD_DAYS = 129  # of the embedded record
DAYS = 30
WINDOWS = 6


@dataclass(frozen=True, eq=False)
class Month:
    """Thirty days of the record. rows: the slice of the record's 4,320 rows; begins: (6,) where the windows begin in it."""

    rows: slice
    begins: np.ndarray

    @property
    def begins_in_record(self) -> np.ndarray:
        """The same beginnings, counted from the first row of the whole record: (6,)."""
        return self.rows.start + self.begins


def own_month(student_id) -> Month:
    """The month of one student, drawn from the id.

    Six windows of a day, with the day's last target, lie in the month; they begin on six different days at the same time
    of day, and share no inputs. ValueError for an id that ``generator`` refuses.
    """
    rng = generator(student_id, "ps5/month")
    first = A_DAY * int(rng.integers(RECORD_DAYS - DAYS + 1))
    days = np.sort(rng.choice(DAYS - 1, size=WINDOWS, replace=False))
    begins = A_DAY * days + int(rng.integers(A_DAY))
    return Month(slice(first, first + A_DAY * DAYS), begins)
