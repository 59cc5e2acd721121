"""What late days cost. The rule stands here and nowhere else: of the points that a student got,
each day late takes the same share of the whole, until nothing is left."""

from dataclasses import dataclass

PERCENT_A_DAY = 10


@dataclass(frozen=True)
class Lateness:
    """How late a student handed in: whole days, a day that has begun counting as one."""

    days: int
    percent_a_day: float = PERCENT_A_DAY

    @property
    def percent_off(self) -> float:
        """The share of the points that is taken off, 0 to 100."""
        return min(100.0, self.percent_a_day * self.days)

    def left_of(self, points: float) -> float:
        """The points that are left, to the hundredth."""
        return round(points * (100 - self.percent_off) / 100, 2)

    def sentence(self, points: float) -> str:
        """What is said of it, on the page and in the CSV; "" where nobody is late."""
        if not self.days:
            return ""
        days = "1 day" if self.days == 1 else f"{self.days} days"
        reached = "1 point" if points == 1 else f"{points:g} points"
        return f"{days} late: {self.percent_off:g} % off {reached}"
