"""Parquet files: the footers say what there is; row groups are read in parallel, the needed columns only."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from privatest.engines.arrow import column_of, import_arrow
from privatest.engines.files import Wanted, file_size, progress_bar, rows, same_columns, structure
from privatest.engines.streams import Part, Piece, Progress, Stream

__all__ = ["parquet_stream"]

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
    sample = column_of(pa.nulls(0, footers[0][1].field(wanted.records).type))
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
