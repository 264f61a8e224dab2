// The Plan tab: sliders in, pictures out. Quick answers first; slower ones follow and fill in.

import { Newest, Refused, Steady, filling, post } from "./ask.js";
import { drawAlong, drawDensities, drawLaw, drawPower, drawSizes, short, whole } from "./draw.js";
import { goal, laws, price, priced, shared } from "./settings.js";

const EPSILONS = [0.05, 0.1, 0.2, 0.5, 1, 2, 4];
const THEORY = Array.from({ length: 25 }, (_, i) => Number((0.04 * (5 / 0.04) ** (i / 24)).toPrecision(4)));
const SHARES = [1, 0.5, 2, 0.25, 1.5, 3, 0.125, 0.75, 4];

const by = (id) => document.getElementById(id);
const questions = { design: new Newest(), needed: new Newest(), bound: new Newest(), sizes: new Newest(), power: new Newest(), compare: new Newest(), along: new Newest() };
const drawn = { theory: [], sizes: {}, sizesKey: "", power: [], powerKey: "", compareKey: "", needed: null, look: null, design: null, along: null };

export function problem(message) {
  by("problem").hidden = !message;
  by("problem").textContent = message || "";
}

export function fact(name, value, note = "") {
  by(`fact-${name}`).textContent = value;
  by(`fact-${name}-note`).textContent = note;
  by(`fact-${name}`).parentElement.classList.remove("busy");
}
// A picture of other settings is dimmed at once; drawing it anew lights it up.
export const stale = (...charts) => charts.forEach((name) => by(`chart-${name}`).classList.add("stale"));
export const waiting = (...names) => names.forEach((name) => by(`fact-${name}`).parentElement.classList.add("busy"));

// A refusal is shown where the question stands; what was drawn stays, faded.
async function told(work) {
  try {
    return await work();
  } catch (error) {
    if (error instanceof Refused) problem(error.message);
    else if (error.name !== "AbortError") throw error;
    return null;
  }
}

// Slow curves wait until nothing was moved for a while: sliders come first.
let moved = 0;
let later = null;
export const moving = () => { moved = performance.now(); };
export async function idle(signal) {
  while (performance.now() - moved < 600 && !signal.aborted) await new Promise((done) => setTimeout(done, 100));
}

// Of sets of distributions one member each is drawn.
function membersNote(asked, members) {
  const bare = (text) => text.replace(/\s/g, "");
  const sides = ["null", "alternative"];
  if (!sides.some((side) => typeof asked[side] === "string" && bare(asked[side]) !== bare(members[side]))) return "";
  return `of the members hardest to tell apart: ${members.null} and ${members.alternative}`;
}

const REGIMES = { tails: "the tails decide", core: "the core decides", free: "privacy costs nothing here" };
const regime = (name) => (name in REGIMES ? `; ${REGIMES[name]}` : "");

const look = new Steady(async (settings) => {
  const found = await told(() => post("/api/look", { ...laws(settings), ...price(settings, "/look") }));
  if (!found) return;
  problem("");
  drawn.look = found;
  const { decomposition: split } = found;
  drawn.tau = [short(split.tau), `clamp ${short(split.clamp[0])} to ${short(split.clamp[1])}${split.swapped ? ", swapped" : ""}${settings.privacy ? `; at ε = ${short(split.epsilon)}, which gains as much` : ""}`];
  fact("tau", drawn.tau[0], drawn.tau[1] + regime(drawn.regime));
  by("densities-note").textContent = membersNote(laws(settings), found.members);
  await drawDensities(found);
  clearTimeout(later);
  if (drawn.theory.length) later = setTimeout(() => drawSizesNow(settings), 120);
});

// Along epsilon; another notion stands at the epsilon that gains as much.
function drawSizesNow(settings) {
  const epsilon = settings.privacy && drawn.look ? drawn.look.decomposition.epsilon : settings.epsilon;
  return drawSizes({ theory: drawn.theory, sizes: drawn.sizes, epsilon, needed: drawn.needed, name: priced(settings, "/size") });
}

function askDesign(settings, pair) {
  waiting("errors", "advantage");
  stale("law");
  questions.design.ask(async (signal) => {
    const found = await told(() => post("/api/design", designed(settings, pair), signal));
    if (!found) return;
    drawn.design = found;
    const { design } = found;
    fact("errors", `${short(design.alpha)} / ${short(design.beta)}`, design.worst_null === undefined ? `false alarms α / misses β on ${whole(design.n)} records` : `the largest over the sets, at ${design.worst_null} / ${design.worst_alternative}; ${whole(design.n)} records`);
    fact("advantage", short(design.advantage), `1 − α − β; noise ${design.noise}, sd ${short(design.noise_sd)} nats`);
    await drawLaw(found);
  }, 130);
}

