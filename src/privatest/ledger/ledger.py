"""The ledger of privacy budgets: requests to it, the checks before a charge, and the class that users see."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

from privatest import numbers
from privatest.charge_before_release import ANYBODY, RecordedRelease, differences
from privatest.data_addresses import DataAddress, is_covered, normalized_covers, overlap, touches
from privatest.errors import (
    BudgetExceeded,
    InvalidInput,
    LedgerTampered,
    MissingExtra,
    RequestConflict,
    SourceNotCovered,
    note_charge,
    shown,
)
from privatest.ledger.budgets import (
    Account,
    Amount,
    Inconvertible,
    Protection,
    account_of,
    amount,
    conversion_loss,
    price_text,
)
from privatest.ledger.hash_chain import (
    ADVANCE,
    EMPTY,
    SOURCE,
    Entry,
    HashChain,
    Head,
    LedgerRow,
    amount_text,
    converted_prices,
    is_same_source,
)
from privatest.numbers import Number
from privatest.privacy.notion import NEIGHBOURS, Notion, Pure, as_notion

if TYPE_CHECKING:
    from privatest.ledger.store import Book, Target


LONGEST_NAME = 200
"""The most characters of a name. PostgreSQL limits an index entry, which dataset and request share, to 2,704 bytes."""


def check_name(**arguments: object) -> None:
    """Raise InvalidInput unless the one named argument is a short line of text."""
    ((word, value),) = arguments.items()
    if not isinstance(value, str):
        raise InvalidInput(f"{word}={shown(value)} must be text.")
    if len(value) > LONGEST_NAME:
        raise InvalidInput(
            f"{word}={value[:20] + '...'!r} has {len(value)} characters; {LONGEST_NAME} is the most. Use a hash of it."
        )
    if not value or value != value.strip() or not value.isprintable():
        raise InvalidInput(f"{word}={shown(value)} must be one line of text, without space at either end.")


def json_note(**facts: object) -> str | None:
    """Return the facts that are not None as JSON text; None if there are none."""
    present = {name: fact for name, fact in facts.items() if fact is not None}
    return json.dumps(present, allow_nan=False) if present else None


def json_text(function: str, document: Mapping[str, object], fate: str) -> str:
    """Return what a user's function returned as JSON text; raise InvalidInput if JSON cannot hold it.

    Args:
        function: its name, for the message.
        document: what it returned, and facts beside it.
        fate: what becomes of the charge, for the message.
    """
    try:
        return json.dumps(document, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        # The cause is not shown: it may quote what was computed from the data.
        raise InvalidInput(
            f"{function} returned what JSON cannot hold: a value is NaN, infinite, or not made of text, numbers, truth "
            f"values, None, lists and dicts. {fate}"
        ) from None


def charge_text(draw: object, **facts: object) -> str:
    """Return a charge's draw, and facts about the charge, as JSON text."""
    present = {name: fact for name, fact in facts.items() if fact}
    return json_text("draw", {**present, "draw": draw}, "Nothing was charged.")


def release_text(release: object, source: object = None) -> str:
    """Return a release and its source as JSON text; raise InvalidInput, leaving the charge, if JSON cannot hold it."""
    if not isinstance(release, Mapping):
        raise InvalidInput(f"release returned a {type(release).__name__}; a release is a dict. The charge stays.")
    noted = {} if source is None else {SOURCE: source}
    return json_text("release", {**release, **noted}, "The charge stays.")


class Request(NamedTuple):
    """A request: the data set that pays, its own name, the price, whom it protects, the design and its settings."""

    dataset: str
    name: str
    price: Notion
    protected: Protection
    design: str
    settings: Mapping[str, Any]


def request_price(rule: str, epsilon: Number | None, privacy: Any) -> Notion:
    """Return the price or budget that ``epsilon`` or ``privacy`` states. The error about epsilon ends with ``rule``."""
    if privacy is None:
        if epsilon is None:
            raise InvalidInput("epsilon is missing: give epsilon=1, say, or privacy='zcdp(0.5)'.")
        return Pure(numbers.positive(rule, epsilon=epsilon))
    if epsilon is not None:
        raise InvalidInput(f"epsilon={shown(epsilon)} and privacy={shown(privacy)} were both given. Give one of them.")
    result = as_notion(privacy)
    if result.price is None:
        raise InvalidInput(f"privacy={shown(privacy)} is no privacy at all: no budget pays for it.")
    return result


