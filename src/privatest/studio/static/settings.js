// What is asked, as one plain object; written to and read from the address after the #, which never reaches a server.

// Without a prototype, as all tables here: an address may name anything, also what every object inherits.
export const FAMILIES = {
  __proto__: null,
  normal: { title: "normal", parameters: ["mean", "sd"], null: [0, 1], alternative: [0.5, 1] },
  bernoulli: { title: "Bernoulli (yes or no)", parameters: ["p"], null: [0.4], alternative: [0.6] },
  poisson: { title: "Poisson (counts)", parameters: ["mean"], null: [3], alternative: [4] },
  binomial: { title: "binomial", parameters: ["n", "p"], null: [10, 0.4], alternative: [10, 0.5] },
  exponential: { title: "exponential (waiting times)", parameters: ["scale"], null: [1], alternative: [1.5] },
  lognormal: { title: "lognormal", parameters: ["mean", "sd"], null: [0, 1], alternative: [0.5, 1] },
  gamma: { title: "gamma", parameters: ["shape", "scale"], null: [2, 1], alternative: [3, 1] },
  beta: { title: "beta (shares)", parameters: ["a", "b"], null: [2, 5], alternative: [3, 4] },
  laplace: { title: "Laplace", parameters: ["loc", "scale"], null: [0, 1], alternative: [0.5, 1] },
  student_t: { title: "Student's t", parameters: ["df", "loc", "scale"], null: [4, 0, 1], alternative: [4, 0.5, 1] },
  cauchy: { title: "Cauchy (heavy tails)", parameters: ["loc", "scale"], null: [0, 1], alternative: [1, 1] },
  uniform: { title: "uniform", parameters: ["low", "high"], null: [0, 1], alternative: [0.2, 1.2] },
  geometric: { title: "geometric", parameters: ["p"], null: [0.3], alternative: [0.4] },
  negative_binomial: { title: "negative binomial", parameters: ["n", "p"], null: [5, 0.5], alternative: [5, 0.4] },
  weibull: { title: "Weibull", parameters: ["shape", "scale"], null: [1.5, 1], alternative: [1.5, 1.4] },
};

export const DEFAULTS = {
  __proto__: null,
  tab: "plan",
  kind: "normal",
  null: "0, 1",
  alternative: "0.5, 1",
  table: "",
  epsilon: 0.5,
  n: 100,
  goal: "advantage",
  advantage: 2 / 3,
  alpha: 0.05,
  beta: 0.1,
  neighbours: "replace",
  family: "",
  from: "",
  to: "",
  estimate: "normal(mean=?, sd=1)",
  low: "-3",
  high: "3",
  at: "",
  width: "",
  confidence: "0.95",
  control: "1000",
  treatment: "1000",
  rate: "0.1",
  lift: "0.05",
  side: "two-sided",
  level: "0.05",
  miss: "0.2",
  success: "",
  above: "",
  least: "-4",
  most: "5",
  cells: "32",
  labels: "",
  privacy: "",
  release: "statistic",
  rows: "1",
};
export const TABS = ["plan", "change", "estimate", "describe", "groups", "monitor", "sequential"];
// Written as they stand in their fields, which are called ask-…
export const ASKED = ["estimate", "low", "high", "at", "width", "confidence", "control", "treatment", "rate", "lift", "side", "level", "miss", "success", "above", "least", "most", "cells", "labels", "release", "rows"];
const NUMBERS = { __proto__: null, epsilon: [1e-6, 100], n: [1, 1e9], advantage: [0.001, 0.999], alpha: [1e-6, 0.5], beta: [1e-6, 0.5] };
const EXAMPLE_TABLE = "never, 0.5, 0.3\nsometimes, 0.3, 0.3\noften, 0.2, 0.4";
export const EXAMPLE = { written: ["normal(0, 1)", "normal(0.5, 1)"], table: EXAMPLE_TABLE };

