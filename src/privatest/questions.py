"""The questions that can be asked and all their options: one table, read by everybody who asks.

The command line's options (``cli.options``), the keys of problem files, the studio's request bodies
(``studio.answering``) and a report's "how to ask again" (``report.question``) are made from :data:`OPTIONS`. An option
of a question is one row here; its value then reaches the function in :data:`QUESTIONS` under the same name.

Takers of an option are commands of the command line (``plan``) and requests of the studio (``/design``).

What this version does not answer stands in :data:`UNANSWERED`: why not, and what to ask instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from privatest.errors import InvalidInput


@dataclass(frozen=True, eq=False)
class Kind:
    """What an option's value is: in words, for messages, and as the command line's help abbreviates it."""

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

# What becomes of an option.
RULE = "rule"  # an argument of the function that designs or answers
WHERE = "where"  # says which of the data's columns are read
READING = "reading"  # says how the data's texts are read
RUN = "run"  # an argument of the run itself
PAYER = "payer"  # says who pays
SOURCE = "source"  # says which data
MANNER = "manner"  # how this asking is done, printed or written; no part of the question, and in no problem file


@dataclass(frozen=True)
class Option:
    """One row: an option, what it means, and the commands and studio requests that take it.

    ``default`` is that of the function asked, where the studio has to show it; None leaves it to the function.
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
    """A command or request: the public function it asks, and the options without which it cannot be asked."""

    call: str
    needs: str
    about: str = ""


_PAIR = "null alternative epsilon"
_PAID = "source dataset request"
QUESTIONS = {
    "plan": Question("plan", _PAIR),
    "compare": Question("compare", _PAIR),
    "curve": Question("power_curve", _PAIR),
    "check": Question("check", "data null alternative"),
    "test": Question("design", f"data {_PAIR}"),
    "detect": Question("detect_change", "data null epsilon"),
    "changes": Question("detect_changes", f"data {_PAIR}"),
    "fit": Question("goodness_of_fit", "data null distance epsilon"),
    "estimate": Question("estimate", "family epsilon"),
    "groups": Question("compare_groups", "epsilon"),
    "monitor": Question("Monitor", "null epsilon"),
    "sequential": Question("Sequential", _PAIR),
    "/look": Question("decompose", _PAIR, "P, Q and the privacy loss."),
    "/design": Question(
        "design",
        f"{_PAIR} n",
        "A test on n records; ``alpha`` bounds its type I error. ``document`` asks for the whole test as JSON.",
    ),
    "/size": Question(
        "sample_size",
        _PAIR,
        "How many records a goal needs: an advantage (2/3 unless said otherwise), or alpha and beta. ``bound`` asks "
        "for the number that no test can do without.",
    ),
    "/plan": Question(
        "plan",
        _PAIR,
        "The same, and how good it is: the number that no private test can do without, the records that the best test "
        "needs without privacy, and those that a test needs of which only the decision leaves.",
    ),
    "/theory": Question("sample_complexity", "null alternative epsilons", "The theorem at several epsilons."),
    "/power": Question("power_curve", f"{_PAIR} n", "Error rates at several n."),
    "/along": Question(
        "design",
        f"{_PAIR} n family between",
        'How probably a test on n records says "alternative" if they come from ``family``, along the parameter that is '
        "a question mark in it, ``between`` two numbers.",
    ),
    "/compare": Question("compare", _PAIR, "All tests side by side."),
    "/notions": Question(
        "notions.compare", "null alternative privacy", "Records under a notion of privacy and what it converts into."
    ),
    "/columns": Question("data.column_names", "source", "The names of a file's columns, for whoever holds the data."),
    "/run/test": Question(
        "design",
        f"{_PAIR} {_PAID}",
        "Run a test once, charged to ``dataset`` under the name ``request``. The same request again is free. Without "
        "``n`` the test is designed for as many records as the file has; that number is public. With "
        '``neighbours="add-remove"`` it is hidden, and ``n`` is the number that you expect.',
    ),
    "/run/change": Question(
        "detect_change",
        f"{_PAIR} {_PAID}",
        'Locate a change once, charged likewise, or say "no change": ``false_alarm`` bounds how often unchanged data '
        "are said to have changed. ``assume_change`` takes a change for granted.",
    ),
    "/estimate": Question(
        "design_estimate",
        "family epsilon n at",
        "An estimate on n records: how long its interval is in the mean where the true value is ``at``, and how often "
        "it holds that. ``bound`` asks for the length that no private interval falls below, too.",
    ),
    "/estimate/size": Question(
        "design_estimate", "family epsilon at width", "How many records make an interval ``width`` long at ``at``."
    ),
    "/groups": Question(
        "design_groups",
        "epsilon n rate lift",
        "Two groups of n records each, or of two numbers: how likely a lift over the control group's rate is found, "
        "and how likely others are.",
    ),
    "/groups/size": Question(
        "design_groups", "epsilon rate lift", "How many records of the control group find a lift, as often as asked."
    ),
    "/run/estimate": Question(
        "estimate",
        f"family epsilon {_PAID}",
        "Estimate a parameter once, with an interval, charged likewise. ``n`` is the number expected, where "
        '``neighbours="add-remove"`` hides the true one.',
    ),
    "/run/groups": Question(
        "compare_groups",
        f"epsilon {_PAID}",
        "Compare two groups once, charged likewise: one file with a column ``group``, or the control group's file and "
        "the treated group's, ``treatment``.",
    ),
    "/monitors": Question(
        "Monitor",
        f"{_PAIR} dataset request",
        "Watch a stream: records sent to it, or the lines of a file in the folder, as they are added. Where "
        "another file takes its place, or it is cut short, the monitor stops and says so.",
    ),
    "/sequentials": Question(
        "Sequential",
        f"{_PAIR} dataset request",
        "Test a stream till it is decided: records sent to it, or the lines of a file in the folder, as for a monitor. "
        "``most``: decide after so many records in any case.",
    ),
}