def price_words(price: Notion) -> str:
    """Return a price for messages: "epsilon=0.3", "privacy=zcdp(0.5)"."""
    return f"epsilon={amount_text(amount(price))}" if isinstance(price, Pure) else f"privacy={amount_text(price)}"


def spent_under(book: Book, dataset: str, newest: LedgerRow | None, account: Account, protected: Protection) -> str:
    """Return what is spent of a data set under a new grant, recomputed from the charges if its notion changes."""
    if newest is None:
        return account.nothing
    before = book.protected(dataset)
    if newest.budget == account.budget and protected == before:
        return newest.spent
    try:
        return account.of(converted_prices(book.prices(dataset), protected))
    except Inconvertible:
        raise InvalidInput(
            f"{price_words(account.budget)} for {protected} cannot be granted to data set {dataset!r}: what is spent "
            f"of its budget of {newest.budget} for {before} does not convert into it. Grant it in a notion that all "
            "earlier requests convert into, and for the neighbours that they protect."
        ) from None


def spent_after(newest: LedgerRow, price: Notion, protected: Protection, budgeted: Protection) -> str:
    """Return what is spent after one more charge. Raises if the price does not fit the budget or convert into it."""
    account, budget, dataset = newest.account, newest.budget, newest.dataset
    counts = budgeted.converted(price, protected)
    if counts is None:
        raise InvalidInput(other_neighbours(dataset, price, protected, budgeted))
    remark = "" if counts == price else f" for {protected} (for {budgeted} that is {price_words(counts)})"
    try:
        after = account.after(newest.spent, counts)
    except Inconvertible:
        spent, left = totals(newest)
        raise InvalidInput(
            f"{price_words(price)} asked{remark} does not convert into the budget of data set {dataset!r}, {budget} "
            f"({amount_text(spent)} spent, {amount_text(left)} left): no such guarantee follows from it. Ask in "
            "another notion, or have a budget granted that it converts into, with ledger.grant()."
        ) from None
    if not account.fits(after):
        spent, left = totals(newest)
        comes = "" if isinstance(budget, Pure) else f" ({amount_text(spent)} spent)"
        cost, rest = price_words(price), amount_text(left)
        if isinstance(left, Notion) and cost.endswith(rest):  # equal to six digits
            cost, rest = f"privacy={price.text}", left.text
        raise BudgetExceeded(
            f"{cost} asked{remark}, {rest} left of {amount_text(amount(budget))}{comes} for data set "
            f"{dataset!r}. Ask for less, or have the budget raised with ledger.grant().",
            dataset,
            amount(price),
            spent,
            left,
        )
    return after


def other_neighbours(dataset: str, price: Notion, requested: Protection, budget: Protection) -> str:
    """Return the message about a request that protects other neighbours than the budget does."""
    unit = "..." if requested.unit == ANYBODY else repr(requested.unit or "")
    grant = f"ledger.grant({dataset!r}, neighbours={requested.neighbours!r}, unit={unit}, ...)"
    remedies = [] if requested.neighbours == budget.neighbours else [f"with neighbours={budget.neighbours!r}"]
    if requested.unit != budget.unit:
        remedies.append("without unit" if budget.unit is None else f"with unit={budget.unit!r}")
    return (
        f"{price_words(price)} asked for {requested} cannot be charged to data set {dataset!r}, whose budget is for "
        f"{budget}: that does not follow from it. Ask {' and '.join(remedies)}, or have the budget granted for what is "
        f"asked: {grant}."
    )


def check_protected(**promises: object) -> None:
    """Raise InvalidInput for wrong ``neighbours`` or ``unit``, if given; an empty unit means none."""
    if "neighbours" in promises:
        numbers.choice(NEIGHBOURS, neighbours=promises["neighbours"])
    if promises.get("unit", "") != "":
        check_name(unit=promises["unit"])


def totals(newest: LedgerRow) -> tuple[Amount, Amount]:
    """Return what is spent and what is left of a data set's budget, as users see amounts."""
    return amount(newest.account.total(newest.spent)), amount(newest.account.left(newest.spent))


