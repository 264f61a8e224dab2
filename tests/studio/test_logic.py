"""What the page's scripts decide, in Node and without a browser: addresses, bodies, steps, headlines, progress."""

from __future__ import annotations

import json
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from privatest import options
from privatest.studio import planning_requests
from tests import needs

STATIC = Path(planning_requests.__file__).parent / "static"


@cache
def node() -> str:
    """The Node that Playwright brings along."""
    driver = pytest.importorskip("playwright._impl._driver")
    found = Path(driver.compute_driver_executable()[0])
    if not found.exists():
        needs.missing("Playwright's Node is not there. Get it: pip install playwright")
    return str(found)


def js(script: str, **given: Any) -> Any:
    """What a script gives back, with all modules of the page by name and ``given`` as constants."""
    modules = {name: (STATIC / f"{name}.js").as_uri() for name in ("settings", "ask", "run", "draw")}
    lines = [f"import * as {name} from {json.dumps(place)};" for name, place in modules.items()]
    lines += [f"const {name} = {json.dumps(value)};" for name, value in given.items()]
    lines.append(f"const found = await (async () => {{ {script} }})(); console.log(JSON.stringify(found ?? null));")
    ran = subprocess.run(
        [node(), "--input-type=module", "-"], input="\n".join(lines), capture_output=True, text=True, timeout=600
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_an_address_that_names_what_is_not_there_is_the_first_page() -> None:
    names = ["constructor", "__proto__", "", "run"]
    found = js(
        """return names.map((name) => settings.read(
          `#kind=${name}&goal=${name}&tab=${name}&neighbours=${name}&release=${name}&privacy=${name}&side=${name}&x=1`));""",
        names=names,
    )
    default = js("return settings.read('');")
    assert found == [default] * len(names)


def test_what_is_written_to_an_address_is_read_from_it() -> None:
    changed = {"kind": "table", "table": "a, 0.5, 0.3\nb, 0.5, 0.7", "epsilon": 0.75, "n": 77, "goal": "errors"}
    changed |= {"alpha": 0.032, "tab": "groups", "privacy": "approx(1, 1e-06)", "release": "decision", "rows": "3"}
    before, link, after = js(
        "const now = {...settings.DEFAULTS, ...changed}; const link = settings.write(now);"
        "return [now, link, settings.read(link)];",
        changed=changed,
    )
    assert before == after
    assert "launch" not in link
    assert js("return settings.launchWord('#epsilon=1&launch=abc');") == "abc"
    assert "launch" not in js("return settings.write(settings.read('#launch=abc&epsilon=2'));")


def test_bodies_hold_what_the_table_says_and_no_more() -> None:
    takes = planning_requests.controls()["takes"]
    now = {"privacy": "gdp(1)", "release": "decision", "neighbours": "add-remove", "rows": "2"}
    asked = js(
        """settings.known(takes);
        const all = {...settings.DEFAULTS, ...now};
        return Object.fromEntries(Object.keys(takes).map((request) => [request, settings.shared(all, request)]));""",
        takes=takes,
        now=now,
    )
    for request, body in asked.items():
        names = [option.name for option in options.of(request)]
        price = "privacy" if "privacy" in names else "epsilon"
        wanted = {price, *({"neighbours", "release", "max_rows_per_unit"} & set(names))}
        assert set(body) == wanted, request
    assert asked["/design"] == {
        "privacy": "gdp(1)",
        "neighbours": "add-remove",
        "release": "decision",
        "max_rows_per_unit": 2,
    }


def test_the_first_questions_of_a_page_are_those_that_the_studio_prepares() -> None:
    takes = planning_requests.controls()["takes"]
    asked = js(
        """const all = settings.read("");
        const bodies = () => {
          const pair = settings.laws(all);
          return {
            look: {...pair, ...settings.price(all, "/look")},
            size: {...pair, ...settings.goal(all), ...settings.shared(all, "/size")},
            design: {...pair, ...settings.shared(all, "/design"), n: all.n, alpha: null},
          };
        };
        const before = bodies();
        settings.known(takes);
        return [before, bodies()];""",
        takes=takes,
    )
    for bodies in asked:  # the same before and after it is known what each takes
        for job, body in bodies.items():
            made = planning_requests.body(f"/{job}")
            assert made(**body) == made(**planning_requests.FIRST[job])


@pytest.mark.parametrize(
    ("know", "said", "current"),
    [
        ({}, ["P or Q?", "choose a file", "ε = 0.5", "as many as there are", "needs a ledger"], 1),
        (
            {"file": "a.csv", "needed": "37", "ledger": True},
            ["P or Q?", "a.csv", "ε = 0.5", "37 needed", "say who pays"],
            4,
        ),
        (
            {"file": "a.csv", "needed": "37", "ledger": True, "dataset": "d", "released": True},
            ["P or Q?", "a.csv", "ε = 0.5", "37 needed", "done", "make the report"],
            5,
        ),
    ],
)
def test_the_way_to_an_answer_says_where_one_is(know: dict[str, Any], said: list[str], current: int) -> None:
    steps = js("return settings.steps(settings.DEFAULTS, know);", know=know)
    assert [step["said"] for step in steps][: len(said)] == said
    assert [step["done"] for step in steps].index(False) == current


def test_headlines_say_what_was_released() -> None:
    cases = [
        ("test", {"fits": "null", "decision": "null"}, "The data look like P"),
        ("test", {"fits": "neither", "decision": "null"}, "The data fit neither P nor Q"),
        ("change", {"changed": False, "n": 1200}, "No change in 1,200 records"),
        ("change", {"changed": True, "index": 300, "order_value": "1999"}, "Change at record 300 (1999)"),
        ("estimate", {"beyond": None, "parameter": "p", "estimate": 0.12345}, "p: about 0.1235"),
        ("estimate", {"beyond": "above", "parameter": "p"}, "The data lie above the whole range"),
        ("table", {}, "mean: about 1.5; median: about 2"),
        ("groups", {"names": ["a", "b"], "difference": 0.1}, "rate of b minus rate of a: about 0.1"),
    ]
    answers = [{"question": name, "estimate": value} for name, value in (("mean", 1.5), ("median", 2), ("other", 3))]
    found = js(
        "return cases.map(([task, release]) => run.headlined(task, release, answers));", cases=cases, answers=answers
    )
    assert found == [words for *_, words in cases]


def test_an_answer_that_breaks_off_is_told_unless_it_was_asked_again() -> None:
    broken = """
      let stream = null;
      globalThis.fetch = () => Promise.resolve(new Response(new ReadableStream({ start(made) { stream = made; } })));
      const outcome = async (again) => {
        const controller = new AbortController();
        const found = ask.get("/api/none", controller.signal).catch((error) => `${error.name}: ${error.message}`);
        setTimeout(() => { if (again) controller.abort(); stream.error(new TypeError("over")); }, 5);
        return found;
      };
      return [await outcome(true), await outcome(false)];
    """
    again, alone = js(broken)
    assert again.startswith("AbortError")
    assert "no readable answer" in alone


def test_of_many_questions_the_newest_counts() -> None:
    newest, steady = js(
        """const seen = [];
        const one = new ask.Newest();
        for (const value of [1, 2, 3]) one.ask(async () => { seen.push(value); }, 1);
        await new Promise((done) => setTimeout(done, 20));
        const order = [];
        const pause = () => new Promise((done) => setTimeout(done, 3));
        const two = new ask.Steady(async (value) => { order.push(value); await pause(); });
        two.ask(1); two.ask(2); await two.ask(3);
        await new Promise((done) => setTimeout(done, 20));
        return [seen, order];"""
    )
    assert newest == [3]
    assert steady == [1, 3]