_TESTS = "/design /size /plan /power /along"
_FOR_PLANS = f"/look {_TESTS} /compare"
_ON_PAIRS = "/run/test /run/change"
_ESTIMATES = "/estimate /estimate/size /run/estimate"
_GROUPS = "/groups /groups/size /run/groups"
_ON_DATA = f"{_ON_PAIRS} /run/estimate /run/groups"
_FOLLOWED = "/monitors /sequentials"
_IN_STUDIO = f"{_FOR_PLANS} {_ON_PAIRS} {_FOLLOWED}"
_WATCHES = "monitor sequential"
_STREAMED = f"/run/change {_FOLLOWED}"
_PAIRED = f"plan compare curve check test detect changes {_WATCHES} {_IN_STUDIO} /theory /notions"
_RUNS = "test detect changes fit estimate groups"

OPTIONS = (
    Option(
        "data",
        DATA,
        SOURCE,
        "A file or glob of CSV, Parquet or Feather, a table such as duckdb:///file.db::table, or - for lines.",
        f"check {_RUNS}",
    ),
    Option(
        "treatment", TREATMENT, SOURCE, "The data of the treated group, where no --group tells the two apart.", "groups"
    ),
    Option("treatment", PLACE, SOURCE, "The treated group's file, where no column tells the two apart.", "/run/groups"),
    Option("file", LINES, MANNER, "A file of one record a line; - or nothing: standard input.", _WATCHES),
    Option("null", LAW, RULE, 'P, such as "normal(0, 1)" or "categorical(a=0.2, b=0.8)".', f"{_PAIRED} fit"),
    Option("alternative", LAW, RULE, "Q, written like the null.", _PAIRED),
    Option(
        "alternative",
        NAME,
        RULE,
        "two-sided (the default), greater (the treatment's rate is) or less.",
        "groups",
    ),
    Option(
        "alternative",
        NAME,
        RULE,
        "Which difference is looked for: any, or that the treatment's rate is greater, or less.",
        _GROUPS,
        default="two-sided",
        choices=("two-sided", "greater", "less"),
    ),
    Option(
        "family",
        TEXT,
        RULE,
        'Where records come from, with one "?", as in "normal(mean=?, sd=1)".',
        f"estimate {_ESTIMATES}",
    ),
    Option("family", TEXT, MANNER, 'Of an estimate or of groups: a family with one "?".', "check"),
    Option("between", RANGE, MANNER, 'Of an estimate: between which two numbers the "?" lies.', "check"),
    Option("success", TEXT, MANNER, "Of an estimate or of groups: the label that counts.", "check"),
    Option("distance", NUMBER, MANNER, "Of a fit: total variation from the null.", "check"),
    Option(
        "between",
        RANGE,
        RULE,
        'Between which two numbers the "?" lies for sure; may be left out for a rate.',
        f"estimate {_ESTIMATES}",
    ),
    Option(
        "near",
        NUMBER,
        RULE,
        'A value of the "?" that you expect: the interval is shortest there.',
        f"estimate {_ESTIMATES}",
    ),
    Option(
        "epsilon",
        LOSS,
        RULE,
        "Privacy loss; typically between 0.1 and 2.",
        f"plan compare curve check test detect changes {_WATCHES} fit estimate groups grant {_IN_STUDIO} {_ESTIMATES} "
        f"{_GROUPS}",
    ),
    Option(
        "privacy",
        TEXT,
        MANNER,
        'Instead of epsilon, a notion such as "zcdp(0.5)": records under it and what it converts into.',
        "compare",
    ),
    Option(
        "privacy",
        TEXT,
        RULE,
        'Instead of epsilon, another notion: "approx(1, 1e-6)", "gdp(1)", "zcdp(0.5)", "tv(0.1)" and others.',
        f"plan curve test detect changes fit estimate groups {_WATCHES} {_STREAMED} {_TESTS} /notions /run/test "
        f"{_ESTIMATES} {_GROUPS}",
    ),
    Option("privacy", TEXT, MANNER, "Instead of epsilon, a notion: drawn at the epsilon that gains as much.", "/look"),
    Option("epsilons", LOSSES, RULE, "Privacy losses.", "/theory"),
    Option("distance", NUMBER, RULE, "Total variation from the null, where Q is unknown.", "detect monitor fit"),
    Option(
        "n",
        COUNT,
        RULE,
        "Number of records, which is public.",
        "plan check test estimate /design /along /run/test /estimate /run/estimate",
    ),
    Option("n", COUNTS, RULE, "Numbers of records, such as 50,100,200.", "curve /power"),
    Option(
        "n", COUNTS, MANNER, "For a plan without data: records of control and treatment, such as 200,300.", "groups"
    ),
    Option("n", COUNTS, RULE, "Records of control and treatment; one number for both.", "/groups /groups/size"),
    Option(
        "advantage",
        SHARE,
        RULE,
        "Aim: 1 - alpha - beta; 2/3 if nothing is said.",
        "plan compare /size /plan /compare /notions",
    ),
    Option(
        "alpha",
        SHARE,
        RULE,
        "Type I error: saying alternative under the null.",
        f"plan curve test fit {_TESTS} /run/test",
    ),
    Option(
        "alpha",
        SHARE,
        RULE,
        "Type I error: the verdict alternative under the null; 0.05.",
        "sequential /sequentials",
        default=0.05,
    ),
    Option("alpha", SHARE, RULE, "Type I error: finding a difference where there is none; 0.05.", f"groups {_GROUPS}"),
    Option(
        "confidence",
        SHARE,
        RULE,
        "How often the interval holds the true value, at least; 0.95.",
        f"estimate groups {_ESTIMATES} {_GROUPS}",
    ),
    Option("above", NUMBER, RULE, "Records of at least this public cut are successes.", f"groups {_GROUPS}"),
    Option("success", TEXT, RULE, 'The label that counts, such as Yes, for "bernoulli(?)" of labels.', "estimate"),
    Option("success", TEXT, RULE, "Records of this label are successes; 1 if nothing is said.", f"groups {_GROUPS}"),
    Option("at", NUMBER, MANNER, 'The value of the "?" to plan for.', "/estimate /estimate/size"),
    Option("width", NUMBER, MANNER, "How long the interval shall be.", "/estimate/size"),
    Option("rate", SHARE, MANNER, "The control group's rate.", "/groups /groups/size"),
    Option("lift", NUMBER, MANNER, "By how much the treatment's rate is larger.", "/groups /groups/size"),
    Option("beta", SHARE, MANNER, "Type II error that the lift may be missed with; 0.2.", "/groups/size"),
    Option("at", NUMBER, MANNER, 'For a plan without data: the value of the "?" to plan for.', "estimate"),
    Option("width", NUMBER, MANNER, "For a plan: how many records make the interval so short at --at.", "estimate"),
    Option("rate", NUMBER, MANNER, "For a plan without data: the control group's rate.", "groups"),
    Option("lift", NUMBER, MANNER, "For a plan: by how much the treatment's rate is larger.", "groups"),
    Option("beta", SHARE, RULE, "Type II error: saying null under the alternative.", "plan fit /size /plan"),
    Option("beta", SHARE, MANNER, "For a plan: type II error that the lift may be missed with; 0.2.", "groups"),
    Option(
        "beta",
        SHARE,
        RULE,
        "Type II error: the verdict null under the alternative; 0.05.",
        "sequential /sequentials",
        default=0.05,
    ),
    Option("most", COUNT, RULE, "Decide after so many records in any case.", "sequential /sequentials"),
    Option(
        "aim",
        NAME,
        RULE,
        "Whose mean number of records is made small: larger (of both, the default), null or alternative.",
        "sequential",
        choices=("larger", "null", "alternative"),
    ),
    Option("schedule", COUNTS, RULE, "Sizes of the first block and of the later ones, such as 12,8.", "sequential"),
    Option(
        "beta",
        SHARE,
        RULE,
        "Probability of missing the stated accuracy; 0.1.",
        "detect changes monitor /run/change /monitors",
        default=0.1,
    ),
    Option("any_power", SWITCH, MANNER, "Run also where the type II error is larger than beta.", "fit"),
    Option("test", NAME, RULE, "tight (the default), scllr, ncllr, llr or sllr.", "plan curve test"),
    Option("clamp", CLAMP, RULE, "tuned (the default), paper, or two numbers: -0.5,0.5.", "plan curve test"),
    Option("threshold", NUMBER, RULE, "Say null above it, in nats.", "plan curve test"),
    Option(
        "neighbours",
        NAME,
        RULE,
        "What privacy hides: replace (a record, the default) or add-remove.",
        f"plan curve test estimate {_TESTS} /run/test {_ESTIMATES}",
        default="replace",
        choices=("replace", "add-remove"),
    ),
    Option(
        "max_rows_per_unit",
        COUNT,
        RULE,
        "Maximum number of records that the rows of one person count as (default 1).",
        f"plan test detect changes fit estimate groups {_TESTS} {_ON_PAIRS} {_ESTIMATES} {_GROUPS}",
    ),
    Option(
        "release",
        NAME,
        RULE,
        "statistic (the default), or decision: fewer records, and only the decision's level leaves.",
        f"plan curve test {_TESTS} /run/test",
        default="statistic",
        choices=("statistic", "decision"),
    ),
    Option("bins", COUNT, RULE, "Number of bins for a continuous null.", "fit"),
    Option("method", NAME, RULE, "auto (the default), direct, uniformity or grains.", "fit"),
    Option("method", NAME, RULE, "auto (the default), direct, blocks or paper.", "detect"),
    Option("method", NAME, RULE, "cusum (the default) or paper.", "monitor"),
    Option(
        "false_alarm",
        SHARE,
        RULE,
        "Say 'changed' of unchanged data at most so often; 0.05.",
        "detect changes /run/change",
    ),
    Option(
        "assume_change",
        SWITCH,
        RULE,
        "Take a change for granted: always name an index, never say 'no change'.",
        "detect /run/change",
    ),
    Option("block", COUNT, RULE, "Records in a block of the paper's method.", "detect monitor"),
    Option("interval", COUNT, RULE, "Blocks in an interval, for the paper's method.", "monitor"),
    Option(
        "mean_time_between_false_alarms",
        SPAN,
        RULE,
        "Records between two false alarms, on average.",
        "monitor /monitors",
    ),
    Option(
        "source", PLACE, SOURCE, "A path inside the studio's folder, or the name of an upload.", f"{_ON_DATA} /columns"
    ),
    Option("path", FILE, SOURCE, "A file in the studio's folder, whose lines are followed.", _FOLLOWED),
    Option("column", NAME, WHERE, "The column that holds the records.", f"check {_RUNS} {_ON_DATA}"),
    Option(
        "group", NAME, WHERE, "The column that names the group of a row, with two values; public.", "groups /run/groups"
    ),
    Option(
        "control_name", NAME, WHERE, "Which of these is the control group; the first by name.", "groups /run/groups"
    ),
    Option(
        "unit",
        NAME,
        WHERE,
        "The column that says whose row it is.",
        f"test detect changes fit estimate groups {_ON_DATA}",
    ),
    Option("order", NAME, WHERE, "The column that gives the order of time.", "detect changes /run/change"),
    Option("decimal", TEXT, READING, "The decimal mark of numbers in texts: . or a comma.", f"check {_RUNS}"),
    Option("missing", TEXT, READING, "Texts that mean a missing record, such as NA,-.", f"check {_RUNS}"),
    Option("fold_case", SWITCH, READING, "Labels may differ in case, or by blanks around them.", f"check {_RUNS}"),
    Option("delimiter", TEXT, READING, "What separates the fields of CSV files: , ; | or a tab.", f"check {_RUNS}"),
    Option("text_order", SWITCH, READING, "The order of time is meant as that of its texts.", "detect changes"),
    Option(
        "odd_epsilon",
        LOSS,
        RUN,
        "Tell the share of records that make no sense, for so much more.",
        f"{_RUNS} {_ON_DATA}",
    ),
    Option(
        "public_order",
        SWITCH,
        WHERE,
        "The order's values are public: name the one at the change, too.",
        "detect changes /run/change",
    ),
    Option(
        "ledger",
        LEDGER,
        PAYER,
        "Ledger of budgets: a file or postgresql:// address.",
        f"{_RUNS} {_WATCHES} grant show verify studio",
    ),
    Option("dataset", NAME, PAYER, "Whose budget pays.", f"{_RUNS} {_WATCHES} grant show {_ON_DATA} {_FOLLOWED}"),
    Option(
        "request",
        NAME,
        PAYER,
        "Name of this request; the same again is free.",
        f"{_RUNS} {_WATCHES} {_ON_DATA} {_FOLLOWED}",
    ),
    Option(
        "ledger_timeout",
        SECONDS,
        PAYER,
        "Seconds to wait for a ledger that others hold; 30.",
        f"{_RUNS} {_WATCHES} grant show verify",
    ),
    Option("family", TEXT, MANNER, 'Where records come from, with one "?", as in "normal(mean=?, sd=1)".', "/along"),
    Option("between", RANGE, MANNER, 'The least and the largest value of the "?".', "/along"),
    Option("report", SWITCH, MANNER, "A page to hand over, too.", _ON_DATA),
    Option("purpose", TEXT, MANNER, "What the answer is for, as the report tells it.", f"plan {_RUNS} {_ON_DATA}"),
    Option("author", TEXT, MANNER, "Who asks, as the report tells it.", f"plan {_RUNS} {_ON_DATA}"),
    Option("document", SWITCH, MANNER, "The whole test as JSON, too.", "/design"),
    Option("bound", SWITCH, MANNER, "The number that no private test can do without, too.", "/size"),
    Option("bound", SWITCH, MANNER, "The length that no private interval falls below, too.", "/estimate"),
    Option("follow", SWITCH, MANNER, "Wait for more lines at the end of the file, like tail -F.", _WATCHES),
    Option("state", FILE, MANNER, "Keep the state in this file, and go on from it.", _WATCHES),
    Option("from_start", SWITCH, MANNER, "Standard input starts anew: skip the lines that were seen.", _WATCHES),
    Option("new_file", SWITCH, MANNER, "The file holds new records: read it from its first line.", _WATCHES),
    Option("go_on", SWITCH, MANNER, "Watch on after an alarm, for the next one.", "monitor"),
    Option(
        "covers",
        SOURCES,
        MANNER,
        "A file, folder, glob or table that belongs to it; others are refused. Repeat it.",
        "grant",
    ),
    Option("privacy", TEXT, MANNER, 'The total budget in another notion, such as "approx(1, 1e-6)".', "grant"),
    Option(
        "neighbours",
        NAME,
        MANNER,
        "What the budget hides: replace (a record, at first) or add-remove; as before if left out.",
        "grant",
        choices=("replace", "add-remove"),
    ),
    Option(
        "unit",
        NAME,
        MANNER,
        'The column of the persons whose rows it protects together; as before if left out, "" for single rows.',
        "grant",
    ),
    Option("since", TEXT, MANNER, "A fingerprint noted earlier: from a result, a report, show or verify.", "verify"),
    Option("folder", FOLDER, MANNER, "Folder whose files the page may open.", "studio", default="."),
    Option("port", PORT, MANNER, "Port on this machine; 0 takes a free one.", "studio", default=0),
    Option(
        "host",
        TEXT,
        MANNER,
        "Address to listen on; others than loopback are visible.",
        "studio",
        default="127.0.0.1",
    ),
    Option(
        "max_seconds",
        SECONDS,
        MANNER,
        "Seconds after which a run on data is stopped.",
        "studio",
        default=600.0,
    ),
    Option("no_browser", SWITCH, MANNER, "Print the address and open nothing.", "studio"),
    Option("design", FILE, MANNER, "Run the test that plan --save-design wrote.", "test"),
    Option(
        "problem",
        FILE,
        MANNER,
        "Read options from a TOML or JSON file.",
        f"plan compare curve {_WATCHES} check {_RUNS}",
    ),
    Option("save", FILE, MANNER, "Write the options to such a file.", f"plan compare {_RUNS}"),
    Option("save_design", FILE, MANNER, "Write the designed test, for test --design.", "plan"),
    Option("report", FILE, MANNER, "Write a report to hand over, one HTML file.", f"plan sequential {_RUNS}"),
    Option(
        "force",
        SWITCH,
        MANNER,
        "Write over files that are there, though not over what is read.",
        f"plan compare sequential {_RUNS}",
    ),
    Option(
        "exit_code",
        SWITCH,
        MANNER,
        "Exit with 1 for alternative or changed, 0 otherwise.",
        f"test detect changes fit groups {_WATCHES}",
    ),
    Option(
        "json",
        SWITCH,
        MANNER,
        "Print the result as JSON, and nothing else.",
        f"plan compare curve {_WATCHES} check grant show verify version {_RUNS}",
    ),
)