const designed = (settings, pair) => ({ ...pair, ...shared(settings, "/design"), n: settings.n, alpha: settings.goal === "errors" ? settings.alpha : null });

const aimed = (settings) => (settings.goal === "errors" ? `for α ${short(settings.alpha)}, β ${short(settings.beta)}` : `to be ${short(settings.advantage)} better than guessing`);

function askNeeded(settings, pair) {
  waiting("needed", "bound", "nonprivate");
  drawn.needed = null;
  const asked = { ...pair, ...goal(settings), ...shared(settings, "/size") };
  questions.bound.stop();
  questions.needed.ask(async (signal) => {
    const found = await told(() => post("/api/size", asked, signal));
    if (!found) return;
    drawn.needed = found.n;
    fact("needed", whole(found.n), aimed(settings));
    document.dispatchEvent(new CustomEvent("needed", { detail: whole(found.n) }));
    if (drawn.theory.length) await drawSizesNow(settings);
    askPower(settings, pair, found.n);
    questions.bound.ask(async (signal) => {
      const more = await told(() => post("/api/plan", asked, signal));
      if (!more) return;
      const cost = more.nonprivate ? `privacy costs ${(more.n / more.nonprivate).toFixed(2)} times as many` : "";
      fact("nonprivate", whole(more.nonprivate), cost);
      fact("bound", whole(more.lower_bound), more.lower_bound ? `ours is ${(more.n / more.lower_bound).toFixed(2)} times that` : "");
      const other = settings.release === "statistic" && more.n_decision ? `; ${whole(more.n_decision)} if the decision alone leaves` : "";
      fact("needed", whole(more.n), aimed(settings) + other);
      drawn.regime = more.regime;
      if (drawn.tau) fact("tau", drawn.tau[0], drawn.tau[1] + regime(more.regime));
    }, 200);
  }, 120);
}

function askPower(settings, pair, middle) {
  const alpha = settings.goal === "errors" ? settings.alpha : null;
  const asked = { ...pair, ...shared(settings, "/power"), alpha };
  const sizes = [...new Set(SHARES.map((share) => Math.max(1, Math.round(middle * share))))].filter((n) => n <= 1e9);
  const key = JSON.stringify([asked, sizes]);
  if (key === drawn.powerKey) return void by("chart-power").classList.remove("stale");
  questions.power.ask(async (signal) => {
    const points = [];
    for (let i = 0; i < sizes.length; i += 3) {
      await idle(signal);
      const found = await told(() => post("/api/power", { ...asked, n: sizes.slice(i, i + 3) }, signal));
      if (!found) return;
      found.n.forEach((n, j) => points.push({ n, alpha: found.alpha[j], beta: found.beta[j] }));
      drawn.power = points;
      await drawPower({ points, n: settings.n, goal: goal(settings) });
    }
    drawn.powerKey = key;
  }, 400);
}

function askSizes(settings, pair) {
  const { privacy, epsilon, ...others } = shared(settings, "/size");
  const asked = { ...pair, ...goal(settings), ...others };
  const key = JSON.stringify(asked);
  if (key === drawn.sizesKey) return;
  stale("sizes");
  drawn.sizesKey = key;
  const again = JSON.stringify(pair) !== drawn.pairKey;
  drawn.pairKey = JSON.stringify(pair);
  drawn.sizes = {};
  if (again) drawn.theory = [];
  questions.sizes.ask(async (signal) => {
    try {
      if (again) drawn.theory = (await post("/api/theory", { ...pair, epsilons: THEORY }, signal)).complexity;
      await drawSizesNow(current);
      for (const epsilon of [...EPSILONS].sort((a, b) => Math.abs(Math.log(a / current.epsilon)) - Math.abs(Math.log(b / current.epsilon)))) {
        await idle(signal);
        const found = await told(() => post("/api/size", { ...asked, epsilon, bound: true }, signal));
        if (signal.aborted) return;
        if (found) drawn.sizes[epsilon] = found;
        await drawSizesNow(current);
      }
    } catch (error) {
      drawn.sizesKey = "";
      if (!(error instanceof Refused)) throw error;
    }
  }, 250);
}

const TESTS = [["test"], ["records", true], ["over the bound", true], ["over the optimum", true], ["private"], ["note"]];
const NOTIONS = [["privacy"], ["relation"], ["records, best test", true], ["no test needs fewer than", true]];

