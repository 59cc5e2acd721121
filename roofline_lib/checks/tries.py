"""What has been tried in this session: a value is told only after two different wrong answers."""

from dataclasses import dataclass, field

from roofline_lib.checks.judging import Verdict
from roofline_lib.checks.questions import Question


@dataclass(frozen=True)
class Tries:
    """The wrong answers to each question so far, by its id."""

    _wrong: dict[str, set[str]] = field(default_factory=dict)

    def judge(self, question: Question, answer: object, show: bool = False) -> Verdict:
        """The verdict as it is printed: with the value from the second different wrong answer on,
        or at once where it shall `show`."""
        verdict = question.judge(answer)
        if verdict.right:
            return verdict
        if show:
            return verdict.telling(verdict.computed or question.computed)
        if not verdict.tried:
            return verdict
        wrong = self._wrong.setdefault(question.id, set())
        wrong.add(verdict.tried)
        return verdict.telling(verdict.computed) if len(wrong) > 1 else verdict.keeping_the_value()

    def forget(self) -> None:
        """As if nothing had been tried yet."""
        self._wrong.clear()