@dataclass(frozen=True)
class Stability:
    """A notion of privacy as it is asked for: in plain words, and its parameters with values to start from."""

    words: str
    parameters: tuple[tuple[str, float], ...]


NOTIONS = {
    "pure": Stability("epsilon: every probability changes by a factor of at most e^epsilon", (("epsilon", 1.0),)),
    "approx": Stability(
        "epsilon and delta: the same, but for a part delta of all probability", (("epsilon", 1.0), ("delta", 1e-6))
    ),
    "gdp": Stability("Gaussian: as hard as telling N(0, 1) from N(mu, 1)", (("mu", 1.0),)),
    "zcdp": Stability("zero-concentrated: Renyi divergences of at most rho times their order", (("rho", 0.5),)),
    "tv": Stability("total variation: no probability changes by more than eta", (("eta", 0.1),)),
    "renyi": Stability("Renyi: the divergence of one order is bounded", (("order", 2.0), ("bound", 1.0))),
    "kl": Stability("Kullback-Leibler: the divergence is bounded", (("eta", 0.5),)),
}
"""What ``privacy`` may name."""


def options(taker: str) -> list[Option]:
    """The options of a command or of a studio request, in the table's order."""
    return [option for option in OPTIONS if option.taken_by(taker)]


def named(taker: str, *roles: str) -> list[str]:
    """The names of a taker's options, of these roles only."""
    return [option.name for option in options(taker) if option.role in roles]