// The tests side by side; under a notion other than epsilon, the notions that it converts into.
function askCompare(settings, pair) {
  const advantage = settings.goal === "errors" ? Number((1 - settings.alpha - settings.beta).toPrecision(12)) : settings.advantage;
  const asked = settings.privacy ? { ...pair, privacy: settings.privacy, advantage } : { ...pair, epsilon: settings.epsilon, advantage };
  const key = JSON.stringify(asked);
  if (key === drawn.compareKey) return;
  by("compare-note").textContent = "being computed …";
  by("compare").classList.add("busy");
  questions.compare.ask(async (signal) => {
    await idle(signal);
    const answer = post(settings.privacy ? "/api/notions" : "/api/compare", asked, signal);
    if (!settings.privacy) filling(answer, "compare", asked, (rows) => { if (!signal.aborted) tabulate(TESTS, tests(rows)); });
    const found = await told(() => answer);
    if (!found) return;
    drawn.compareKey = key;
    by("compare-note").textContent = `for advantage ${short(found.advantage)} at ${settings.privacy || `ε = ${settings.epsilon}`}${settings.neighbours === "replace" ? "" : ", one record replaced"}`;
    const rows = settings.privacy
      ? found.rows.map((row) => ({ main: row.relation === "as asked", cells: [row.privacy, row.relation, whole(row.optimum), whole(row.lower_bound)] }))
      : tests(found.rows);
    tabulate(settings.privacy ? NOTIONS : TESTS, rows);
  }, 700);
}

const ratio = (value) => (value === null ? "–" : value.toFixed(2));
const tests = (rows) => rows.map((row) => ({ main: row.test === "tight", cells: [row.test, row.n === null ? "never" : whole(row.n), ratio(row.ratio_to_bound), ratio(row.ratio_to_optimum), row.private ? "yes" : "no", row.note] }));

function tabulate(headings, rows) {
  const table = by("compare");
  table.classList.remove("busy");
  table.tHead.rows[0].replaceChildren(...headings.map(([textContent, number]) => Object.assign(document.createElement("th"), { scope: "col", textContent, className: number ? "number" : "" })));
  table.tBodies[0].replaceChildren(...rows.map(({ main, cells }) => {
    const line = document.createElement("tr");
    if (main) line.className = "default";
    cells.forEach((text, i) => Object.assign(line.insertCell(), { textContent: text, className: headings[i][1] ? "number" : "" }));
    return line;
  }));
}

function askAlong(settings, pair) {
  const [family, ends] = [settings.family.trim(), [settings.from, settings.to].map((each) => (each.trim() === "" ? NaN : Number(each)))];
  const note = (text) => { by("along-note").textContent = text; };
  questions.along.stop();
  if (!family) return note("");
  if (!ends.every(Number.isFinite)) return note("Give two numbers between which the ? lies.");
  const alpha = settings.goal === "errors" ? settings.alpha : null;
  const asked = { ...pair, ...shared(settings, "/along"), n: settings.n, alpha, family, between: ends };
  stale("along");
  note("being computed …");
  questions.along.ask(async (signal) => {
    await idle(signal);
    try {
      drawn.along = await post("/api/along", asked, signal);
    } catch (error) {
      if (error instanceof Refused) note(error.message);
      if (!(error instanceof Refused) && error.name !== "AbortError") throw error;
      return;
    }
    note(`on ${whole(drawn.along.n)} records`);
    await drawAlong(drawn.along);
  }, 500);
}

let current = null;
let before = {};

// What changed decides what is asked again.
export function planned(settings) {
  current = { ...settings };
  moved = performance.now();
  let pair;
  try {
    pair = laws(settings);
  } catch (error) {
    problem(error.message);
    return;
  }
  let now;
  try {
    now = shared(settings, "/size");
  } catch (error) {
    problem(error.message);
    return;
  }
  const key = JSON.stringify([pair, now, goal(settings)]);
  const last = before;
  before = { look: JSON.stringify([pair, price(settings, "/look")]), key, all: JSON.stringify([key, settings.n]), along: JSON.stringify([key, settings.n, settings.family, settings.from, settings.to]) };
  if (before.look !== last.look) {
    stale("densities");
    waiting("tau");
    look.ask(current);
  }
  if (before.key !== last.key) {
    stale("power");
    askNeeded(current, pair);
    askSizes(current, pair);
    askCompare(current, pair);
  } else if (before.all !== last.all && drawn.power.length) drawPower({ points: drawn.power, n: settings.n, goal: goal(settings) });
  if (before.all !== last.all) askDesign(current, pair);
  if (before.along !== last.along) askAlong(current, pair);
}

export function redraw() {
  if (!current) return;
  if (drawn.look) drawDensities(drawn.look);
  if (drawn.design) drawLaw(drawn.design);
  if (drawn.along) drawAlong(drawn.along);
  if (drawn.theory.length) drawSizesNow(current);
  if (drawn.power.length) drawPower({ points: drawn.power, n: current.n, goal: goal(current) });
}

export async function saveDesign(settings) {
  const found = await told(() => post("/api/design", { ...designed(settings, laws(settings)), document: true }));
  if (!found) return;
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([JSON.stringify(found.document)], { type: "application/json" }));
  link.download = `test-${settings.n}.json`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
