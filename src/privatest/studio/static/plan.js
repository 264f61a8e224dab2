// The Plan tab: sliders in, pictures out. Quick answers first; slower ones follow and fill in.

import { Newest, Refused, Steady, post } from "./ask.js";
import { drawAlong, drawDensities, drawLaw, drawPower, drawSizes, short, whole } from "./draw.js";
import { goal, laws } from "./settings.js";

const EPSILONS = [0.05, 0.1, 0.2, 0.5, 1, 2, 4];
const THEORY = Array.from({ length: 25 }, (_, i) => Number((0.04 * (5 / 0.04) ** (i / 24)).toPrecision(4)));
const SHARES = [1, 0.5, 2, 0.25, 1.5, 3, 0.125, 0.75, 4];

const by = (id) => document.getElementById(id);
const questions = { design: new Newest(), regime: new Newest(), needed: new Newest(), bound: new Newest(), sizes: new Newest(), power: new Newest(), compare: new Newest(), along: new Newest() };
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

const look = new Steady(async (settings) => {
  const found = await told(() => post("/api/look", { ...laws(settings), epsilon: settings.epsilon }));
  if (!found) return;
  problem("");
  drawn.look = found;
  const { decomposition: split } = found;
  fact("tau", short(split.tau), `clamp ${short(split.clamp[0])} to ${short(split.clamp[1])}${split.swapped ? ", swapped" : ""}`);
  by("densities-note").textContent = membersNote(laws(settings), found.members);
  await drawDensities(found);
  clearTimeout(later);
  if (drawn.theory.length) later = setTimeout(() => drawSizesNow(settings), 120);
});

function drawSizesNow(settings) {
  return drawSizes({ theory: drawn.theory, sizes: drawn.sizes, epsilon: settings.epsilon, needed: drawn.needed });
}

function askDesign(settings, pair) {
  waiting("errors", "advantage");
  const alpha = settings.goal === "errors" ? settings.alpha : null;
  questions.design.ask(async (signal) => {
    const found = await told(() => post("/api/design", { ...pair, epsilon: settings.epsilon, n: settings.n, alpha, neighbours: settings.neighbours }, signal));
    if (!found) return;
    drawn.design = found;
    const { design } = found;
    fact("errors", `${short(design.alpha)} / ${short(design.beta)}`, design.worst_null === undefined ? `type I / type II, n = ${whole(design.n)}` : `the largest over the sets, at ${design.worst_null} / ${design.worst_alternative}; n = ${whole(design.n)}`);
    fact("advantage", short(design.advantage), `noise ${design.noise}, sd ${short(design.noise_sd)} nats`);
    await drawLaw(found);
  }, 130);
}

function askRegime(settings, pair) {
  waiting("regime");
  questions.regime.ask(async (signal) => {
    const found = await told(() => post("/api/theory", { ...pair, epsilons: [settings.epsilon] }, signal));
    if (!found) return;
    const [{ regime, value, nonprivate }] = found.complexity;
    fact("regime", regime, `order ${short(value)}; without privacy ${short(nonprivate)}`);
  }, 130);
}

function askNeeded(settings, pair) {
  waiting("needed", "bound");
  drawn.needed = null;
  const asked = { ...pair, epsilon: settings.epsilon, ...goal(settings), neighbours: settings.neighbours };
  questions.bound.stop();
  questions.needed.ask(async (signal) => {
    const found = await told(() => post("/api/size", asked, signal));
    if (!found) return;
    drawn.needed = found.n;
    fact("needed", whole(found.n), settings.goal === "errors" ? `for α ${short(settings.alpha)}, β ${short(settings.beta)}` : `for advantage ${settings.advantage}`);
    if (drawn.theory.length) await drawSizesNow(settings);
    askPower(settings, pair, found.n);
    questions.bound.ask(async (signal) => {
      const more = await told(() => post("/api/size", { ...asked, bound: true }, signal));
      if (more) fact("bound", whole(more.lower_bound), `no private test needs fewer; ours ${(more.n / more.lower_bound).toFixed(2)} times that`);
    }, 300);
  }, 180);
}

