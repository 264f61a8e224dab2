"""The options of every command and studio request, and the function that each one calls: one table for everybody.

The command line (``cli.problem_file``), the keys of problem files, the studio's request bodies
(``studio.planning_requests``) and the calls that a report prints (``report.html_page``) are made from :data:`QUESTIONS`
and :data:`OPTIONS`. To add an option, add one row here; its value then reaches the function under the same name.

A taker is a command of the command line (``plan``) or a request of the studio (``/design``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, eq=False)
class Kind:
    """The kind of an option's value: in words, for messages, and as the command line's help abbreviates it."""

    words: str
    metavar: str | None = None


LAW = Kind("a law", "LAW")
LOSS = Kind("a number", "NUMBER")  # of privacy: positive
LOSSES = Kind("numbers", "NUMBERS")
SHARE = Kind("a number", "NUMBER")  # strictly between 0 and 1
SPAN = Kind("a number", "NUMBER")  # of records, at least 1
NUMBER = Kind("a number", "NUMBER")
SECONDS = Kind("a number", "SECONDS")
COUNT = Kind("a whole number", "COUNT")
COUNTS = Kind("whole numbers", "COUNTS")
RANGE = Kind("two numbers", "LOW HIGH")
PORT = Kind("a whole number", "NUMBER")
CLAMP = Kind("a clamp", "CLAMP")
NAME = Kind("text", "NAME")
TEXT = Kind("text", "TEXT")
FILE = Kind("text", "FILE")
FOLDER = Kind("text", "FOLDER")
LEDGER = Kind("text", "LEDGER")
SOURCES = Kind("texts", "SOURCE")
DATA = Kind("text", "DATA")  # the command's argument
TREATMENT = Kind("text", "TREATMENT")  # likewise
LINES = Kind("text", "FILE")  # likewise
PLACE = Kind("a place")  # a file of the studio's folder, or an upload
SWITCH = Kind("true or false")

# Roles of options.
RULE = "rule"  # an argument of the function that designs or answers
WHERE = "where"  # names a column of the data
READING = "reading"  # how the texts in the data are read
RUN = "run"  # an argument of the run itself
PAYER = "payer"  # the ledger, the data set and the request
SOURCE = "source"  # the data
MANNER = "manner"  # how the answer is printed or written; not part of the question, and in no problem file


@dataclass(frozen=True)
class Option:
    """An option, its help text, and the commands and studio requests that take it, separated by blanks.

    ``default`` is the function's default, if the studio shows it; None leaves the default to the function.
    """

    name: str
    kind: Kind
    role: str
    help: str
    takers: str
    default: Any = None
    choices: tuple[str, ...] = ()

    def taken_by(self, taker: str) -> bool:
        """Whether a command or request has this option."""
        return taker in self.takers.split()


@dataclass(frozen=True)
class Question:
    """A command or request: the public function that it calls, and the options that it requires."""

    call: str
    needs: str


_PAIR = "null alternative epsilon"
_PAID = "source dataset request"
QUESTIONS = {
    "plan": Question("plan", _PAIR),
    "compare": Question("compare", _PAIR),
    "curve": Question("power_curve", _PAIR),
    "check": Question("check", "data null alternative"),
    "test": Question("design", f"data {_PAIR}"),
    "detect": Question("detect_change", "data null epsilon"),
    "fit": Question("goodness_of_fit", "data null distance epsilon"),
    "estimate": Question("estimate", "family epsilon"),
    "groups": Question("compare_groups", "epsilon"),
    "table": Question("tabulate", "data epsilon"),
    "monitor": Question("Monitor", "null epsilon"),
    "sequential": Question("Sequential", _PAIR),
    "/look": Question("decompose", _PAIR),
    "/design": Question("design", f"{_PAIR} n"),
    "/size": Question("sample_size", _PAIR),
    "/plan": Question("plan", _PAIR),
    "/theory": Question("sample_complexity", "null alternative epsilons"),
    "/power": Question("power_curve", f"{_PAIR} n"),
    "/along": Question("design", f"{_PAIR} n family between"),
    "/compare": Question("compare", _PAIR),
    "/notions": Question("notions.compare", "null alternative privacy"),
    "/columns": Question("data.column_names", "source"),
    "/run/test": Question("design", f"{_PAIR} {_PAID}"),
    "/run/change": Question("detect_change", f"{_PAIR} {_PAID}"),
    "/estimate": Question("design_estimate", "family epsilon n at"),
    "/estimate/size": Question("design_estimate", "family epsilon at width"),
    "/groups": Question("design_groups", "epsilon n rate lift"),
    "/groups/size": Question("design_groups", "epsilon rate lift"),
    "/run/estimate": Question("estimate", f"family epsilon {_PAID}"),
    "/run/groups": Question("compare_groups", f"epsilon {_PAID}"),
    "/run/table": Question("tabulate", f"epsilon {_PAID}"),
    "/monitors": Question("Monitor", f"{_PAIR} dataset request"),
    "/sequentials": Question("Sequential", f"{_PAIR} dataset request"),
}

_TESTS = "/design /size /plan /power /along"
_ON_PAIRS = "/run/test /run/change"
_ESTIMATES = "/estimate /estimate/size /run/estimate"
_GROUPS = "groups /groups /groups/size /run/groups"
_TABLES = "table /run/table"
_ON_DATA = f"{_ON_PAIRS} /run/estimate /run/groups /run/table"
_STREAMS = "/monitors /sequentials"
_WATCHES = "monitor sequential"
_RUNS = "test detect fit estimate groups table"
_READS = f"check {_RUNS}"
_PAYS = f"{_RUNS} {_WATCHES}"
_ON_TWO_LAWS = f"plan curve test detect {_WATCHES} {_TESTS} {_ON_PAIRS} {_STREAMS}"
_LAWS = f"compare check {_ON_TWO_LAWS} /look /compare /theory /notions"
_CHANGES = "detect /run/change"
_SIZED = "check test estimate table /design /along /run/test /estimate /run/estimate /run/table"

OPTIONS = (
    Option("data", DATA, SOURCE, "CSV, Parquet or Feather files, or a table; - reads lines.", _READS),
    Option("treatment", TREATMENT, SOURCE, "Data of the treated group, if there is no --group.", "groups"),
    Option("treatment", PLACE, SOURCE, "File of the treated group, if no column names the group.", "/run/groups"),
    Option("file", LINES, MANNER, "File with one record per line; - or nothing: standard input.", _WATCHES),
    Option("null", LAW, RULE, 'P, such as "normal(0, 1)" or "categorical(a=0.2, b=0.8)".', f"{_LAWS} fit"),
    Option("alternative", LAW, RULE, "Q, written like the null.", _LAWS),
    Option(
        "alternative",
        NAME,
        RULE,
        "Difference to look for: two-sided, greater (treatment above control) or less.",
        _GROUPS,
        default="two-sided",
        choices=("two-sided", "greater", "less"),
    ),
    Option(
        "family",
        TEXT,
        RULE,
        'Law of the records, with one "?" or two: "normal(mean=?, sd=1)"; or mean, median, "quantile(0.9)".',
        f"estimate {_ESTIMATES}",
    ),
    Option("family", TEXT, MANNER, 'Law of the records, with one "?": "normal(mean=?, sd=1)".', "check /along"),
    Option("between", RANGE, RULE, 'Two numbers that enclose the "?"; optional for a rate.', f"estimate {_ESTIMATES}"),
    Option("between", RANGE, RULE, "Two numbers between which --cells cells of equal length lie.", _TABLES),
    Option("cells", COUNT, RULE, "Number of these cells (default 16).", _TABLES),
    Option("edges", TEXT, RULE, "Edges between cells, such as 18,30,45.", _TABLES),
    Option("labels", TEXT, RULE, "Labels that have a cell each, such as yes,no.", _TABLES),
    Option(
        "groups",
        TEXT,
        RULE,
        "Groups with a table each, such as a,b: public; not needed for an enumeration of PostgreSQL.",
        "table",
    ),
    Option("sd_between", RANGE, RULE, 'Two numbers that enclose sd, where it is a second "?".', "estimate"),
    Option(
        "guarantee",
        NAME,
        RULE,
        "For a mean: certified (default), or approximate.",
        "estimate",
        choices=("certified", "approximate"),
    ),
    Option("between", RANGE, MANNER, 'Smallest and largest value of the "?".', "check /along"),
    Option(
        "near", NUMBER, RULE, 'Expected value of the "?"; the interval is shortest there.', f"estimate {_ESTIMATES}"
    ),
    Option(
        "epsilon",
        LOSS,
        RULE,
        "Privacy loss; typically between 0.1 and 2.",
        f"compare check fit estimate grant {_TABLES} {_ON_TWO_LAWS} /look /compare {_ESTIMATES} {_GROUPS}",
    ),
    Option(
        "privacy",
        TEXT,
        RULE,
        'Notion in place of epsilon: "approx(1, 1e-6)", "gdp(1)", "zcdp(0.5)" and others.',
        f"fit estimate {_TABLES} {_ON_TWO_LAWS} /notions {_ESTIMATES} {_GROUPS}",
    ),
    Option("privacy", TEXT, MANNER, 'Notion in place of epsilon, such as "zcdp(0.5)".', "compare grant /look"),
    Option("epsilons", LOSSES, RULE, "Privacy losses.", "/theory"),
    Option("distance", NUMBER, RULE, "Total variation from the null, where Q is unknown.", "detect monitor fit"),
    Option("distance", NUMBER, MANNER, "For a fit: total variation from the null.", "check"),
    Option("n", COUNT, RULE, "Number of records, which is public.", f"plan {_SIZED}"),
    Option("n", COUNTS, RULE, "Numbers of records, such as 50,100,200.", "curve /power"),
    Option("n", COUNTS, MANNER, "For a plan without data: records of control and treatment.", "groups"),
    Option("n", COUNTS, RULE, "Records of control and treatment; one number for both.", "/groups /groups/size"),
    Option(
        "advantage", SHARE, RULE, "Goal: 1 - alpha - beta (default 2/3).", "plan compare /size /plan /compare /notions"
    ),
    Option(
        "alpha", SHARE, RULE, 'Type I error: "alternative" under the null.', f"plan curve test fit {_TESTS} /run/test"
    ),
    Option(
        "alpha",
        SHARE,
        RULE,
        "Type I error: a difference or the alternative where there is none (default 0.05).",
        f"sequential /sequentials {_GROUPS}",
        default=0.05,
    ),
    Option("beta", SHARE, RULE, 'Type II error: "null" under the alternative.', "plan fit /size /plan"),
    Option(
        "beta",
        SHARE,
        RULE,
        'Type II error: "null" under the alternative (default 0.05).',
        "sequential /sequentials",
        default=0.05,
    ),
    Option(
        "beta",
        SHARE,
        RULE,
        "Probability of missing the stated accuracy (default 0.1).",
        f"{_CHANGES} monitor /monitors",
        default=0.1,
    ),
    Option("beta", SHARE, MANNER, "For a plan: probability of missing the lift (default 0.2).", "groups /groups/size"),
    Option(
        "confidence",
        SHARE,
        RULE,
        "Probability that the interval holds the true value (default 0.95).",
        f"estimate {_ESTIMATES} {_GROUPS}",
    ),
    Option("above", NUMBER, RULE, "Cut, public: records of at least this number are successes.", _GROUPS),
    Option("success", TEXT, RULE, "Label that counts as a success, such as Yes (default 1).", f"estimate {_GROUPS}"),
    Option("success", TEXT, MANNER, "For an estimate or groups: label that counts as a success.", "check"),
    Option("at", NUMBER, MANNER, 'For a plan: the true value of the "?".', "estimate /estimate /estimate/size"),
    Option("width", NUMBER, MANNER, "For a plan: the interval's width at --at.", "estimate /estimate/size"),
    Option("rate", SHARE, MANNER, "For a plan: the control group's rate.", "groups /groups /groups/size"),
    Option("lift", NUMBER, MANNER, "For a plan: the treatment's rate minus it.", "groups /groups /groups/size"),
    Option("most", COUNT, RULE, "Number of records after which it decides in any case.", "sequential /sequentials"),
    Option(
        "aim",
        NAME,
        RULE,
        "Mean number of records to make small: the larger (default), null or alternative.",
        "sequential",
        choices=("larger", "null", "alternative"),
    ),
    Option("schedule", COUNTS, RULE, "Sizes of the first block and of the later ones, such as 12,8.", "sequential"),
    Option("any_power", SWITCH, MANNER, "Run also where the type II error is larger than beta.", "fit"),
    Option("test", NAME, RULE, "tight (default), scllr, ncllr, llr or sllr.", "plan curve test"),
    Option("clamp", CLAMP, RULE, "tuned (default), paper, or two numbers: -0.5,0.5.", "plan curve test"),
    Option("threshold", NUMBER, RULE, "Threshold in nats; above it the answer is null.", "plan curve test"),
    Option(
        "neighbours",
        NAME,
        RULE,
        "What privacy hides: replace (one record, the default) or add-remove.",
        f"plan curve test estimate {_TABLES} {_TESTS} /run/test {_ESTIMATES}",
        default="replace",
        choices=("replace", "add-remove"),
    ),
    Option(
        "max_rows_per_unit",
        COUNT,
        RULE,
        "Maximum number of rows that one person contributes (default 1).",
        f"plan test detect fit estimate {_TABLES} {_TESTS} {_ON_PAIRS} {_ESTIMATES} {_GROUPS}",
    ),
    Option(
        "release",
        NAME,
        RULE,
        "statistic (default), or decision: fewer records, and no more than the decision.",
        f"plan curve test {_TESTS} /run/test",
        default="statistic",
        choices=("statistic", "decision"),
    ),
    Option("bins", COUNT, RULE, "Number of bins for a continuous null.", "fit"),
    Option("method", NAME, RULE, "auto (default), direct or uniformity.", "fit"),
    Option("method", NAME, RULE, "auto (default), direct, blocks or paper.", "detect"),
    Option("method", NAME, RULE, "cusum (default) or paper.", "monitor"),
    Option("false_alarm", SHARE, RULE, "Probability of a change found in unchanged data (default 0.05).", _CHANGES),
    Option("assume_change", SWITCH, RULE, "Assume that there is a change: always name an index.", "detect /run/change"),
    Option(
        "changes",
        NAME,
        RULE,
        "one (default), or several: to the alternative, back to the null, and so on.",
        "detect",
        choices=("one", "several"),
    ),
    Option("block", COUNT, RULE, "Records in a block of the paper's method.", "detect monitor"),
    Option("interval", COUNT, RULE, "Blocks in an interval of the paper's method.", "monitor"),
    Option(
        "mean_time_between_false_alarms",
        SPAN,
        RULE,
        "Mean number of records between two false alarms.",
        "monitor /monitors",
    ),
    Option(
        "source", PLACE, SOURCE, "A path inside the studio's folder, or the name of an upload.", f"{_ON_DATA} /columns"
    ),
    Option("path", FILE, SOURCE, "A file in the studio's folder, whose lines are followed.", _STREAMS),
    Option("column", NAME, WHERE, "Column of the records.", f"{_READS} {_ON_DATA}"),
    Option("group", NAME, WHERE, "Column that names the group of a row; two public values.", "groups /run/groups"),
    Option("by", NAME, WHERE, "Column that says in which of the --groups a row is.", "table"),
    Option("control_name", NAME, WHERE, "Value of the control group (default: first by name).", "groups /run/groups"),
    Option("unit", NAME, WHERE, "Column that names the person whose row it is.", f"{_RUNS} {_ON_DATA}"),
    Option("order", NAME, WHERE, "Column that gives the order in time.", _CHANGES),
    Option("decimal", TEXT, READING, "Decimal mark of numbers in text: a point or a comma.", _READS),
    Option("missing", TEXT, READING, "Texts that mean a missing record, such as NA,-.", _READS),
    Option("fold_case", SWITCH, READING, "Ignore case and surrounding blanks in labels.", _READS),
    Option("delimiter", TEXT, READING, "Separator of the fields in CSV files: , ; | or a tab.", _READS),
    Option("text_order", SWITCH, READING, "The order in time is that of its texts.", "detect"),
    Option(
        "odd_epsilon",
        LOSS,
        RUN,
        "Also release the share of unusable records, for this much more epsilon.",
        f"{_RUNS} {_ON_DATA}",
    ),
    Option("public_order", SWITCH, WHERE, "The order's values are public: show the one at the change.", _CHANGES),
    Option(
        "ledger",
        LEDGER,
        PAYER,
        "Ledger of budgets: a file or a postgresql:// address.",
        f"{_PAYS} grant show verify studio",
    ),
    Option("dataset", NAME, PAYER, "Data set whose budget pays.", f"{_PAYS} grant show {_ON_DATA} {_STREAMS}"),
    Option("request", NAME, PAYER, "Name of this request; repeating it is free.", f"{_PAYS} {_ON_DATA} {_STREAMS}"),
    Option(
        "ledger_timeout",
        SECONDS,
        PAYER,
        "Seconds to wait for a ledger that is in use (default 30).",
        f"{_PAYS} grant show verify",
    ),
    Option("report", SWITCH, MANNER, "Also return a report to hand over.", _ON_DATA),
    Option("purpose", TEXT, MANNER, "What the answer is for; printed in the report.", f"plan {_RUNS} {_ON_DATA}"),
    Option("author", TEXT, MANNER, "Who asks; printed in the report.", f"plan {_RUNS} {_ON_DATA}"),
    Option("document", SWITCH, MANNER, "Also return the whole test as JSON.", "/design"),
    Option("bound", SWITCH, MANNER, "Also return the best that any private method can reach.", "/size /estimate"),
    Option("follow", SWITCH, MANNER, "Wait for more lines at the end of the file, like tail -F.", _WATCHES),
    Option("state", FILE, MANNER, "Keep the state in this file, and continue from it.", _WATCHES),
    Option("from_start", SWITCH, MANNER, "Standard input starts again: skip the lines already read.", _WATCHES),
    Option("new_file", SWITCH, MANNER, "The file holds new records: read it from its first line.", _WATCHES),
    Option("go_on", SWITCH, MANNER, "Continue after an alarm, until the next one.", "monitor"),
    Option("covers", SOURCES, MANNER, "File, folder, glob or table that the budget is for; repeatable.", "grant"),
    Option(
        "neighbours",
        NAME,
        MANNER,
        "What the budget hides: replace (one record) or add-remove (default: as before).",
        "grant",
        choices=("replace", "add-remove"),
    ),
    Option(
        "unit",
        NAME,
        MANNER,
        'Column of the persons that the budget protects; "" for rows (default: as before).',
        "grant",
    ),
    Option("since", TEXT, MANNER, "Fingerprint from an earlier result, report, show or verify.", "verify"),
    Option("folder", FOLDER, MANNER, "Folder whose files the page may open.", "studio", default="."),
    Option("port", PORT, MANNER, "Port on this machine; 0 takes any free one.", "studio", default=0),
    Option(
        "host", TEXT, MANNER, "Address to listen on; others can reach all but loopback.", "studio", default="127.0.0.1"
    ),
    Option("max_seconds", SECONDS, MANNER, "Seconds after which a run on data is stopped.", "studio", default=600.0),
    Option("no_browser", SWITCH, MANNER, "Print the address and open nothing.", "studio"),
    Option("design", FILE, MANNER, "Run the test that plan --save-design wrote.", "test"),
    Option(
        "problem", FILE, MANNER, "Read options from a TOML or JSON file.", f"plan compare curve {_WATCHES} {_READS}"
    ),
    Option("save", FILE, MANNER, "Write the options to such a file.", f"plan compare {_RUNS}"),
    Option("save_design", FILE, MANNER, "Write the designed test, for test --design.", "plan"),
    Option("report", FILE, MANNER, "Write a report to hand over, one HTML file.", f"plan sequential {_RUNS}"),
    Option(
        "force", SWITCH, MANNER, "Overwrite existing files, but none that is read.", f"plan compare sequential {_RUNS}"
    ),
    Option(
        "exit_code",
        SWITCH,
        MANNER,
        "Exit with 1 for alternative or changed, 0 otherwise.",
        f"test detect fit groups {_WATCHES}",
    ),
    Option(
        "json",
        SWITCH,
        MANNER,
        "Print the result as JSON, and nothing else.",
        f"plan compare curve {_WATCHES} grant show verify version {_READS}",
    ),
)


def of(taker: str) -> list[Option]:
    """Return the options of a command or of a studio request, in the table's order."""
    return [option for option in OPTIONS if option.taken_by(taker)]


def named(taker: str, *roles: str) -> list[str]:
    """Return the names of a taker's options that have one of these roles."""
    return [option.name for option in of(taker) if option.role in roles]


def find(taker: str, name: str) -> Option:
    """Return the option of this name that a taker has."""
    return next(option for option in of(taker) if option.name == name)


def separate(texts: str) -> list[str]:
    """Split the value of an option that lists texts, separated by commas.

    >>> separate("NA,-")
    ['NA', '-']
    """
    return [text for text in texts.split(",") if text.strip()]


def flag(name: str) -> str:
    """Return an option's name as the command line writes it.

    >>> flag("max_rows_per_unit")
    '--max-rows-per-unit'
    """
    return f"--{name.replace('_', '-')}"


def _keys() -> dict[str, Kind]:
    result: dict[str, Kind] = {}
    for option in OPTIONS:
        command = any(taker in QUESTIONS for taker in option.takers.split() if not taker.startswith("/"))
        if command and option.role != MANNER:
            result.setdefault(option.name, option.kind)
    return result


KEYS = _keys()
"""The keys that a problem file may have, and the kind of each value."""