def find(taker: str, name: str) -> Option:
    """One option of a taker."""
    return next(option for option in options(taker) if option.name == name)


def separate(texts: str) -> list[str]:
    """What an option of several texts, separated by commas, says."""
    return [text for text in texts.split(",") if text.strip()]


def flag(name: str) -> str:
    """An option as the command line writes it.

    >>> flag("max_rows_per_unit")
    '--max-rows-per-unit'
    """
    return f"--{name.replace('_', '-')}"


def _keys() -> dict[str, Kind]:
    found: dict[str, Kind] = {}
    for option in OPTIONS:
        command = any(taker in QUESTIONS for taker in option.takers.split() if not taker.startswith("/"))
        if command and option.role != MANNER:
            found.setdefault(option.name, option.kind)
    return found


KEYS = _keys()
"""What a problem file may say: the names, and what each value must be."""


@dataclass(frozen=True)
class Unanswered:
    """A question that this version does not answer.

    Attributes:
        words: what it is asked by: the name of a family, of an argument or of a function.
        reason: why it is not answered.
        instead: what answers it today, or comes nearest.
    """

    words: str
    reason: str
    instead: str


TABLE = "needs a noisy table of the records, which this version does not have"
COLUMNS = "needs two columns of each record, and this version reads one"
TWO_UNKNOWN = Unanswered(
    "",
    f"Two unknown parameters are not estimated at once: that {TABLE}",
    "Give a number or a range for all but one, such as 'normal(mean=?, sd=2)' or 'normal(mean=?, sd in [1, 3])'.",
)
SEVERAL_COLUMNS = Unanswered(
    "", f"A question about several columns {COLUMNS}", "Ask about one column, or make one label of both columns first."
)
MORE_GROUPS = Unanswered(
    "anova kruskal arms groups",
    "This version compares two groups at a time, by their shares",
    "Keep the rows of two groups, and divide alpha by the number of comparisons.",
)
UNANSWERED = (
    Unanswered(
        "median quantile percentile iqr",
        f"A median or quantile {TABLE}",
        "Estimate the share above a public cut, 'share_above(cut, ?)', or test a public value: 'median(cut)' against "
        "'median_above(cut, 0.6)'.",
    ),
    Unanswered(
        "mean average ttest t_test",
        f"A mean without a distribution {TABLE}",
        "Name a distribution and a spread, such as 'normal(mean=?, sd=2)' or 'normal(mean=?, sd in [1, 3])', or ask "
        "for the share above a public cut, 'share_above(cut, ?)'.",
    ),
    Unanswered(
        "variance var sd std stdev",
        f"A spread without a distribution and its mean {TABLE}",
        "Where the mean is public, write 'normal(mean=0, sd=?)'.",
    ),
    Unanswered(
        "histogram table counts value_counts sum total",
        f"A histogram or a sum {TABLE}",
        "Ask for one share: 'categorical(label=?)' or 'share_above(cut, ?)'.",
    ),
    Unanswered(
        "correlation corr pearson spearman kendall covariance cov slope regression linear ols",
        f"A correlation or slope {COLUMNS}",
        "Compare two groups, parted by one column, in the share of the other above a public cut: "
        "pt.compare_groups(data, group=..., column=..., above=...).",
    ),
    Unanswered(
        "independent independence dependent contingency crosstab chi2_contingency joint multivariate_normal",
        f"A question about a joint distribution {COLUMNS}",
        "Where one column has two public values, use pt.compare_groups(data, group=..., column=..., success=...); "
        "otherwise make one label of both columns and give its probabilities to pt.goodness_of_fit.",
    ),
    MORE_GROUPS,
    Unanswered(
        "what statistic",
        f"Groups are compared by shares: a comparison by mean or median {TABLE}",
        "Count numbers of at least a public cut, above=..., or a label, success=...",
    ),
    Unanswered(
        "by group groupby per",
        "This version answers for all records at once, and not for each group",
        "Ask once for each group, of its rows alone; their number is then public. Two groups are compared by "
        "pt.compare_groups.",
    ),
    Unanswered(
        "paired pairs before after wilcoxon",
        f"A paired comparison {COLUMNS}",
        "Make one column of each person's difference first, and estimate the share of gains, 'share_above(0, ?)', or "
        "test 'median(0)' against 'median_above(0, 0.6)'.",
    ),
    Unanswered(
        "censored censoring censor event event_observed observed duration survival kaplan_meier hazard logrank cox",
        f"An answer about censored times {COLUMNS}: the time, and whether it was seen to end",
        "Choose a public time up to which everybody was followed, and estimate the share beyond it: "
        "'share_above(time, ?)'.",
    ),
    Unanswered(
        "trend drift seasonal autocorrelation",
        "A trend is not estimated by this version",
        "Compare two periods with pt.compare_groups, or look for a step with pt.detect_change.",
    ),
)
"""Questions that analysts ask, and this version does not answer."""


