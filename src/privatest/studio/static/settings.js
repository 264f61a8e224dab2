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
  advantage: 0.67,
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
};
export const TABS = ["plan", "run", "estimate", "groups", "monitor", "sequential"];
// Written as they stand in their fields, which are called ask-…
export const ASKED = ["estimate", "low", "high", "at", "width", "confidence", "control", "treatment", "rate", "lift", "side", "level", "miss", "success", "above"];
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
  if (!TABS.includes(found.tab)) found.tab = "plan";
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
    if (label in P) throw new Error(`Line ${index + 1} of the table: the label is there already.`);
    P[label] = p;
    Q[label] = q;
  });
  if (Object.keys(P).length < 2) throw new Error("Write at least two lines: label, probability under P, under Q.");
  return { null: { ...P }, alternative: { ...Q } };
}

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
  if ((ends[0] === null) !== (ends[1] === null)) throw new Error("Say between which two numbers the ? lies, or leave both empty for a rate.");
  if (!settings.estimate.trim()) throw new Error("Write what the records come from, with one question mark: bernoulli(?).");
  return {
    family: settings.estimate.trim(), between: ends[0] === null ? null : ends, epsilon: settings.epsilon,
    confidence: needed(number(settings, "confidence", "Confidence"), "Confidence"), neighbours: settings.neighbours,
  };
}

// Two groups as the API takes them, without n.
export function compared(settings) {
  return {
    epsilon: settings.epsilon, alpha: needed(number(settings, "level", "Type I error"), "Type I error"),
    confidence: needed(number(settings, "confidence", "Confidence"), "Confidence"), alternative: settings.side,
    success: settings.success.trim() || null, above: number(settings, "above", "Numbers above"),
  };
}

export const lifted = (settings) => ({
  rate: needed(number(settings, "rate", "Rate of control"), "Rate of control"),
  lift: needed(number(settings, "lift", "Lift to find"), "Lift to find"),
});

export function described(settings) {
  try {
    if (settings.tab === "estimate") {
      const { family, between, confidence } = estimated(settings);
      return `${family}${between === null ? "" : `, ? between ${between[0]} and ${between[1]}`}; confidence ${confidence}; ε = ${settings.epsilon}; ${HIDDEN[settings.neighbours]}`;
    }
    if (settings.tab === "groups") {
      const { alternative, alpha, success, above } = compared(settings);
      const counts = success !== null ? `“${success}” counts` : above !== null ? `numbers above ${above} count` : "1 or True counts";
      return `${counts}; ${alternative === "two-sided" ? "any difference" : `the treated rate is ${alternative}`}; α = ${alpha}; ε = ${settings.epsilon}; the numbers of records are public`;
    }
    const { null: P, alternative: Q } = laws(settings);
    const said = (law) => (typeof law === "string" ? law : `a table of ${Object.keys(law).length} labels`);
    return `P: ${said(P)}; Q: ${said(Q)}; ε = ${settings.epsilon}; ${HIDDEN[settings.neighbours]}`;
  } catch (error) {
    return error.message;
  }
}
