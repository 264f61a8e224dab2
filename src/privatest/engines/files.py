"""Records in Parquet, Feather and CSV files: structure is read when they are opened, rows when they are summed.

Of Parquet files the footers say what there is, and row groups are read in parallel, the needed columns only. Of Feather
and Arrow files record batches are read one at a time. CSV files have a module of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from privatest.engines.arrays import Part, Piece, Progress, Stream, StreamRecords, import_arrow
from privatest.engines.csv_files import CsvFile, csv_stream
from privatest.engines.frames import SLICE, column_of
from privatest.engines.paths import Wanted, choose, file_size, files_of, progress_bar, rows, same_columns, structure
from privatest.engines.protocol import Records
from privatest.engines.units import OrderedRecords, UnitRecords
from privatest.errors import InvalidData, InvalidInput

__all__ = ["feather_stream", "names_in", "open_files", "parquet_stream"]


# Rows at a time; fewer where a record may be a long text.
BATCH = 1 << 20
TEXT_BATCH = 1 << 16
# Bytes read ahead, so that a column of a row group need not be in memory whole.
BUFFER = 1 << 20


def parquet_stream(files: Sequence[str], choose: Callable[[Sequence[str], str], Wanted]) -> Stream:
    """The rows of the files; only their footers are read now."""
    pa = import_arrow("A Parquet file")
    footers = [_footer(path) for path in files]
    wanted = choose(footers[0][1].names, repr(files[0]))
    same_columns(wanted, [(path, schema) for path, (_, schema) in zip(files, footers, strict=True)])
    pieces = []
    for path, (metadata, schema) in zip(files, footers, strict=True):
        short = all(_is_short(schema.field(name).type) for name in wanted.names())
        batch = BATCH if short else TEXT_BATCH
        pieces += [_row_group(path, metadata, group, wanted, batch) for group in range(metadata.num_row_groups)]
    count = sum(metadata.num_rows for metadata, _ in footers)
    sample = column_of(pa.nulls(0, footers[0][1].field(wanted.records).type), wanted.records)
    return Stream(pieces, sample, rows=count, bar=progress_bar(files))


def _is_short(kind: Any) -> bool:
    """Whether every value takes a few bytes."""
    return bool(import_arrow("A Parquet file").types.is_primitive(kind))


def _footer(path: str) -> tuple[Any, Any]:
    import pyarrow.parquet as pq

    def ask() -> tuple[Any, Any]:
        with pq.ParquetFile(path) as file:
            return file.metadata, file.schema_arrow

    return structure(path, "Parquet", ask)


def _row_group(path: str, metadata: Any, group: int, wanted: Wanted, size: int) -> Piece:
    import pyarrow.parquet as pq

    def read(progress: Progress) -> Iterator[Part]:
        with pq.ParquetFile(path, metadata=metadata, pre_buffer=False, buffer_size=BUFFER) as file:
            for batch in file.iter_batches(size, row_groups=[group], columns=wanted.names(), use_threads=False):
                yield wanted.part(batch)
        progress(file_size(path) // metadata.num_row_groups)

    return Piece(lambda progress: rows(path, "Parquet", read(progress)))


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
    sample = column_of(pa.nulls(0, found[0][0].field(wanted.records).type), wanted.records)
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


def names_in(paths: Sequence[str]) -> list[str]:
    """The names of the columns; see :func:`privatest.column_names`."""
    form, files = files_of(paths)
    import_arrow(f"A file of the format {form}")
    if form == "Parquet":
        return list(_footer(files[0])[1].names)
    if form == "Feather":
        return list(_structure(files[0])[0].names)
    first = CsvFile(files[0], 0, keep_open=False)
    if first.starts_with_a_row():
        raise InvalidData(
            f"The first line of {files[0]!r} does not look like names of columns, but like a record; it is not shown. "
            "Write the names there, or name the column yourself."
        )
    return first.names


def open_files(
    paths: Sequence[str],
    *,
    column: str | None,
    unit: str | None,
    max_rows_per_unit: int | None,
    order: str | None,
    group: str | None = None,
    delimiter: str | None = None,
) -> Records:
    """The records of Parquet, CSV or Feather files, in order of the files' names."""
    form, files = files_of(paths)
    if delimiter is not None and form != "CSV":
        raise InvalidInput(f"delimiter={delimiter!r} is about CSV files, and these are {form} files. Leave it out.")
    import_arrow(f"A file of the format {form}")
    apart = form != "CSV"

    def wanted(names: Sequence[str], where: str) -> Wanted:
        return choose(names, column, unit, order, where, group=group, apart=apart)

    if form == "CSV":
        stream = csv_stream(files, wanted, delimiter)
    else:
        stream = (parquet_stream if form == "Parquet" else feather_stream)(files, wanted)
    if max_rows_per_unit is not None:
        return UnitRecords(stream, max_rows_per_unit)
    return StreamRecords(stream) if order is None else OrderedRecords(stream, order)