def unanswered(word: str) -> str:
    """Say why a question of this name is not answered, and what to ask instead; empty if it is not in the table.

    >>> unanswered("trend")
    'A trend is not estimated by this version. Compare two periods with pt.compare_groups, or look for a step with \
pt.detect_change.'
    """
    found = (one for one in UNANSWERED if word.lower() in one.words.split())
    return next((sentence(one) for one in found), "")


def sentence(one: Unanswered) -> str:
    """The reason, and what to do instead, for a message."""
    return f"{one.reason}. {one.instead}"


P = ParamSpec("P")
R = TypeVar("R")


def known_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function refuse arguments that it does not have in words, before it reads anything.

    >>> @known_arguments
    ... def estimate(data, *, column=None): ...
    >>> estimate([], colunm="x")
    Traceback (most recent call last):
    privatest.errors.InvalidInput: estimate() has no argument 'colunm'. Did you mean 'column'?
    """
    code = function.__code__
    positional = code.co_argcount
    names = code.co_varnames[: positional + code.co_kwonlyargcount]

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        for name in kwargs:
            if name not in names:
                from privatest.numbers import suggestion  # start-up: only what fails needs it

                hint = unanswered(name) or suggestion(name, names).strip() or f"It has {', '.join(names)}."
                raise InvalidInput(f"{function.__name__}() has no argument {name!r}. {hint}")
        if len(args) > positional:
            more = f" {sentence(MORE_GROUPS)}" if "treatment" in names else ""
            raise InvalidInput(
                f"{function.__name__}() takes {' and '.join(names[:positional])} without a name, and {len(args)} were "
                f"given.{more} Write the names of other arguments, such as epsilon=1."
            )
        return function(*args, **kwargs)

    return checked
