"""The ledger of privacy budgets, as users see it."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any

from privatest import numbers
from privatest.addresses import DataAddress, normalized_covers, overlap
from privatest.charge import ANYBODY, RecordedRelease
from privatest.errors import (
    InvalidInput,
    LedgerTampered,
    MissingExtra,
    RequestConflict,
    note_charge,
    shown,
)
from privatest.ledger.account import Protected, account_of, amount, conversion, written
from privatest.ledger.hash_chain import ADVANCE, EMPTY, Entry, HashChain, Head, LedgerRow, counted, exact
from privatest.ledger.request import (
    Request,
    affordable,
    brief,
    charge_text,
    check_covered,
    check_name,
    check_protected,
    check_same,
    check_same_source,
    further_text,
    noted,
    release_text,
    request_price,
    respent,
    source_document,
    worded,
)
from privatest.numbers import Number

if TYPE_CHECKING:
    from privatest.ledger.store import Book, Target


def read_fingerprint(text: str) -> Head:
    """What ``ledger.fingerprint()`` returned, taken apart."""
    count, colon, digest = str(text).partition(":")
    if not (colon and count.isdecimal() and len(count) < 20 and len(digest) == len(EMPTY.hash)):
        raise InvalidInput(f"since={shown(text)} must be what ledger.fingerprint() returned, count:hash.")
    return Head(int(count), digest)


ROWS_AT_A_TIME = 2000
LONGEST_TIMEOUT = 86_400  # a day; PostgreSQL takes no more than 24


class Ledger:
    r"""Budgets of privacy per data set, in a SQLite file or a PostgreSQL database.

    The privacy loss of all requests on a data set together is at most the sum of their epsilons, so

    .. math:: \sum_{\text{requests}} \varepsilon_i \le \text{granted}

    is kept at every instant, in exact rationals: 0.1 ten times fits in 1 exactly. A budget may be granted in another
    notion, ``privacy="zcdp(0.5)"``, "gdp(1)", "approx(1, 1e-6)", ...; charges of any notion that converts into it are
    then composed in it, which costs less than adding up.

    Guarantees:
        - Charged before released: no release is recorded or returned whose charge and draw are not on disk.
        - Once: a request of one name on one data set is charged once, drawn once, and only ever has one release.
        - All or nothing: what ends with an error of the ledger left it as it was; what fails or is killed after the
          charge stays charged, and the same request again completes it from the draw on record, free of charge.
        - Forwards: a stream that a request began is released once (:meth:`advance`).
        - Evident: :meth:`verify` finds every edit short of a consistent forgery (``ledger/hash_chain.py`` says how).
          With a fingerprint kept elsewhere (every release carries one) it finds those too, up to that fingerprint.
          Nothing is charged to a ledger that does not verify.

    Safe to use from many threads and processes at once and after a fork. Nothing that was computed from data
    is stored except draws and releases; names are stored as they are, so put nothing secret in them.

    Args:
        target: path of the SQLite file, or ``postgresql://user@host/database``.
        create: False: do not start an empty ledger where there is none.
        timeout: seconds to wait for others before giving up with ``LedgerLocked``.

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
        self._checked: HashChain | None = None  # the rows that were found in order, to know them again
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
        """Set the total budget of a data set, whom it protects, and which files or tables it is the budget of.

        A later call may raise it, or lower it to no less than what is spent. Granting what it already has changes
        nothing.

        Args:
            dataset: its name.
            epsilon: the total that all requests may spend together.
            privacy: the same in another notion, as ``privatest.zcdp(0.5)`` or "zcdp(0.5)". Charges convert into it and
                are composed: rho adds up, so does mu squared, and so do Renyi divergences of one order; (epsilon,
                delta) is composed by privacy-loss distributions (needs the extra ``accounting``), which supposes that
                nobody chooses the next *price* by looking at earlier answers. A data set's notion may be changed if
                what is spent converts into the new one.
            covers: files, globs, folders and tables (``address::table``) that belong to the data set, and
                ``"data in memory"`` if data frames and arrays do, which nobody can tell apart. Requests that read
                anything else are refused, and so are requests of other data sets that read these. None: as before,
                at first any source. An empty list: any source again.
            neighbours: what the budget hides: "replace", another record in the place of one, or "add-remove", whether
                there is one more. Losses add up only if they are about the same neighbours, so a request for
                "add-remove" counts twice in a budget for "replace" (of other notions: as two records do), and a
                request for "replace" is refused by one for "add-remove". None: as before, at first "replace".
            unit: the column that names the person whose records are protected together; requests must name the same
                one. None: as before, at first none, single records. Empty text: single records again.
        """
        check_name(dataset=dataset)
        budget = request_price("A budget is the total that all requests may spend together.", epsilon, privacy)
        account, text = account_of(budget), written(budget)
        named = None if covers is None else normalized_covers(covers)
        about = {name: value for name, value in {"neighbours": neighbours, "unit": unit}.items() if value is not None}
        check_protected(**about)
        if unit == ANYBODY:
            raise InvalidInput(
                f"unit={unit!r} must be the name of a column: a budget is for the persons of one column."
            )
        self._check_all()
        with self._write() as book:
            head = book.tail()
            newest = book.newest_of(dataset)
            standing = book.protected(dataset)
            protected = standing.after(about) or standing
            spent = respent(book, dataset, newest, account, protected)
            if not account.fits(spent):
                already = exact(amount(account.total(spent)))
                raise InvalidInput(
                    f"{worded(budget)} is less than the {already} already spent on data set "
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
                document = noted(covers=named if changed else None, **protected.noted(standing))
                book.append(head, "grant", dataset, epsilon=text, granted=text, spent=spent, release=document)

    def covers(self, dataset: str) -> list[str] | None:
        """The files and tables that a data set's grant names; None where it takes any."""
        check_name(dataset=dataset)
        with self._store.read() as book:
            book.tail()
            self._newest(book, dataset)
            return book.covers().get(dataset)

    def protects(self, dataset: str) -> Protected:
        """What a data set's budget protects: ``neighbours`` and ``unit``."""
        check_name(dataset=dataset)
        with self._store.read() as book:
            book.tail()
            self._newest(book, dataset)
            return book.protected(dataset)

    def granted(self, dataset: str) -> Any:
        """The total budget of a data set: an exact epsilon, or a notion where it was granted in one."""
        return amount(self._standing(dataset).budget)

    def spent(self, dataset: str) -> Any:
        """What all requests charged to a data set come to, whether completed or not, in the notion of its budget.

        The sum of the epsilons where the budget is one, exactly; else a notion, rounded up; 0 where nothing is spent.
        """
        newest = self._standing(dataset)
        return amount(newest.account.total(newest.spent))

    def left(self, dataset: str) -> Any:
        """Budget that is left, in its notion; 0 where nothing is.

        Of a budget in (epsilon, delta) of which something is spent: an epsilon that still fits in any case.
        """
        newest = self._standing(dataset)
        return amount(newest.account.left(newest.spent))

    def added_up(self, dataset: str) -> Any:
        """What the requests would come to if their losses were only added up: what composition saves is the difference.

        In the notion of the budget; None where that would say nothing.
        """
        check_name(dataset=dataset)
        with self._store.read() as book:
            book.tail()
            newest = self._newest(book, dataset)
            prices = counted(book.prices(dataset), book.protected(dataset))
        found = newest.account.added_up(prices)
        return None if found is None and prices else amount(found)

    def datasets(self) -> list[str]:
        """Names of all data sets that have a budget."""
        with self._store.read() as book:
            book.tail()
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
        asked: Mapping[str, Any] | None = None,
        neighbours: str = "replace",
        unit: str | None = None,
    ) -> RecordedRelease:
        """Draw, record the draw together with the charge, make the release of what is recorded, and record it too.

        The same request again returns the recorded release: no new charge, and neither function is called. A request
        that was charged and not completed goes on from the draw on record: ``draw`` is not called. If several processes
        ask one request at the same time, all return what was recorded first.

        Args:
            dataset: whose budget pays.
            request: name of this request, unique within the data set.
            epsilon: privacy loss of the draw; a float is read as its shortest decimal.
            privacy: the same in another notion, as ``privatest.gdp(0.1)`` or "gdp(0.1)"; it is kept as it is.
            design: fingerprint of everything the release depends on besides the data.
            draw: called without arguments, outside any transaction, if nothing speaks against the charge. It reads the
                data and returns what may be released of them, in values that JSON can hold. If it raises, the exception
                passes through, and nothing is charged.
            release: called with the draw as JSON reads it back; returns the release, a dict that JSON can hold. It
                draws nothing and reads nothing private. If it raises, the exception passes through, with a note that
                the charge stays. None: the draw is the release.
            further: of an answer in two steps, the second one: called with the draw once that is on record, as JSON
                reads it back, outside any transaction. It may read the data again, and returns all that was drawn; that
                is recorded before it goes to ``release``. If it raises, the charge and the first draw stay. None: there
                is one step.
            source: what ``draw`` reads; noted, and compared with what the data set's grant covers.
            asked: the design's settings by name, noted so that another request of this name can be told the difference.
            neighbours, unit: whom the price protects, as for :meth:`grant`; unit "*" is that of records each of which
                names its person.

        Returns:
            The release as JSON reads it back (tuples have become lists), with its ``receipt``.

        Raises:
            BudgetExceeded, RequestConflict, SourceNotCovered, LedgerTampered, InvalidInput: nothing was charged. The
                last one, say, for a notion that does not convert into the budget's.
        """
        price = request_price("Nothing private is free.", epsilon, privacy)
        written(price)
        check_protected(neighbours=neighbours, **({} if unit is None else {"unit": unit}))
        ask = Request(dataset, request, price, Protected(neighbours, unit or None), design, dict(asked or {}))
        for name, function in {"draw": draw, "release": release or dict, "further": further or dict}.items():
            if not callable(function):
                raise InvalidInput(f"{name} must be a function, not a {type(function).__name__}.")
        again: dict[str, Any] = {"dataset": dataset, "request": request, "privacy": price, "design": design}
        done = self.released(**again, source=source, asked=asked, neighbours=neighbours, unit=unit)
        if done is not None:
            return done
        self._check_all()
        with self._write() as book:  # a ledger that cannot be written is no reason to read the data
            book.tail()
            rows, _ = self._allowed(book, ask, source)
        first = drawn = not rows
        if drawn:
            found = draw()
            if release is None and not isinstance(found, Mapping):
                raise InvalidInput(
                    f"draw returned a {type(found).__name__}; without release= it is the release, a dict. Nothing was "
                    "charged."
                )
            rows, first = self._charge(ask, source, found)
        charge, newest = rows["charge"], rows.get("release") or rows.get("draw") or rows["charge"]
        try:
            if newest.kind == "charge" and further is not None:
                if not drawn:
                    check_same_source(charge, source)
                drawn = True
                newest = self._record(dataset, request, "draw", further_text(further(charge.about["draw"])))
            if newest.kind != "release":
                whole = newest.about["draw"]
                made = release_text(whole if release is None else release(whole), charge.about.get("source"))
                newest = self._record(dataset, request, "release", made)
        except LedgerTampered:
            raise
        except BaseException as error:
            note_charge(
                error,
                f"{worded(price)} of data set {dataset!r} stays charged for request {request!r}. The same "
                "request again completes it, without a new charge.",
            )
            raise
        return self._recorded(newest, ask.protected, source, replayed=not first, read=drawn and not first)

    def released(
        self,
        *,
        dataset: str,
        request: str,
        epsilon: Number | None = None,
        privacy: Any = None,
        design: str,
        source: DataAddress | None = None,
        asked: Mapping[str, Any] | None = None,
        neighbours: str = "replace",
        unit: str | None = None,
    ) -> RecordedRelease | None:
        """The release of a completed request, None where there is none yet. Nothing is charged.

        Its ``receipt`` says when it was recorded and for which source; ``source``, ``asked``, ``neighbours`` and
        ``unit`` are only compared.

        Raises:
            RequestConflict: where the name stands for another epsilon or design.
        """
        check_name(dataset=dataset)
        check_name(request=request)
        check_name(design=design)
        price = request_price("", epsilon, privacy)
        with self._store.read() as book:
            book.tail()
            self._newest(book, dataset)
            earlier = book.request(dataset, request)
        charge, release = earlier.get("charge"), earlier.get("release")
        if charge is None:
            return None
        ask = Request(dataset, request, price, Protected(neighbours, unit or None), design, asked or {})
        check_same(charge, ask)
        return None if release is None else self._recorded(release, ask.protected, source, replayed=True)

    def _recorded(
        self, row: LedgerRow, protected: Protected, source: DataAddress | None, **how: bool
    ) -> RecordedRelease:
        """What a release row holds, with a receipt that says how its price was counted."""
        with self._store.read() as book:
            budget = book.protected(row.dataset)
        price, lost = budget.counted(row.price, protected) or row.price, []
        if price != row.price:
            lost = [f"{row.price} for {protected} counts as {price} for {budget}"]
        lost += [text for text in [conversion(price, row.budget)] if text is not None]
        return row.recorded(source, converted="; ".join(lost) or None, **how)

    def advance(self, *, dataset: str, request: str, position: int, mark: str, after: str) -> None:
        """Note how far the stream that a request began was released; called before any of it is put out.

        A stream goes from mark to mark, so that two copies of one state cannot both go on: whoever comes second finds
        a mark that it does not know. Nothing is charged; to note the same mark again changes nothing.

        Args:
            dataset, request: the completed request that began the stream.
            position: how many records were released, this time included.
            mark: a new name for where the stream is now.
            after: the mark from which it comes; "" is that of a stream that was not advanced yet.

        Raises:
            RequestConflict: where the stream has gone on from another mark.
        """
        check_name(dataset=dataset)
        check_name(request=request)
        check_name(mark=mark)
        if type(position) is not int or position < 0:
            raise InvalidInput(f"position={position!r} must be a number of records, 0 or more.")
        with self._write() as book:
            head = book.tail()
            newest = self._newest(book, dataset)
            earlier = book.request(dataset, request)
            if "release" not in earlier:
                raise InvalidInput(f"Request {request!r} on data set {dataset!r} began no stream that could go on.")
            before = book.advanced(dataset, request)
            known: dict[str, Any] = {"mark": "", "position": 0} if before is None else json.loads(before.release or "")
            if known["mark"] == mark:
                return
            if known["mark"] != after:
                raise RequestConflict(
                    f"The stream of request {request!r} on data set {dataset!r} was released up to record "
                    f"{known['position']} from a newer state than this one. To go on from an older one would release "
                    f"records a second time, at {worded(earlier['charge'].price)} more for each of "
                    "them, which nobody paid: use the newest state, or make a new request."
                )
            book.append(
                head,
                ADVANCE.format(1 if before is None else int(before.kind.partition(" ")[2]) + 1),
                dataset,
                request=request,
                design=earlier["charge"].design,
                epsilon=earlier["charge"].epsilon,
                granted=newest.granted,
                spent=newest.spent,
                release=json.dumps(
                    {"position": max(position, known["position"]), "after": known["mark"], "mark": mark}
                ),
            )

    def history(self, dataset: str | None = None) -> list[Entry]:
        """Every grant, charge, release and advance of a stream, oldest first; of all data sets or of one."""
        if dataset is not None:
            check_name(dataset=dataset)
        with self._store.read() as book:
            book.tail()
            if dataset is not None:
                self._newest(book, dataset)
            return [row.entry() for row in book.history(dataset)]

    def fingerprint(self) -> str:
        """``count:hash`` of the rows and the newest of them. Noted elsewhere, it pins all up to now."""
        with self._store.read() as book:
            return book.tail().fingerprint

    def verify(self, since: str | None = None) -> int:
        """Read everything again: every hash, every link, every sum. Returns the number of rows.

        Args:
            since: a fingerprint noted earlier; the rows up to it must still be the same.

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
        """What :meth:`verify` does, before each charge, since the newest row that this object has seen.

        So an older copy that is put back under a ledger in use is refused. Rows that were checked by this object before
        are only compared with what they were, by a sha256 over all of their columns; those that came since are checked.
        Where anything differs, all is checked anew.
        """
        # Taken out while in use: another thread that comes meanwhile starts from the first row.
        chain, self._checked = self._checked or HashChain(self._address.name), None
        chain.pin = max(self._seen, chain.head)
        known, before, now = chain.head.rows, chain.read.digest(), hashlib.sha256()
        for rows, head in self._portions():
            for row in rows[:known]:
                now.update(row.as_read())
            if known > 0 and (not rows or (len(rows) >= known and now.digest() != before)):
                self.verify(since=chain.pin.fingerprint)
                return
            for row in rows[known:]:
                chain.extend(row)
            known = max(known - len(rows), 0)
            if not rows:
                chain.finish(head)
        self._checked = chain

    def _portions(self) -> Iterator[tuple[list[LedgerRow], Head]]:
        """All rows, unchecked, each portion with the head record of its instant; the last portion is empty.

        In portions, so that writers need not wait; rows never change, so the portions fit together.
        """
        after: int | None = None  # from the very first: one that was inserted before row 1 is found too
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
    def _write(self) -> Iterator[Book]:
        """The one way to write: not under an older copy than this object has written to; what it adds is remembered."""
        with self._store.write() as book:
            if (head := book.head()).rows < self._seen.rows:
                HashChain(self._address.name, head=head, pin=self._seen).finish(head)
            yield book
        self._seen = max(self._seen, book.written)

    def _allowed(self, book: Book, ask: Request, source: DataAddress | None) -> tuple[dict[str, LedgerRow], str]:
        """The rows of a charged request; of a new one none, and what is spent after it. Refuses what may not be."""
        newest = self._newest(book, ask.dataset)
        earlier = book.request(ask.dataset, ask.name)
        if charge := earlier.get("charge"):
            check_same(charge, ask)
            return earlier, newest.spent
        check_covered(book.covers(), ask.dataset, source)
        return {}, affordable(newest, ask.price, ask.protected, book.protected(ask.dataset))

    def _charge(self, ask: Request, source: DataAddress | None, draw: object) -> tuple[dict[str, LedgerRow], bool]:
        """Record the charge and the draw in one row, unless somebody was faster; the request's rows, and whether so."""
        facts = {"asked": ask.asked, "source": source_document(source), **ask.protected.noted(Protected())}
        text = charge_text(draw, **facts)
        with self._write() as book:
            head = book.tail()
            rows, spent = self._allowed(book, ask, source)
            if rows:
                return rows, False
            row = book.append(
                head,
                "charge",
                ask.dataset,
                request=ask.name,
                design=ask.design,
                epsilon=written(ask.price),
                granted=self._newest(book, ask.dataset).granted,
                spent=spent,
                release=text,
            )
        return {"charge": row}, True

    def _record(self, dataset: str, request: str, kind: str, text: str) -> LedgerRow:
        """Record the release, or what else was drawn, unless somebody was faster; the row that is recorded."""
        with self._write() as book:
            head = book.tail()
            newest = self._newest(book, dataset)
            earlier = book.request(dataset, request)
            charge = earlier.get("charge")
            if charge is None:
                raise LedgerTampered(
                    f"The charge of request {request!r} on data set {dataset!r} is gone from the ledger "
                    f"{book.ledger}. Its release is not given out."
                )
            if (found := earlier.get("release") or earlier.get(kind)) is not None:
                return found
            return book.append(
                head,
                kind,
                dataset,
                request=request,
                design=charge.design,
                epsilon=charge.epsilon,
                granted=newest.granted,
                spent=newest.spent,
                release=text,
            )

    def _standing(self, dataset: str) -> LedgerRow:
        check_name(dataset=dataset)
        with self._store.read() as book:
            book.tail()
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