def check_same(charge: LedgerRow, question: Request) -> None:
    """Raise RequestConflict if the request's name was charged for something else."""
    before = charge.price
    where = f"Request {charge.request!r} on data set {charge.dataset!r}"
    remedy = "Give this request another name, or repeat the earlier one unchanged."
    if before != question.price:
        raise RequestConflict(
            f"{where} was charged before with {price_words(before)}, now asked with "
            f"{price_words(question.price)}. {remedy}"
        )
    if charge.design != question.design:
        noted = charge.about.get("settings")
        named = differences(noted, question.settings) if noted and question.settings else ""
        raise RequestConflict(
            f"{where} was charged before for another design: {named}. {remedy}"
            if named
            else f"{where} was charged before for the design {charge.design!r}, now asked for "
            f"{question.design!r}. {remedy}"
        )
    if charge.protected != question.protected:
        raise RequestConflict(
            f"{where} was charged before for {charge.protected}, now asked for {question.protected}. {remedy}"
        )


def check_same_source(charge: LedgerRow, source: DataAddress | None) -> None:
    """Raise RequestConflict if the second step of an answer would read another source than the first step did."""
    noted = charge.about.get("source") or {}
    if source is None or is_same_source(noted, source) is not False:
        return
    raise RequestConflict(
        f"Request {charge.request!r} on data set {charge.dataset!r} was charged for {noted.get('name')!r}, and the "
        f"second step of its answer is not drawn yet: {source.name!r} cannot be read for it. Repeat it with the same."
    )


def check_covered(covers: Mapping[str, list[str]], dataset: str, source: DataAddress | None) -> None:
    """Raise SourceNotCovered for a source that the data set's grant does not name, or that another grant names."""
    name = "data of an unknown source" if source is None else repr(source.name)
    own = covers.get(dataset)
    if own is not None and not is_covered(source, own):
        raise SourceNotCovered(
            f"Data set {dataset!r} is granted for {brief(own)}; {name} is none of them. Give one of those, charge the "
            f"data set that {name} belongs to, or have it added: ledger.grant({dataset!r}, epsilon=..., covers=[...])."
        )
    for other, named in covers.items():
        if other != dataset and touches(source, named):
            remedy = (
                f"Charge {other!r}."
                if own is None
                else f"Take it out of one of them: ledger.grant({other!r}, covers=...)."
            )
            raise SourceNotCovered(
                f"{name} belongs to data set {other!r}, whose grant names it or a part of it; {dataset!r} is another "
                f"one, and the same records would have two budgets. {remedy}"
            )


def brief(covers: list[str]) -> str:
    """Return the sources that a grant names for messages; files are named without their folders."""
    names = [repr(one if "://" in one or "/" not in one else os.path.basename(one.rstrip("/"))) for one in covers]
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def read_fingerprint(text: str) -> Head:
    """Return the number of rows and the hash that ``ledger.fingerprint()`` wrote."""
    count, colon, digest = str(text).partition(":")
    if not (colon and count.isdecimal() and len(count) < 20 and len(digest) == len(EMPTY.hash)):
        raise InvalidInput(f"since={shown(text)} must be what ledger.fingerprint() returned, count:hash.")
    return Head(int(count), digest)


ROWS_AT_A_TIME = 2000
LONGEST_TIMEOUT = 86_400
"""A day in seconds; PostgreSQL takes at most 24 days."""


