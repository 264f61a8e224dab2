"""What the studio's requests may hold: strict types, and a bound on every size."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

__all__ = [
    "Compared",
    "Curve",
    "Designed",
    "Grid",
    "MonitorStart",
    "Question",
    "Records",
    "RunChange",
    "RunTest",
    "Sized",
    "plain",
]

MOST_LABELS = 1000

Finite = Annotated[float, Field(allow_inf_nan=False)]
Epsilon = Annotated[float, Field(gt=0, le=100, allow_inf_nan=False, description="privacy loss")]
Share = Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=10**9)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Neighbours = Annotated[
    Literal["replace", "add-remove"],
    Field(description="what privacy hides: a record's content (the number of records is public), or its presence too"),
]
LawText = Annotated[str, Field(min_length=1, max_length=2000, examples=["normal(0, 1)"])]
LawTable = Annotated[
    dict[Annotated[str, Field(max_length=200)], Annotated[Finite, Field(ge=0, le=1)]],
    Field(min_length=1, max_length=MOST_LABELS),
]


class _Body(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class _Pair(_Body):
    """P and Q: texts such as ``normal(0, 1)``, or tables from label to probability."""

    null: LawText | LawTable
    alternative: LawText | LawTable


class Question(_Pair):
    """P, Q and the privacy loss."""

    epsilon: Epsilon


class _Tested(Question):
    """P, Q, the privacy loss and what it hides."""

    neighbours: Neighbours = "replace"


class _Goal(_Tested):
    """What a test must achieve: an advantage (2/3 unless said otherwise), or alpha and beta."""

    advantage: Share | None = None
    alpha: Share | None = None
    beta: Share | None = None


class Designed(_Tested):
    """A test on n records; ``alpha`` bounds its type I error. ``document`` asks for the whole test as JSON."""

    n: Count
    alpha: Share | None = None
    document: bool = False


class Sized(_Goal):
    """How many records the goal needs; ``bound`` asks for the number that no test can do without."""

    bound: bool = False


class Curve(_Tested):
    """Error rates at several n."""

    n: Annotated[list[Count], Field(min_length=1, max_length=8)]
    alpha: Share | None = None


class Grid(_Pair):
    """The theorem at several epsilons."""

    epsilons: Annotated[list[Epsilon], Field(min_length=1, max_length=40)]


class Compared(Question):
    """All tests side by side."""

    advantage: Share | None = None


class _Source(_Body):
    """Where the records are: a path inside the studio's folder, or the name that an upload was given."""

    path: Annotated[str, Field(min_length=1, max_length=1000)] | None = None
    upload: Annotated[str, Field(min_length=1, max_length=64)] | None = None

    @model_validator(mode="after")
    def _one(self) -> _Source:
        if (self.path is None) == (self.upload is None):
            raise ValueError("give either path or upload")
        return self


class _Run(Question):
    source: _Source
    column: Name | None = None
    dataset: Name
    request: Name


class RunTest(_Run):
    """Run a test once, charged to ``dataset`` under the name ``request``. The same request again is free.

    Without ``n`` the test is designed for as many records as the file has; that number is public. With
    ``neighbours="add-remove"`` it is hidden, and ``n`` is the number that you expect.
    """

    neighbours: Neighbours = "replace"
    n: Count | None = None
    alpha: Share | None = None


class RunChange(_Run):
    """Locate a change once, charged likewise. ``false_alarm`` allows the answer "no change"."""

    order: Name | None = None
    beta: Share = 0.1
    false_alarm: Share | None = None


class MonitorStart(Question):
    """Watch a stream: records sent to it, or the lines of a file in the folder, as they are added.

    ``rotated``: a file that takes the place of the one that is followed holds new records, and so does one that was cut
    short. Otherwise the monitor stops there, and says so.
    """

    beta: Share = 0.1
    mean_time_between_false_alarms: Annotated[float, Field(ge=1, le=1e12, allow_inf_nan=False)] | None = None
    path: Annotated[str, Field(min_length=1, max_length=1000)] | None = None
    rotated: bool = False
    dataset: Name
    request: Name


class Records(_Body):
    """Records for a monitor, one text each, as they would stand on a line."""

    lines: Annotated[list[Annotated[str, Field(max_length=1000)]], Field(min_length=1, max_length=20_000)]


def plain(body: BaseModel) -> dict[str, Any]:
    """The body as JSON values."""
    return body.model_dump()