function askPower(settings, pair, middle) {
  const alpha = settings.goal === "errors" ? settings.alpha : null;
  const asked = { ...pair, epsilon: settings.epsilon, alpha, neighbours: settings.neighbours };
  const sizes = [...new Set(SHARES.map((share) => Math.max(1, Math.round(middle * share))))].filter((n) => n <= 1e9);
  const key = JSON.stringify([asked, sizes]);
  if (key === drawn.powerKey) return;
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
  const asked = { ...pair, ...goal(settings), neighbours: settings.neighbours };
  const key = JSON.stringify(asked);
  if (key === drawn.sizesKey) return;
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

function askCompare(settings, pair) {
  const advantage = settings.goal === "errors" ? 1 - settings.alpha - settings.beta : settings.advantage;
  const asked = { ...pair, epsilon: settings.epsilon, advantage };
  const key = JSON.stringify(asked);
  if (key === drawn.compareKey) return;
  by("compare-note").textContent = "being computed …";
  by("compare").classList.add("busy");
  questions.compare.ask(async (signal) => {
    const found = await told(() => post("/api/compare", asked, signal));
    if (!found) return;
    drawn.compareKey = key;
    by("compare-note").textContent = `for advantage ${short(found.advantage)} at ε = ${found.epsilon}${settings.neighbours === "replace" ? "" : ", one record replaced"}`;
    const body = by("compare").tBodies[0];
    body.replaceChildren(...found.rows.map((row) => {
      const line = document.createElement("tr");
      if (row.test === "tight") line.className = "default";
      const ratio = (value) => (value === null ? "–" : value.toFixed(2));
      const never = row.n === null ? "never" : whole(row.n);
      [[row.test], [never, true], [ratio(row.ratio_to_bound), true], [ratio(row.ratio_to_optimum), true], [row.private ? "yes" : "no"], [row.note]].forEach(([text, number]) => {
        const cell = line.insertCell();
        cell.textContent = text;
        if (number) cell.className = "number";
      });
      return line;
    }));
    by("compare").classList.remove("busy");
  }, 1200);
}

function askAlong(settings, pair) {
  const [family, ends] = [settings.family.trim(), [settings.from, settings.to].map((each) => (each.trim() === "" ? NaN : Number(each)))];
  const note = (text) => { by("along-note").textContent = text; };
  questions.along.stop();
  if (!family) return note("");
  if (!ends.every(Number.isFinite)) return note("Say between which two numbers the ? lies.");
  const alpha = settings.goal === "errors" ? settings.alpha : null;
  const asked = { ...pair, epsilon: settings.epsilon, n: settings.n, alpha, neighbours: settings.neighbours, family, between: ends };
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
    by("chart-along").hidden = false;
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
  const key = JSON.stringify([pair, settings.epsilon, goal(settings), settings.neighbours]);
  const last = before;
  before = { look: JSON.stringify([pair, settings.epsilon]), key, all: JSON.stringify([key, settings.n]), along: JSON.stringify([key, settings.n, settings.family, settings.from, settings.to]) };
  if (before.look !== last.look) {
    look.ask(current);
    askRegime(current, pair);
  }
  if (before.all !== last.all) askDesign(current, pair);
  if (before.along !== last.along) askAlong(current, pair);
  if (before.key !== last.key) {
    askNeeded(current, pair);
    askSizes(current, pair);
    askCompare(current, pair);
  } else if (before.all !== last.all && drawn.power.length) drawPower({ points: drawn.power, n: settings.n, goal: goal(settings) });
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
  const alpha = settings.goal === "errors" ? settings.alpha : null;
  const found = await told(() => post("/api/design", { ...laws(settings), epsilon: settings.epsilon, n: settings.n, alpha, neighbours: settings.neighbours, document: true }));
  if (!found) return;
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([JSON.stringify(found.document)], { type: "application/json" }));
  link.download = `test-${settings.n}.json`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
