// The Estimate and Groups tabs: plans. The mean length of an interval along the parameter; power along the lift.

import { Newest, Refused, post } from "./ask.js";
import { drawLifts, drawWidths, short, whole } from "./draw.js";
import { fact, idle, moving, problem, stale, waiting } from "./plan.js";
import { compared, estimated, lifted, number } from "./settings.js";

const by = (id) => document.getElementById(id);
const questions = { here: new Newest(), bound: new Newest(), enough: new Newest(), along: new Newest(), power: new Newest(), arms: new Newest() };
const drawn = { widths: null, lifts: null };
const asked = { estimate: "", along: "", groups: "" };
const PLACES = [0.5, 0.1, 0.9, 0.3, 0.7, 0.02, 0.98]; // along the range, the middle first

// A refusal is shown where the question stands, and nothing stays that belongs to another question.
async function told(work, ...facts) {
  try {
    const found = await work();
    problem("");
    return found;
  } catch (error) {
    if (error.name === "AbortError") return null;
    if (!(error instanceof Refused)) throw error;
    problem(error.message);
    facts.forEach((name) => fact(name, "–"));
    return null;
  }
}

function read(settings, make) {
  try {
    return make(settings);
  } catch (error) {
    problem(error.message);
    return null;
  }
}

export function sized(settings) {
  moving();
  const found = read(settings, (now) => ({ base: estimated(now), at: number(now, "at", "Plan for ?"), width: number(now, "width", "Interval wanted") }));
  if (!found) return;
  const { base, width } = found;
  const ends = base.between || [0, 1];
  const at = found.at === null ? (ends[0] + ends[1]) / 2 : found.at;
  const body = { ...base, n: settings.n };
  const key = JSON.stringify([body, at, width]);
  if (key === asked.estimate) return;
  asked.estimate = key;
  waiting("width", "shortest", "coverage", "enough");
  stale("widths");
  // What is still asked of the question before would take a refusal of this one away.
  questions.bound.stop();
  questions.enough.stop();
  if (asked.along !== JSON.stringify(body)) {
    questions.along.stop();
    asked.along = "";
  }
  questions.here.ask(async (signal) => {
    const here = await told(() => post("/api/estimate", { ...body, at }, signal), "width", "shortest", "coverage", "enough");
    if (!here) return;
    fact("width", short(here.expected_width, 4), `if ${here.parameter} is ${short(at)}, n = ${whole(here.design.n)}`);
    fact("coverage", `${short(100 * here.coverage, 4)} %`, "of all runs, at least; computed, not simulated");
    asksBound(body, at, here);
    asksEnough(base, at, width);
    asksAlong(body, ends, here.parameter, at);
  }, 200);
}

function asksBound(body, at, here) {
  questions.bound.ask(async (signal) => {
    const more = await told(() => post("/api/estimate", { ...body, at, bound: true }, signal), "shortest");
    if (!more) return;
    const ratio = more.width_bound > 0 ? `ours is ${(here.expected_width / more.width_bound).toFixed(2)} times that` : "";
    fact("shortest", short(more.width_bound, 4), ratio);
  });
}

function asksEnough(base, at, width) {
  questions.enough.stop();
  if (width === null) return fact("enough", "–", "say how long the interval may be");
  questions.enough.ask(async (signal) => {
    await idle(signal);
    const found = await told(() => post("/api/estimate/size", { ...base, at, width }, signal), "enough");
    if (found) document.dispatchEvent(new CustomEvent("needed", { detail: whole(found.n) }));
    if (found) fact("enough", whole(found.n), `for a length of ${short(found.width)} at ${short(found.at)}`);
  });
}

function asksAlong(body, ends, parameter, at) {
  const key = JSON.stringify(body);
  if (key === asked.along && drawn.widths) return void drawWidths((drawn.widths = { ...drawn.widths, at }));
  asked.along = key;
  const points = [];
  by("widths-note").textContent = "being computed …";
  questions.along.ask(async (signal) => {
    for (const bound of [false, true]) {
      for (const place of PLACES) {
        await idle(signal);
        const where = ends[0] + place * (ends[1] - ends[0]);
        const found = await told(() => post("/api/estimate", { ...body, at: where, bound }, signal));
        if (signal.aborted || !found) return;
        const before = points.find((each) => each.at === where);
        if (before) before.bound = found.width_bound;
        else points.push({ at: where, width: found.expected_width, bound: null });
        drawn.widths = { points, parameter, ends, at, body };
        await drawWidths(drawn.widths);
      }
    }
    by("widths-note").textContent = "";
  }, 300);
}

export function grouped(settings) {
  moving();
  const found = read(settings, (now) => {
    const sizes = [number(now, "control", "Records, control"), number(now, "treatment", "Records, treated")];
    if (!sizes.every((each) => Number.isInteger(each) && each >= 1)) throw new Error("Records of both groups: whole numbers from 1 on.");
    return { base: { ...compared(now), ...lifted(now), n: sizes }, beta: number(now, "miss", "Type II error") };
  });
  if (!found) return;
  const { base, beta } = found;
  const key = JSON.stringify([base, beta]);
  if (key === asked.groups) return;
  asked.groups = key;
  waiting("power", "size", "arms");
  stale("lifts");
  questions.arms.stop();
  questions.power.ask(async (signal) => {
    const here = await told(() => post("/api/groups", base, signal), "power", "size", "arms");
    if (!here) return;
    fact("power", short(here.found), `${short(100 * base.rate)} % against ${short(100 * (base.rate + base.lift))} %`);
    fact("size", short(here.power[here.lifts.indexOf(0)]), `if both rates are ${short(base.rate)}; at most α = ${short(base.alpha)} at any`);
    drawn.lifts = here;
    await drawLifts(here);
    questions.arms.ask(async (after) => {
      await idle(after);
      const more = await told(() => post("/api/groups/size", { ...base, beta }, after), "arms");
      if (more) document.dispatchEvent(new CustomEvent("needed", { detail: more.n.map(whole).join(" + ") }));
      if (more) fact("arms", more.n.map(whole).join(" + "), `to find the lift with probability ${short(1 - (beta === null ? 0.2 : beta))}`);
    });
  }, 200);
}

export function redrawSizes() {
  if (drawn.widths) drawWidths(drawn.widths);
  if (drawn.lifts) drawLifts(drawn.lifts);
}