class Ledger:
    r"""Privacy budgets of data sets, kept in a SQLite file or a PostgreSQL database.

    The privacy loss of all requests on a data set together is at most the sum of their epsilons, so

    .. math:: \sum_{\text{requests}} \varepsilon_i \le \text{granted}

    holds at every instant, in exact rationals: ten times 0.1 fits in 1 exactly. A budget may be granted in another
    notion, ``privacy="zcdp(0.5)"``, "gdp(1)", "approx(1, 1e-6)", ...; charges in any notion that converts into it are
    then composed in it, which costs less than adding up losses.

    Guarantees:
        - Charged before released: a release is recorded or returned only after its charge and draw are on disk.
        - Once: a request of one name on one data set is charged once, drawn once, and has one release for ever.
        - All or nothing: a call that ends with an error of the ledger changed nothing. If something fails or is killed
          after the charge, the charge stays, and the same request again completes it from the recorded draw at no
          cost.
        - Forwards: a stream that a request began is released once (:meth:`advance`).
        - Tamper-evident: :meth:`verify` finds every edit but a consistent forgery (``ledger/hash_chain.py`` says how).
          With a fingerprint kept elsewhere (every release carries one) it also finds forgeries before that fingerprint.
          Nothing is charged to a ledger that does not verify.

    A ledger may be used by many threads and processes at once, and after a fork. Of what is computed from data it
    stores draws and releases only. Names are stored as they are, so put nothing secret in them.

    Args:
        target: path of the SQLite file, or ``postgresql://user@host/database``.
        create: whether to start an empty ledger if there is none.
        timeout: seconds to wait for other users of the ledger before ``LedgerLocked`` is raised.

    >>> import tempfile, pathlib
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger(pathlib.Path(folder.name) / "ledger.db")
    >>> ledger.grant("claims", epsilon=1)
    >>> ask = {"dataset": "claims", "design": "sha256:5f2d", "draw": lambda: {"decision": "null"}}
    >>> ledger.perform(request="q3", epsilon=0.8, **ask)
    {'decision': 'null'}
    >>> ledger.left("claims")
    Fraction(1, 5)
    >>> ledger.perform(request="q4", epsilon=0.3, **ask)
    Traceback (most recent call last):
    ...
    privatest.errors.BudgetExceeded: epsilon=0.3 asked, 0.2 left of 1.0 for data set 'claims'. ...
    >>> ledger.verify()
    3
    >>> folder.cleanup()
    """

    def __init__(self, target: Target, *, create: bool = True, timeout: float = 30.0) -> None:
        try:
            from privatest.ledger.store import Address, Store  # an extra: SQLAlchemy
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != "sqlalchemy":
                raise
            raise MissingExtra.of("A ledger needs SQLAlchemy.", "ledger") from None
        if (seconds := numbers.positive(timeout=timeout)) > LONGEST_TIMEOUT:
            raise InvalidInput(f"timeout={timeout!r} must be at most {LONGEST_TIMEOUT} seconds.")
        self._timeout = float(seconds)
        self._address = Address.of(target)
        self._store = Store(self._address, self._timeout, create=create)
        self._checked: HashChain | None = None  # the rows that this object has verified
        self._seen = EMPTY  # the newest row that this object has written

    def grant(
        self,
        dataset: str,
        *,
        epsilon: Number | None = None,
        privacy: Any = None,
        covers: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | None = None,
        neighbours: str | None = None,
        unit: str | None = None,
    ) -> None:
        """Set the total budget of a data set, the neighbours that it protects, and the files or tables it is for.

        A later call may raise the budget, or lower it to no less than what is spent. To grant the same again changes
        nothing.

        Args:
            dataset: its name.
            epsilon: the total that all requests may spend together.
            privacy: the same in another notion, as ``privatest.zcdp(0.5)`` or "zcdp(0.5)". Charges convert into it and
                are composed: rho adds up, so does mu squared, and so do Renyi divergences of one order; (epsilon,
                delta) is composed by privacy-loss distributions (needs the extra ``accounting``), under the assumption
                that nobody chooses the next *price* by looking at earlier answers. The notion may be changed later if
                what is spent converts into the new one.
            covers: files, globs, folders and tables (``address::table``) that belong to the data set, and
                ``"data in memory"`` for data frames and arrays, which cannot be told apart. Requests that read anything
                else are refused, and so are requests of other data sets that read these. None: unchanged, at first any
                source. An empty list: any source again.
            neighbours: what the budget hides: "replace", that one record is replaced by another, or "add-remove", that
                one record is there or not. Losses add up only if they are about the same neighbours, so a request for
                "add-remove" counts twice in a budget for "replace" (in other notions: as two records do), and a
                request for "replace" is refused by a budget for "add-remove". None: unchanged, at first "replace".
            unit: the column that names the person whose records are protected together; requests must name the same
                one. None: unchanged, at first single records. Empty text: single records again.
        """
        check_name(dataset=dataset)
        budget = request_price("A budget is the total that all requests may spend together.", epsilon, privacy)
        account, text = account_of(budget), price_text(budget)
        named = None if covers is None else normalized_covers(covers)
        about = {name: value for name, value in {"neighbours": neighbours, "unit": unit}.items() if value is not None}
        check_protected(**about)
        if unit == ANYBODY:
            raise InvalidInput(
                f"unit={unit!r} must be the name of a column: a budget is for the persons of one column."
            )
        self._check_all()
        with self._write() as book:
            book.tail()
            newest = book.newest_of(dataset)
            standing = book.protected(dataset)
            protected = standing.after(about) or standing
            spent = spent_under(book, dataset, newest, account, protected)
            if not account.fits(spent):
                already = amount_text(amount(account.total(spent)))
                raise InvalidInput(
                    f"{price_words(budget)} is less than the {already} already spent on data set "
                    f"{dataset!r}. Grant at least {already}."
                )
            before = book.covers()
            for other, parts in before.items():
                if other != dataset and (both := overlap(named or (), parts)):
                    raise InvalidInput(
                        f"covers={brief(both)} belongs to data set {other!r} already: the same records would have two "
                        f"budgets. Charge {other!r}, or take it away there first: ledger.grant({other!r}, covers=...)."
                    )
            changed = named is not None and named != before.get(dataset, [])
            if newest is None or newest.granted != text or changed or protected != standing:
                document = json_note(covers=named if changed else None, **protected.differences(standing))
                book.append("grant", dataset, epsilon=text, granted=text, spent=spent, release=document)

    def covers(self, dataset: str) -> list[str] | None:
        """Return the files and tables that a data set's grant names; None if it allows any."""
        with self._read_of(dataset) as book:
            return book.covers().get(dataset)

    def protects(self, dataset: str) -> Protection:
        """Return what a data set's budget protects: its ``neighbours`` and ``unit``."""
        with self._read_of(dataset) as book:
            return book.protected(dataset)

    def granted(self, dataset: str) -> Any:
        """Return the total budget of a data set: an exact epsilon, or a notion if it was granted in one."""
        return amount(self._standing(dataset).budget)

    def spent(self, dataset: str) -> Any:
        """Return what is spent of a data set's budget, by completed requests and others.

        For a budget in epsilon this is the exact sum of the epsilons; otherwise it is a notion, rounded up; 0 if
        nothing is spent.
        """
        newest = self._standing(dataset)
        return amount(newest.account.total(newest.spent))

    def left(self, dataset: str) -> Any:
        """Return what is left of a data set's budget, in its notion; 0 if nothing is.

        If the budget is in (epsilon, delta) and something is spent, the result is an epsilon that certainly fits.
        """
        newest = self._standing(dataset)
        return amount(newest.account.left(newest.spent))

    def added_up(self, dataset: str) -> Any:
        """Return what is spent if losses are only added up; the difference to :meth:`spent` is what composition saves.

        It is in the notion of the budget; None if the sum is no guarantee in that notion.
        """
        with self._read_of(dataset) as book:
            newest = self._newest(book, dataset)
            prices = converted_prices(book.prices(dataset), book.protected(dataset))
        result = newest.account.added_up(prices)
        return None if result is None and prices else amount(result)

    def datasets(self) -> list[str]:
        """Return the names of all data sets that have a budget."""
        with self._read() as book:
            return book.datasets()

    def perform(
        self,
        *,
        dataset: str,
        request: str,
        epsilon: Number | None = None,
        privacy: Any = None,
        design: str,
        draw: Callable[[], Any],
        release: Callable[[Any], Mapping[str, Any]] | None = None,
        further: Callable[[Any], Any] | None = None,
        source: DataAddress | None = None,
        settings: Mapping[str, Any] | None = None,
        neighbours: str = "replace",
        unit: str | None = None,
    ) -> RecordedRelease:
        """Draw, record the draw together with the charge, compute the release from the record, and record it too.

        The same request again returns the recorded release, without a new charge and without a call of ``draw`` or
        ``release``. A request that was charged but not completed goes on from the recorded draw. If several processes
        make one request at the same time, all return what was recorded first.

        Args:
            dataset: whose budget pays.
            request: name of this request, unique within the data set.
            epsilon: privacy loss of the draw; a float is read as its shortest decimal.
            privacy: the same in another notion, as ``privatest.gdp(0.1)`` or "gdp(0.1)"; it is kept as it is.
            design: fingerprint of everything the release depends on besides the data.
            draw: function without arguments, called outside any transaction, if the charge is possible. It reads the
                data and returns what may be released of them, in values that JSON can hold. If it raises, the exception
                passes through, and nothing is charged.
            release: function of the draw, as JSON reads it back. It returns the release, a dict that JSON can hold; it
                draws nothing and reads nothing private. If it raises, the exception passes through, with a note that
                the charge stays. None: the draw is the release.
            further: the second step of an answer in two steps: a function of the recorded draw, called outside any
                transaction. It may read the data again, and returns everything that was drawn, which is recorded before
                ``release`` gets it. If it raises, the charge and the first draw stay. None: there is one step.
            source: what ``draw`` reads. It is recorded, and compared with what the data set's grant covers.
            settings: the design's settings by name, recorded so that a later request of this name can be told what
                differs.
            neighbours, unit: whom the price protects, as for :meth:`grant`. Unit "*" stands for records of which each
                names its person.

        Returns:
            The release as JSON reads it back (tuples have become lists), with its ``receipt``.

        Raises:
            BudgetExceeded, RequestConflict, SourceNotCovered, LedgerTampered, InvalidInput: nothing was charged. For
                example, InvalidInput is raised for a notion that does not convert into the budget's.
        """
        price = request_price("Nothing private is free.", epsilon, privacy)
        price_text(price)
        check_protected(neighbours=neighbours, **({} if unit is None else {"unit": unit}))
        question = Request(dataset, request, price, Protection(neighbours, unit or None), design, dict(settings or {}))
        for name, function in {"draw": draw, "release": release or dict, "further": further or dict}.items():
            if not callable(function):
                raise InvalidInput(f"{name} must be a function, not a {type(function).__name__}.")
        again: dict[str, Any] = {"dataset": dataset, "request": request, "privacy": price, "design": design}
        done = self.released(**again, source=source, settings=settings, neighbours=neighbours, unit=unit)
        if done is not None:
            return done
        self._check_all()
        with self._write() as book:  # the data are not read if the ledger cannot be written
            book.tail()
            rows, _ = self._allowed(book, question, source)
        first = drawn = not rows
        if drawn:
            result = draw()
            if release is None and not isinstance(result, Mapping):
                raise InvalidInput(
                    f"draw returned a {type(result).__name__}; without release= it is the release, a dict. Nothing was "
                    "charged."
                )
            rows, first = self._charge(question, source, result)
        charge, newest = rows["charge"], rows.get("release") or rows.get("draw") or rows["charge"]
        try:
            if newest.kind == "charge" and further is not None:
                if not drawn:
                    check_same_source(charge, source)
                drawn = True
                text = json_text("further", {"draw": further(charge.about["draw"])}, "The charge stays.")
                newest = self._record(dataset, request, "draw", text)
            if newest.kind != "release":
                whole = newest.about["draw"]
                text = release_text(whole if release is None else release(whole), charge.about.get("source"))
                newest = self._record(dataset, request, "release", text)
        except LedgerTampered:
            raise
        except BaseException as error:
            note_charge(
                error,
                f"{price_words(price)} of data set {dataset!r} stays charged for request {request!r}. The same "
                "request again completes it, without a new charge.",
            )
            raise
        return self._recorded(newest, question.protected, source, replayed=not first, read=drawn and not first)

    def released(
        self,
        *,
        dataset: str,
        request: str,
        epsilon: Number | None = None,
        privacy: Any = None,
        design: str,
        source: DataAddress | None = None,
        settings: Mapping[str, Any] | None = None,
        neighbours: str = "replace",
        unit: str | None = None,
    ) -> RecordedRelease | None:
        """Return the release of a completed request; None if there is none yet. Nothing is charged.

        Its ``receipt`` says when it was recorded and for which source; ``source``, ``settings``, ``neighbours`` and
        ``unit`` are only compared.

        Raises:
            RequestConflict: if the request's name was used for another epsilon or design.
        """
        check_name(request=request)
        check_name(design=design)
        price = request_price("", epsilon, privacy)
        with self._read_of(dataset) as book:
            earlier = book.request(dataset, request)
        charge, release = earlier.get("charge"), earlier.get("release")
        if charge is None:
            return None
        question = Request(dataset, request, price, Protection(neighbours, unit or None), design, settings or {})
        check_same(charge, question)
        return None if release is None else self._recorded(release, question.protected, source, replayed=True)

    def _recorded(
        self, row: LedgerRow, protected: Protection, source: DataAddress | None, **how: bool
    ) -> RecordedRelease:
        """Return a recorded release, with a receipt that says how its price was counted."""
        with self._store.read() as book:
            budget = book.protected(row.dataset)
        price, lost = budget.converted(row.price, protected) or row.price, []
        if price != row.price:
            lost = [f"{row.price} for {protected} counts as {price} for {budget}"]
        lost += [text for text in [conversion_loss(price, row.budget)] if text is not None]
        return row.recorded(source, converted="; ".join(lost) or None, **how)

    def advance(self, *, dataset: str, request: str, position: int, mark: str, after: str) -> None:
        """Record how far the stream that a request began was released; called before any of it is shown.

        A stream goes from mark to mark, so that two copies of one state cannot both go on: the second one comes from a
        mark that is no longer the newest. Nothing is charged. To record the same mark again changes nothing.

        Args:
            dataset, request: the completed request that began the stream.
            position: number of records released, including this time.
            mark: a new name for the stream's present position.
            after: the mark of its position before; "" for a stream that has not advanced yet.

        Raises:
            RequestConflict: if the stream has gone on from another mark.
        """
        check_name(dataset=dataset)
        check_name(request=request)
        check_name(mark=mark)
        if type(position) is not int or position < 0:
            raise InvalidInput(f"position={position!r} must be a number of records, 0 or more.")
        with self._write() as book:
            book.tail()
            self._newest(book, dataset)
            earlier = book.request(dataset, request)
            if "release" not in earlier:
                raise InvalidInput(f"Request {request!r} on data set {dataset!r} began no stream that could go on.")
            before = book.advanced(dataset, request)
            newest: dict[str, Any] = {"mark": "", "position": 0} if before is None else json.loads(before.release or "")
            if newest["mark"] == mark:
                return
            if newest["mark"] != after:
                raise RequestConflict(
                    f"The stream of request {request!r} on data set {dataset!r} was released up to record "
                    f"{newest['position']} from a newer state than this one. To go on from an older one would release "
                    f"records a second time, at {price_words(earlier['charge'].price)} more for each of "
                    "them, which nobody paid: use the newest state, or make a new request."
                )
            kind = ADVANCE.format(1 if before is None else int(before.kind.partition(" ")[2]) + 1)
            step = {"position": max(position, newest["position"]), "after": newest["mark"], "mark": mark}
            book.follow(earlier["charge"], kind, json.dumps(step))

    def history(self, dataset: str | None = None) -> list[Entry]:
        """Return every grant, charge, draw, release and advance, oldest first, of all data sets or of one."""
        with self._read() if dataset is None else self._read_of(dataset) as book:
            return [row.entry() for row in book.history(dataset)]

    def fingerprint(self) -> str:
        """Return ``count:hash``: the number of rows and the newest hash. Kept elsewhere, it pins all rows up to now."""
        with self._read() as book:
            return book.tail().fingerprint

    def verify(self, since: str | None = None) -> int:
        """Check every hash, every link and every sum of the ledger, and return the number of rows.

        Args:
            since: an earlier fingerprint; the rows up to it must still be the same.

        Raises:
            LedgerTampered: naming the first bad row.
        """
        chain = HashChain(self._address.name, pin=EMPTY if since is None else read_fingerprint(since))
        for rows, head in self._portions():
            for row in rows:
                chain.extend(row)
            if not rows:
                chain.finish(head)
        return chain.head.rows

    def _check_all(self) -> None:
        """Verify the ledger before a charge, and that it still has the newest row that this object has seen.

        An older copy that is put back under a ledger in use is thus refused. Rows that this object has verified before
        are only compared with what they were, by a sha256 over all of their columns; new rows are verified. If anything
        differs, all rows are verified anew.
        """
        # Removed while in use: another thread that verifies meanwhile starts from the first row.
        chain, self._checked = self._checked or HashChain(self._address.name), None
        chain.pin = max(self._seen, chain.head)
        rows_read, before, now = chain.head.rows, chain.read.digest(), hashlib.sha256()
        for rows, head in self._portions():
            for row in rows[:rows_read]:
                now.update(row.as_read())
            if rows_read > 0 and (not rows or (len(rows) >= rows_read and now.digest() != before)):
                self.verify(since=chain.pin.fingerprint)
                return
            for row in rows[rows_read:]:
                chain.extend(row)
            rows_read = max(rows_read - len(rows), 0)
            if not rows:
                chain.finish(head)
        self._checked = chain

    def _portions(self) -> Iterator[tuple[list[LedgerRow], Head]]:
        """Yield all rows, unchecked, in portions, each with the head record at that time; the last portion is empty.

        Writers need not wait for all portions. Rows never change, so the portions fit together.
        """
        after: int | None = None  # None: also a row that was inserted before row 1
        while True:
            with self._store.read() as book:
                rows, head = book.rows(after, ROWS_AT_A_TIME), book.head()
            yield rows, head
            if not rows:
                return
            after = rows[-1].sequence

    def close(self) -> None:
        """Close idle connections (SQLite has none). The ledger may be used again afterwards."""
        self._store.close()

    @contextmanager
    def _read(self) -> Iterator[Book]:
        """Begin to read; raise LedgerTampered if the newest row was changed."""
        with self._store.read() as book:
            book.tail()
            yield book

    @contextmanager
    def _read_of(self, dataset: str) -> Iterator[Book]:
        """Begin to read about a data set; raise InvalidInput if it has no budget."""
        check_name(dataset=dataset)
        with self._read() as book:
            self._newest(book, dataset)
            yield book

    @contextmanager
    def _write(self) -> Iterator[Book]:
        """Begin to write, unless the ledger is an older copy than this object has written to."""
        with self._store.write() as book:
            if (head := book.head()).rows < self._seen.rows:
                HashChain(self._address.name, head=head, pin=self._seen).finish(head)
            yield book
        self._seen = max(self._seen, book.written)

    def _allowed(self, book: Book, question: Request, source: DataAddress | None) -> tuple[dict[str, LedgerRow], str]:
        """Return a request's rows, none for a new one, and what is then spent. Raises if it is not allowed."""
        newest = self._newest(book, question.dataset)
        earlier = book.request(question.dataset, question.name)
        if charge := earlier.get("charge"):
            check_same(charge, question)
            return earlier, newest.spent
        check_covered(book.covers(), question.dataset, source)
        return {}, spent_after(newest, question.price, question.protected, book.protected(question.dataset))

    def _charge(self, question: Request, source: DataAddress | None, draw: object) -> tuple[dict[str, LedgerRow], bool]:
        """Record charge and draw in one row, unless another process did; return the rows, and whether it did not."""
        facts = {
            "settings": question.settings,
            "source": None if source is None else {"name": source.name, "identity": source.identity},
            **question.protected.differences(Protection()),
        }
        text = charge_text(draw, **facts)
        with self._write() as book:
            book.tail()
            rows, spent = self._allowed(book, question, source)
            if rows:
                return rows, False
            row = book.append(
                "charge",
                question.dataset,
                request=question.name,
                design=question.design,
                epsilon=price_text(question.price),
                granted=self._newest(book, question.dataset).granted,
                spent=spent,
                release=text,
            )
        return {"charge": row}, True

    def _record(self, dataset: str, request: str, kind: str, text: str) -> LedgerRow:
        """Record a release or a further draw, unless another process did, and return the recorded row."""
        with self._write() as book:
            book.tail()
            earlier = book.request(dataset, request)
            charge = earlier.get("charge")
            if charge is None:
                raise LedgerTampered(
                    f"The charge of request {request!r} on data set {dataset!r} is gone from the ledger "
                    f"{book.ledger}. Its release is not given out."
                )
            if (result := earlier.get("release") or earlier.get(kind)) is not None:
                return result
            return book.follow(charge, kind, text)

    def _standing(self, dataset: str) -> LedgerRow:
        with self._read_of(dataset) as book:
            return self._newest(book, dataset)

    def _newest(self, book: Book, dataset: str) -> LedgerRow:
        newest = book.newest_of(dataset)
        if newest is None:
            hint = numbers.suggestion(dataset, book.datasets())
            raise InvalidInput(
                f"No data set {dataset!r} in the ledger {book.ledger}.{hint} "
                "A data set gets its budget with ledger.grant(dataset, epsilon=...)."
            )
        return newest

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> tuple[Callable[..., Ledger], tuple[Any, ...]]:
        where = self._address.path or self._address.url
        return _restore, (where, self._timeout)

    def __repr__(self) -> str:
        return f"Ledger({self._address.name})"


def _restore(target: Target, timeout: float) -> Ledger:
    return Ledger(target, create=False, timeout=timeout)
