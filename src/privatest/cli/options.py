"""The options, each in one place and in the words of the Python API."""

from __future__ import annotations

from typing import Annotated, Any

import typer


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a number.") from None


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise typer.BadParameter(f"{text[:40]!r} is not a whole number.") from None


def option(name: str, text: str, kind: str | None = None, **rest: Any) -> Any:
    parser = {"NUMBER": _number, "SECONDS": _number, "COUNT": _whole}.get(kind or "")
    return typer.Option(name, help=text, metavar=kind, show_default=False, parser=parser, **rest)


Null = Annotated[str | None, option("--null", 'P, such as "normal(0, 1)" or "categorical(a=0.2, b=0.8)".', "LAW")]
Alternative = Annotated[str | None, option("--alternative", "Q, written like the null.", "LAW")]
Epsilon = Annotated[float | None, option("--epsilon", "Privacy loss; typically between 0.1 and 2.", "NUMBER")]
N = Annotated[int | None, option("--n", "Number of records, which is public.", "COUNT")]
Sizes = Annotated[str | None, option("--n", "Numbers of records, such as 50,100,200.", "COUNTS")]
Advantage = Annotated[float | None, option("--advantage", "Aim: 1 - alpha - beta; 2/3 if nothing is said.", "NUMBER")]
Alpha = Annotated[float | None, option("--alpha", "Type I error: saying alternative under the null.", "NUMBER")]
Beta = Annotated[float | None, option("--beta", "Type II error: saying null under the alternative.", "NUMBER")]
Miss = Annotated[float | None, option("--beta", "Probability of missing the stated accuracy; 0.1.", "NUMBER")]
Kind = Annotated[str | None, option("--test", "tight (the default), scllr, ncllr, llr or sllr.", "NAME")]
Clamp = Annotated[str | None, option("--clamp", "tuned (the default), paper, or two numbers: -0.5,0.5.", "CLAMP")]
Threshold = Annotated[float | None, option("--threshold", "Say null above it, in nats.", "NUMBER")]
Neighbours = Annotated[
    str | None, option("--neighbours", "What privacy hides: replace (a record, the default) or add-remove.", "NAME")
]
MaxRows = Annotated[
    int | None, option("--max-rows-per-unit", "Rows that count of one person; 1 if nothing is said.", "COUNT")
]
Distance = Annotated[float | None, option("--distance", "Total variation from the null, where Q is unknown.", "NUMBER")]
Bins = Annotated[int | None, option("--bins", "Number of bins for a continuous null.", "COUNT")]
FitMethod = Annotated[str | None, option("--method", "auto (the default), direct, uniformity or grains.", "NAME")]
Method = Annotated[str | None, option("--method", "auto (the default), direct, blocks or paper.", "NAME")]
FalseAlarm = Annotated[
    float | None, option("--false-alarm", "Allow the answer 'no change'; alarm falsely at most so often.", "NUMBER")
]
Interval = Annotated[int | None, option("--interval", "Records between two decisions of the monitor.", "COUNT")]
BetweenAlarms = Annotated[
    float | None,
    option("--mean-time-between-false-alarms", "Records between two false alarms, on average.", "NUMBER"),
]

Data = Annotated[
    str | None,
    typer.Argument(
        metavar="DATA",
        help="A file or glob of CSV, Parquet or Feather, a table such as duckdb:///file.db::table, or - for lines.",
        show_default=False,
    ),
]
Lines = Annotated[
    str | None,
    typer.Argument(metavar="FILE", help="A file of one record a line; - or nothing: standard input.",
                   show_default=False),
]  # fmt: skip
Column = Annotated[str | None, option("--column", "The column that holds the records.", "NAME")]
Unit = Annotated[str | None, option("--unit", "The column that says whose row it is.", "NAME")]
Order = Annotated[str | None, option("--order", "The column that gives the order of time.", "NAME")]
Ledger = Annotated[str | None, option("--ledger", "Ledger of budgets: a file or postgresql:// address.", "LEDGER")]
Dataset = Annotated[str | None, option("--dataset", "Whose budget pays.", "NAME")]
Request = Annotated[str | None, option("--request", "Name of this request; the same again is free.", "NAME")]

LedgerTimeout = Annotated[
    float | None, option("--ledger-timeout", "Seconds to wait for a ledger that others hold; 30.", "SECONDS")
]

Problem = Annotated[str | None, option("--problem", "Read options from a TOML or JSON file.", "FILE")]
Save = Annotated[str | None, option("--save", "Write the options to such a file.", "FILE")]
Design = Annotated[str | None, option("--design", "Run the test that plan --save-design wrote.", "FILE")]
SaveDesign = Annotated[str | None, option("--save-design", "Write the designed test, for test --design.", "FILE")]
Report = Annotated[str | None, option("--report", "Write a report to hand over, one HTML file.", "FILE")]
Force = Annotated[bool, option("--force", "Write over files that are there, though not over what is read.")]
Json = Annotated[bool, option("--json", "Print the result as JSON, and nothing else.")]
ExitCode = Annotated[bool, option("--exit-code", "Exit with 1 for alternative or changed, 0 otherwise.")]
AnyPower = Annotated[bool, option("--any-power", "Run also where the type II error is larger than beta.")]
