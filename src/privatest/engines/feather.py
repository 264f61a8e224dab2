"""Feather and Arrow files: record batches, read one at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from privatest.engines.arrow import SLICE, column_of, import_arrow
from privatest.engines.files import Wanted, file_size, progress_bar, rows, same_columns, structure
from privatest.engines.streams import Part, Piece, Progress, Stream

__all__ = ["feather_stream"]

MAGIC = b"ARROW1"


def feather_stream(files: Sequence[str], choose: Callable[[Sequence[str], str], Wanted]) -> Stream:
    """The rows of the files; only their schemas and the sizes of their batches are read now."""
    pa = import_arrow("A Feather file")
    found = [_structure(path) for path in files]
    wanted = choose(found[0][0].names, repr(files[0]))
    same_columns(wanted, [(path, schema) for path, (schema, _) in zip(files, found, strict=True)])
    pieces = []
    for path, (schema, batches) in zip(files, found, strict=True):
        places = [schema.get_field_index(name) for name in wanted.names()]
        if batches is None:
            pieces.append(_streamed(path, wanted))
        else:
            pieces += [_batch(path, number, batches, wanted, places) for number in range(batches)]
    sample = column_of(pa.nulls(0, found[0][0].field(wanted.records).type))
    return Stream(pieces, sample, bar=progress_bar(files))


@contextmanager
def _opened(path: str, places: Sequence[int] | None = None) -> Iterator[Any]:
    """A reader of the file: with batches by number, or, for the streaming format, one after the other."""
    import pyarrow as pa

    options = pa.ipc.IpcReadOptions(included_fields=list(places) if places else None, use_threads=False)
    with open(path, "rb") as probe:
        random_access = probe.read(len(MAGIC)) == MAGIC
    with pa.OSFile(path, "rb") as file:
        open_it = pa.ipc.open_file if random_access else pa.ipc.open_stream
        with open_it(file, options=options) as reader:
            yield reader


def _structure(path: str) -> tuple[Any, int | None]:
    def ask() -> tuple[Any, int | None]:
        with _opened(path) as reader:
            return reader.schema, getattr(reader, "num_record_batches", None)

    return structure(path, "Feather", ask)


def _batch(path: str, number: int, batches: int, wanted: Wanted, places: Sequence[int]) -> Piece:
    def read(progress: Progress) -> Iterator[Part]:
        with _opened(path, places) as reader:
            yield from _slices(reader.get_batch(number), wanted)
        progress(file_size(path) // batches)

    return Piece(lambda progress: rows(path, "Feather", read(progress)))


def _streamed(path: str, wanted: Wanted) -> Piece:
    def read(progress: Progress) -> Iterator[Part]:
        with _opened(path) as reader:
            for batch in reader:
                yield from _slices(batch, wanted)
        progress(file_size(path))

    return Piece(lambda progress: rows(path, "Feather", read(progress)))


def _slices(batch: Any, wanted: Wanted) -> Iterator[Part]:
    for first in range(0, batch.num_rows, SLICE):
        yield wanted.part(batch.slice(first, SLICE))