// The launch word that an address holds, if any; it stands beside the settings and is never written.
export const launchWord = (hash) => new URLSearchParams(hash.replace(/^#/, "")).get("launch");

export function read(hash) {
  const found = { ...DEFAULTS };
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  for (const [name, value] of given) {
    if (!(name in DEFAULTS)) continue;
    if (name in NUMBERS) {
      const number = Number(value);
      const [low, high] = NUMBERS[name];
      if (value.trim() !== "" && number >= low && number <= high) found[name] = name === "n" ? Math.round(number) : number;
    } else found[name] = value.slice(0, 200000);
  }
  if (!TABS.includes(found.tab)) found.tab = "plan"; // also "run", as older addresses call it
  if (!["statistic", "decision"].includes(found.release)) found.release = "statistic";
  if (parsed(found.privacy) === null) found.privacy = "";
  if (!["two-sided", "greater", "less"].includes(found.side)) found.side = "two-sided";
  if (!["replace", "add-remove"].includes(found.neighbours)) found.neighbours = "replace";
  if (!["advantage", "errors"].includes(found.goal)) found.goal = "advantage";
  if (!(found.kind in FAMILIES) && !["written", "table"].includes(found.kind)) found.kind = "normal";
  return found;
}

export function write(settings) {
  const parts = new URLSearchParams();
  for (const [name, value] of Object.entries(settings)) {
    if (name in DEFAULTS && (value !== DEFAULTS[name] || name === "epsilon")) parts.set(name, String(value));
  }
  return "#" + parts.toString();
}

// P and Q as the API takes them, or an Error that says what is missing.
export function laws(settings) {
  if (settings.kind === "table") return fromTable(settings.table);
  if (settings.kind === "written") {
    if (!settings.null.trim() || !settings.alternative.trim()) throw new Error("Write both P and Q.");
    return { null: settings.null.trim(), alternative: settings.alternative.trim() };
  }
  const text = (side) => {
    const values = numbers(settings[side]);
    const wanted = FAMILIES[settings.kind].parameters;
    if (values.length !== wanted.length || values.some((value) => !Number.isFinite(value)))
      throw new Error(`Give a number for every parameter: ${wanted.join(", ")}.`);
    return `${settings.kind}(${values.join(", ")})`;
  };
  return { null: text("null"), alternative: text("alternative") };
}

export const numbers = (text) => text.split(",").map((part) => (part.trim() === "" ? NaN : Number(part)));

function fromTable(text) {
  const rows = text.split(/\r?\n/).filter((line) => line.trim() !== "");
  const P = Object.create(null);
  const Q = Object.create(null);
  rows.forEach((line, index) => {
    const parts = line.split(/[\t;]/).length >= 3 ? line.split(/[\t;]/) : line.split(",");
    const [p, q] = parts.slice(-2).map((part) => (part.trim() === "" ? NaN : Number(part)));
    const label = parts.slice(0, -2).join(",").trim();
    if (parts.length < 3 || !Number.isFinite(p) || !Number.isFinite(q)) {
      if (index === 0 && parts.length >= 3) return; // a line of titles
      throw new Error(`Line ${index + 1} of the table: write label, probability under P, probability under Q.`);
    }
    if (label in P) throw new Error(`Line ${index + 1} of the table repeats a label. Write each label once.`);
    P[label] = p;
    Q[label] = q;
  });
  if (Object.keys(P).length < 2) throw new Error("Write at least two lines: label, probability under P, under Q.");
  return { null: { ...P }, alternative: { ...Q } };
}

// Which request each question is planned with, and which one asks the data.
export const PLANS = { __proto__: null, plan: "/design", change: "/run/change", estimate: "/estimate", describe: "/run/table", groups: "/groups", monitor: "/monitors", sequential: "/sequentials" };
export const RUNS = { __proto__: null, plan: "/run/test", change: "/run/change", estimate: "/run/estimate", describe: "/run/table", groups: "/run/groups", monitor: "/monitors", sequential: "/sequentials" };
let table = Object.create(null); // request -> names of its settings, as the package's table of questions has them
export const known = (takes) => { table = takes; };
export const takes = (request, name) => (table[request] || []).includes(name);

// "gdp(1)" as its name and numbers; null for anything else.
export function parsed(text) {
  const found = /^([a-z]+)\(([-+0-9.e, ]*)\)$/.exec(text.trim());
  if (!found) return null;
  const values = found[2].split(",").map((each) => (each.trim() === "" ? NaN : Number(each)));
  return values.every(Number.isFinite) ? { name: found[1], values } : null;
}

// What an answer costs, as a request takes it: epsilon, or another notion where the request knows those.
export const price = (settings, request) =>
  settings.privacy && takes(request, "privacy") ? { privacy: settings.privacy } : { epsilon: settings.epsilon };
export const priced = (settings, request) => { const { privacy, epsilon } = price(settings, request); return privacy || `ε = ${epsilon}`; };

// The settings that most requests share, each where the request takes it and it says something.
export function shared(settings, request) {
  const found = price(settings, request);
  if (takes(request, "neighbours") && settings.neighbours !== "replace") found.neighbours = settings.neighbours;
  if (takes(request, "release") && settings.release !== "statistic") found.release = settings.release;
  const rows = number(settings, "rows", "Most rows of one person");
  if (takes(request, "max_rows_per_unit") && rows !== null && rows !== 1) found.max_rows_per_unit = rows;
  return found;
}

// Whether a plan can be asked for before it is known which settings its request takes.
export const plainly = (settings) => ["privacy", "release", "rows", "neighbours"].every((name) => settings[name] === DEFAULTS[name]);

// The six steps of the way to an answer: what each is, what was chosen, and whether it is done.
// know: { file, column, ledger, dataset, needed, released, running }.
export function steps(settings, know) {
  const request = RUNS[settings.tab];
  const stream = settings.tab === "monitor" || settings.tab === "sequential";
  return [
    { title: "What do you want to know?", said: QUESTIONS[settings.tab], done: true, to: `tab-${settings.tab}` },
    { title: "Where are the data?", said: know.file || (stream ? "sent by you" : "choose a file"), done: Boolean(know.file) || stream, to: stream ? `${settings.tab}-path` : "run-path" },
    { title: "How private?", said: priced(settings, request), done: true, to: "how-private" },
    { title: "How many records?", said: know.needed ? `${know.needed} needed` : "as many as there are", done: Boolean(know.needed) || !["plan", "estimate", "groups"].includes(settings.tab), to: { __proto__: null, groups: "ask-control", describe: "run-path" }[settings.tab] || "how-many" },
    { title: "Run", said: !know.ledger ? "needs a ledger" : know.running ? "running …" : know.released ? "done" : know.dataset ? `${know.dataset} pays` : "say who pays", done: Boolean(know.released), to: stream ? `${settings.tab}-button` : "run-button" },
    { title: "Hand over", said: know.released ? (stream ? "what is released stands below" : "make the report") : "once there is an answer", done: false, to: stream ? `${settings.tab}-button` : "hand-over-title" },
  ];
}
const QUESTIONS = { __proto__: null, plan: "P or Q?", change: "When did it change?", estimate: "How large is it?", describe: "Describe a column", groups: "Do two groups differ?", monitor: "Has it changed yet?", sequential: "Decided yet?" };

export const goal = (settings) =>
  settings.goal === "errors" ? { alpha: settings.alpha, beta: settings.beta } : { advantage: settings.advantage };

const HIDDEN = { replace: "the number of records is public", "add-remove": "a record's presence is hidden too" };

// A field's number, or null where it is empty, or an Error that names it.
export function number(settings, name, title) {
  const text = settings[name].trim();
  if (text === "") return null;
  if (!Number.isFinite(Number(text))) throw new Error(`${title}: write a number.`);
  return Number(text);
}

const needed = (value, title) => {
  if (value === null) throw new Error(`${title}: write a number.`);
  return value;
};

// An estimate as the API takes it, without n.
export function estimated(settings) {
  const ends = [number(settings, "low", "? is at least"), number(settings, "high", "? is at most")];
  if ((ends[0] === null) !== (ends[1] === null)) throw new Error("Give two numbers between which the ? lies, or leave both empty for a rate.");
  if (!settings.estimate.trim()) throw new Error("Write the law of the records with one question mark, such as bernoulli(?).");
  return {
    family: settings.estimate.trim(), between: ends[0] === null ? null : ends, ...shared(settings, "/estimate"),
    confidence: needed(number(settings, "confidence", "Confidence"), "Confidence"),
  };
}

// Two groups as the API takes them, without n.
export function compared(settings) {
  return {
    ...shared(settings, "/groups"), alpha: needed(number(settings, "level", "Type I error"), "Type I error"),
    confidence: needed(number(settings, "confidence", "Confidence"), "Confidence"), alternative: settings.side,
    success: settings.success.trim() || null, above: number(settings, "above", "Numbers above"),
  };
}

// A table of a column as the API takes it: cells between two numbers, or labels.
export function tabled(settings) {
  const labels = settings.labels.trim();
  if (labels) return { labels, ...shared(settings, "/run/table") };
  const between = [["least", "Records are at least"], ["most", "and at most"]].map(([name, title]) => needed(number(settings, name, title), title));
  return { between, cells: needed(number(settings, "cells", "Cells"), "Cells"), ...shared(settings, "/run/table") };
}

export const lifted = (settings) => ({
  rate: needed(number(settings, "rate", "Rate of control"), "Rate of control"),
  lift: needed(number(settings, "lift", "Lift to find"), "Lift to find"),
});

export function described(settings) {
  try {
    if (settings.tab === "estimate") {
      const { family, between, confidence } = estimated(settings);
      return `${family}${between === null ? "" : `, ? between ${between[0]} and ${between[1]}`}; confidence ${confidence}; ${priced(settings, "/run/estimate")}; ${HIDDEN[settings.neighbours]}`;
    }
    if (settings.tab === "describe") {
      const { labels, between, cells } = tabled(settings);
      return `${labels ? `labels ${labels}` : `${cells} cells between ${between[0]} and ${between[1]}`}; ${priced(settings, "/run/table")}; ${HIDDEN[settings.neighbours]}`;
    }
    if (settings.tab === "groups") {
      const { alternative, alpha, success, above } = compared(settings);
      const counts = success !== null ? `“${success}” counts` : above !== null ? `numbers above ${above} count` : "1 or True counts";
      return `${counts}; ${alternative === "two-sided" ? "any difference" : `the treated rate is ${alternative}`}; α = ${alpha}; ${priced(settings, "/run/groups")}; the numbers of records are public`;
    }
    const { null: P, alternative: Q } = laws(settings);
    const said = (law) => (typeof law === "string" ? law : `a table of ${Object.keys(law).length} labels`);
    const request = RUNS[settings.tab];
    const hidden = takes(request, "neighbours") ? HIDDEN[settings.neighbours] : HIDDEN.replace;
    const leaves = takes(request, "release") && settings.release === "decision" ? "; the decision alone leaves" : "";
    return `P: ${said(P)}; Q: ${said(Q)}; ${priced(settings, request)}; ${hidden}${leaves}`;
  } catch (error) {
    return error.message;
  }
}
