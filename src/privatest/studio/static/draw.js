// The pictures. Colours come from the page's style sheet, so that they follow light and dark.

/* global Plotly */

const CONFIG = { displayModeBar: false, responsive: true, displaylogo: false };

export function colours() {
  const style = getComputedStyle(document.documentElement);
  const value = (name) => style.getPropertyValue(name).trim();
  return {
    null: value("--null"), alternative: value("--alternative"), third: value("--third"), ink: value("--ink"),
    nullInk: value("--null-ink"), alternativeInk: value("--alternative-ink"), thirdInk: value("--third-ink"),
    soft: value("--soft"), line: value("--line"), card: value("--card"), sans: value("--sans"),
  };
}

// Plotly reads texts as a little HTML, with links; what others wrote is text.
const plain = (text) => (typeof text === "string" ? text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;") : text);

const TICKS = Array.from({ length: 10 }, (_, k) => [1, 2, 5].map((each) => each * 10 ** k)).flat();

const faded = (colour, share) => {
  const parts = colour.slice(1).match(/../g).map((each) => parseInt(each, 16));
  return `rgba(${parts.join(",")},${share})`;
};

function layout(c, more) {
  const axis = {
    gridcolor: c.line, zerolinecolor: c.line, linecolor: c.soft, ticks: "outside", tickcolor: c.line, automargin: true,
    title: { font: { size: 12 }, standoff: 6 },
  };
  const { xaxis, yaxis, yaxis2, ...rest } = more;
  const made = {
    paper_bgcolor: c.card, plot_bgcolor: c.card, font: { family: c.sans, size: 12, color: c.ink },
    margin: { l: 52, r: 14, t: 8, b: 42 }, hovermode: "x unified", showlegend: true,
    hoverlabel: { bgcolor: c.card, bordercolor: c.line, font: { family: c.sans, color: c.ink } },
    legend: { orientation: "h", x: 0, y: 1.02, xanchor: "left", yanchor: "bottom", traceorder: "normal", font: { size: 11 } },
    xaxis: { ...axis, ...xaxis, title: { ...axis.title, ...(xaxis || {}).title } },
    yaxis: { ...axis, ...yaxis, title: { ...axis.title, ...(yaxis || {}).title } },
    ...rest,
  };
  if (yaxis2) made.yaxis2 = { ...axis, ...yaxis2, title: { ...axis.title, ...yaxis2.title } };
  return made;
}

// The library that draws is large: it is loaded when there is something to draw, so that numbers need not wait for it.
let loading = null;
function plotly() {
  const load = (name) => new Promise((done, failed) => {
    const script = document.createElement("script");
    Object.assign(script, { src: `/static/${name}`, onload: done, onerror: failed });
    document.body.append(script);
  });
  loading = loading || load("before_plotly.js").then(() => load("plotly.min.js")).then(() => load("after_plotly.js"));
  return loading;
}

async function show(id, traces, made, description, mark = {}) {
  const place = document.getElementById(id);
  place.setAttribute("aria-label", description);
  await plotly();
  await Plotly.react(place, traces, made, CONFIG);
  place.classList.remove("stale");
  Object.assign(place.dataset, mark);
  place.dataset.drawings = String(1 + Number(place.dataset.drawings || 0));
}

export const short = (value, digits = 3) => {
  if (value === null || value === undefined) return "–";
  if (typeof value !== "number") return String(value);
  if (value !== 0 && (Math.abs(value) < 1e-4 || Math.abs(value) >= 1e7)) return value.toExponential(2);
  return String(Number(value.toPrecision(digits)));
};
export const whole = (value) => (value === null || value === undefined ? "–" : Number(value).toLocaleString("en"));

// The paper's first figure, for any pair, and below it the log-likelihood ratio with its clamp.
export function drawDensities(found) {
  const c = colours();
  const { x: places, kind, null: p, alternative: q, ratio, clamped } = found.densities;
  const x = places.map(plain);
  const { epsilon, clamp, tau } = found.decomposition;
  const e = Math.exp(epsilon);
  const up = (values, factor) => values.map((each) => (each === null ? null : each * factor));
  const least = (a, b) => a.map((each, i) => (each === null || b[i] === null ? null : Math.min(each, b[i])));
  const most = Math.max(...p, ...q) || 1;
  const traces = [];
  if (kind === "reals") {
    const area = (values, cap, colour, name) => {
      const floor = least(values, cap);
      traces.push({ x, y: floor, line: { width: 0 }, mode: "lines", hoverinfo: "skip", showlegend: false });
      traces.push({ x, y: values, fill: "tonexty", fillcolor: faded(colour, 0.38), line: { width: 0 }, mode: "lines", name, hoverinfo: "skip" });
    };
    area(p, up(q, e), c.null, `P beyond e^ε Q: ${short(found.excess.null)}`);
    area(q, up(p, e), c.alternative, `Q beyond e^ε P: ${short(found.excess.alternative)}`);
    traces.push({ x, y: up(q, e), mode: "lines", line: { color: c.alternative, width: 1.2, dash: "dot" }, hoverinfo: "skip", showlegend: false });
    traces.push({ x, y: up(p, e), mode: "lines", line: { color: c.null, width: 1.2, dash: "dot" }, hoverinfo: "skip", showlegend: false });
    traces.push({ x, y: p, mode: "lines", name: "P", line: { color: c.null, width: 2.4 } });
    traces.push({ x, y: q, mode: "lines", name: "Q", line: { color: c.alternative, width: 2.4, dash: "dash" } });
  } else {
    const split = (values, other, colour, name, group, pattern) => {
      const kept = least(values, up(other, e));
      const rest = values.map((each, i) => each - kept[i]);
      traces.push({ type: "bar", x, y: kept, name, offsetgroup: group, marker: { color: faded(colour, 0.45), line: { color: colour, width: 1 } } });
      traces.push({ type: "bar", x, y: rest, base: kept, offsetgroup: group, name: `${name} beyond e^ε ${name === "P" ? "Q" : "P"}: ${short(found.excess[group])}`,
        marker: { color: colour, line: { color: colour, width: 1 }, pattern: { shape: pattern, fgcolor: c.card, size: 5, solidity: 0.25 } } });
    };
    split(p, q, c.null, "P", "null", "/");
    split(q, p, c.alternative, "Q", "alternative", "\\");
  }
  const lines = kind === "reals" ? { mode: "lines" } : { mode: "markers", marker: { size: 6, symbol: "line-ew", line: { width: 2 } } };
  const below = { x, yaxis: "y2", hoverinfo: "skip", showlegend: false, ...lines };
  const reach = 1.6 * Math.max(...clamp.map(Math.abs), 1e-9);
  const inSight = ratio.map((each) => (each === null || Math.abs(each) > 3 * reach ? null : each));
  traces.push({ ...below, y: inSight, line: { color: c.soft, width: 1.2, dash: "dot" }, marker: { ...lines.marker, color: c.soft, line: { width: 1, color: c.soft } } });
  traces.push({ ...below, y: clamped, line: { color: c.third, width: 2.2 }, marker: { ...lines.marker, color: c.third, line: { width: 3, color: c.third } } });
  const edge = (y) => ({ type: "line", xref: "paper", x0: 0, x1: 1, yref: "y2", y0: y, y1: y, line: { color: c.third, width: 1, dash: "dash" } });
  const made = layout(c, {
    barmode: "group", bargap: 0.25,
    xaxis: { anchor: "y2", title: { text: kind === "labels" ? "" : "record x" }, type: kind === "labels" ? "category" : "linear" },
    yaxis: { domain: [0.36, 1], title: { text: kind === "reals" ? "density" : "probability" }, range: [0, most * 1.12], rangemode: "tozero" },
    yaxis2: { domain: [0, 0.25], title: { text: "log P/Q" }, range: [-reach, reach], nticks: 5 },
    shapes: clamp.map(edge),
  });
  const said = `Densities of P and Q. Tau ${short(tau)}, clamp from ${short(clamp[0])} to ${short(clamp[1])}. P exceeds e to the epsilon times Q by ${short(found.excess.null)}, Q exceeds by ${short(found.excess.alternative)}.`;
  return show("chart-densities", traces, made, said, { epsilon: String(epsilon) });
}

export function lawTraces(found, c) {
  const { statistic: x, null: p, alternative: q, above, decided, upper } = found.law;
  const line = (y, name, colour, dash) => ({ x, y, name, mode: "lines", line: { color: colour, width: 2.2, dash, shape: "hvh" }, hovertemplate: "%{y:.3g}" });
  const part = (y, from, to, name, colour, more = {}) => ({
    x: x.slice(from, to), y: y.slice(from, to), name, mode: "lines", line: { width: 0, shape: "hvh" }, fill: "tozeroy", fillcolor: faded(colour, 0.35), hoverinfo: "skip", ...more,
  });
  const alpha = `α ${short(found.design.alpha)}`;
  const beta = `β ${short(found.design.beta)}`;
  const traces = [
    part(p, 0, decided, alpha, c.null),
    part(q, decided, x.length, beta, c.alternative),
    line(p, "under P", c.null, "solid"),
    line(q, "under Q", c.alternative, "dash"),
  ];
  if (above === null) return traces;
  // Two-sided: "alternative" beyond either threshold, and Q has a part on either side.
  const same = { showlegend: false };
  return [
    ...traces,
    part(p, upper, x.length, alpha, c.null, same),
    part(above, 0, upper, beta, c.alternative, same),
    line(above, "under Q, above", c.alternative, "dot"),
  ];
}

export function drawLaw(found, id = "chart-law", release = null) {
  const c = colours();
  const { n, epsilon } = found.design;
  const { thresholds } = found.law;
  const line = (x, colour, dash) => ({ type: "line", x0: x, x1: x, yref: "paper", y0: 0, y1: 1, line: { color: colour, width: 1.6, dash } });
  const note = (x, text, y, colour) => ({ x, y, yref: "paper", text, showarrow: false, xanchor: "left", xshift: 5, bgcolor: c.card, font: { size: 11, color: colour } });
  const shapes = thresholds.map((each) => line(each, c.ink, "dash"));
  const annotations = thresholds.map((each) => note(each, `threshold ${short(each)}`, 0.98, c.ink));
  if (thresholds.length > 1) Object.assign(annotations[0], { xanchor: "right", xshift: -5 });
  const neither = release !== null && release.fits === "neither";
  if (release !== null && release.statistic !== null) {
    shapes.push(line(release.statistic, c.third, "solid"));
    annotations.push(note(release.statistic, `released ${short(release.statistic)}${neither ? ": fits neither P nor Q" : ""}`, 0.84, c.third));
  }
  const laws = [found.law.null, found.law.alternative, found.law.above || []];
  const made = layout(c, {
    shapes, annotations,
    xaxis: { title: { text: found.law.released === "statistic" ? "noisy sum of clamped log ratios, in nats" : "level: widths above the threshold, with noise" } },
    yaxis: { title: { text: "probability density" }, range: [0, 1.2 * Math.max(...laws.flat())], nticks: 6 },
  });
  const where = thresholds.length > 1 ? `outside the thresholds ${thresholds.map((each) => short(each)).join(" and ")}` : `below the threshold ${short(thresholds[0])}`;
  const said = `Law of the noisy statistic on ${n} records. Alternative ${where}. Type I error ${short(found.design.alpha)}, type II error ${short(found.design.beta)}.${neither ? " The released statistic fits neither P nor Q." : ""}`;
  return show(id, lawTraces(found, c), made, said, { epsilon: String(epsilon), n: String(n), thresholds: String(thresholds.length), fits: (release && release.fits) || "" });
}

// How probably the test says "alternative", along a parameter of what the records come from.
export function drawAlong(found) {
  const c = colours();
  const { family, values: x, power: y, alpha, beta, n } = found;
  const level = (height, color, dash) => ({ type: "line", xref: "paper", x0: 0, x1: 1, y0: height, y1: height, line: { color, width: 1, dash } });
  const traces = [{ x, y, name: `records from ${plain(family)}`, mode: "lines+markers", line: { color: c.third, width: 2.2 }, marker: { size: 4, color: c.third }, hovertemplate: "%{y:.3g}" }];
  const named = family.match(/(\w+)\s*=\s*\?/);
  const made = layout(c, {
    shapes: [level(alpha, c.null, "dot"), level(1 - beta, c.alternative, "dash")],
    annotations: [[alpha, "α", c.null], [1 - beta, "1 − β", c.alternative]].map(([height, text, color]) => ({ xref: "paper", x: 1, y: height, text: `${text} = ${short(height)}`, showarrow: false, xanchor: "right", yanchor: "bottom", font: { size: 11, color } })),
    xaxis: { title: { text: named ? named[1] : "?" } },
    yaxis: { title: { text: "probability of “alternative”" }, range: [0, 1.06] },
  });
  const said = `Probability of alternative if ${n} records come from ${family}: ${short(y[0])} at ${short(x[0])}, ${short(y[y.length - 1])} at ${short(x[x.length - 1])}.`;
  return show("chart-along", traces, made, said, { n: String(n), points: String(x.length) });
}

// The mean length of an interval along the parameter, above what no private one falls below.
export function drawWidths({ points, parameter, ends, at, body }) {
  const c = colours();
  const sorted = [...points].sort((a, b) => a.at - b.at);
  const line = (pick, name, colour, dash, symbol) => {
    const there = sorted.filter((each) => pick(each) !== null);
    return { x: there.map((each) => each.at), y: there.map(pick), name, mode: "lines+markers", line: { color: colour, width: 2.2, dash }, marker: { size: 6, symbol, color: colour }, hovertemplate: "%{y:.4g}" };
  };
  const traces = [line((each) => each.width, "this interval, in the mean", c.null, "solid", "circle"), line((each) => each.bound, "no private interval is shorter", c.alternative, "dot", "triangle-up")];
  const made = layout(c, {
    shapes: [{ type: "line", x0: at, x1: at, yref: "paper", y0: 0, y1: 1, line: { color: c.ink, width: 1.2, dash: "dash" } }],
    xaxis: { title: { text: `true ${plain(parameter)}` }, range: ends },
    yaxis: { title: { text: "length of the interval" }, rangemode: "tozero" },
  });
  const said = sorted.map((each) => `${short(each.width)} at ${short(each.at)}`).join(", ");
  return show("chart-widths", traces, made, `Expected width of the interval for ${parameter}: ${said}.`, { epsilon: String(body.epsilon), n: String(body.n), points: String(sorted.length), bounds: String(sorted.filter((each) => each.bound !== null).length) });
}

// How probably a lift is found, along the lift.
export function drawLifts({ lifts: x, power: y, lift, rate, design }) {
  const c = colours();
  const traces = [
    { x, y, name: `control at ${short(rate)}`, mode: "lines+markers", line: { color: c.null, width: 2.2 }, marker: { size: 5, color: c.null }, hovertemplate: "%{y:.3g}" },
    { x: [lift], y: [y[x.indexOf(lift)]], name: `lift ${short(lift)}`, mode: "markers", marker: { size: 12, symbol: "circle-open", color: c.ink, line: { width: 2.5 } }, hoverinfo: "skip" },
  ];
  const made = layout(c, {
    shapes: [{ type: "line", xref: "paper", x0: 0, x1: 1, y0: design.alpha, y1: design.alpha, line: { color: c.alternative, width: 1.2, dash: "dot" } }],
    annotations: [{ xref: "paper", x: 1, y: design.alpha, text: `α = ${short(design.alpha)}`, showarrow: false, xanchor: "right", yanchor: "bottom", font: { size: 11, color: c.alternativeInk } }],
    xaxis: { title: { text: "lift: rate of the treated group minus that of control" } },
    yaxis: { title: { text: "probability that it is found" }, range: [0, 1.06] },
  });
  return show("chart-lifts", traces, made, `Probability of finding a lift over ${short(rate)}: ${x.map((each, i) => `${short(y[i])} at ${short(each)}`).join(", ")}.`, { epsilon: String(design.epsilon), points: String(x.length) });
}

// What was released, on its own axis: a number and its interval; of two groups also where "no difference" lies.
export function drawInterval(task, release, design) {
  const c = colours();
  const [low, high] = release.interval;
  const value = task === "estimate" ? release.estimate : release.difference;
  const name = task === "estimate" ? release.parameter : `rate of ${release.names[1]} minus rate of ${release.names[0]}`;
  const traces = [
    { x: [low, high], y: [0, 0], name: `${short(100 * release.confidence, 4)} % interval: ${short(low, 4)} to ${short(high, 4)}`, mode: "lines+markers", line: { color: c.third, width: 5 }, marker: { size: 16, symbol: "line-ns", line: { color: c.third, width: 3 } }, hoverinfo: "x" },
    { x: [value], y: [0], name: `about ${short(value, 4)}`, mode: "markers", marker: { size: 13, color: c.ink }, hoverinfo: "x" },
  ];
  const marked = task === "groups" ? [[0, "no difference"]] : design.between.map((end) => [end, "end of the range"]);
  const reach = 0.6 * Math.max(high - low, 1e-9);
  const from = Math.min(low, value) - reach;
  const to = Math.max(high, value) + reach;
  const inside = marked.filter(([each]) => task === "groups" || (each >= from && each <= to));
  const made = layout(c, {
    shapes: inside.map(([each]) => ({ type: "line", x0: each, x1: each, yref: "paper", y0: 0, y1: 1, line: { color: c.ink, width: 1.2, dash: "dash" } })),
    annotations: inside.map(([each, text]) => ({ x: each, y: 0.97, yref: "paper", text, showarrow: false, xanchor: "left", xshift: 5, bgcolor: c.card, font: { size: 11, color: c.ink } })),
    xaxis: { title: { text: plain(name) }, range: [Math.min(from, ...inside.map(([each]) => each - reach / 4)), Math.max(to, ...inside.map(([each]) => each + reach))] },
    yaxis: { visible: false, range: [-1, 1] },
    hovermode: "closest",
  });
  const said = `${name}: about ${short(value, 4)}, ${short(100 * release.confidence, 4)} percent interval ${short(low, 4)} to ${short(high, 4)}.`;
  return show("chart-release", traces, made, said, { n: String(release.n), task });
}

// The noisy counts of a table's cells, each with the noise that it may hold.
export function drawTable({ names, counts }, noise) {
  const c = colours();
  const x = names.map(plain);
  const traces = [{ type: "bar", x, y: counts, name: "records, with noise", marker: { color: faded(c.null, 0.75) }, error_y: { type: "constant", value: noise, color: c.soft, thickness: 1, width: 2 } }];
  const made = layout(c, { bargap: 0.05, xaxis: { type: "category", nticks: 12 }, yaxis: { title: { text: "records" } } });
  return show("chart-release", traces, made, `Noisy counts: ${names.map((name, i) => `${name}: ${short(counts[i])}`).join(", ")}. Each is within ${noise} of the true count with probability 95 percent.`, { task: "table", points: String(counts.length) });
}

const REGIMES = { tails: ["tails decide", 0.16], core: ["core decides", 0.08], free: ["privacy is free", 0.0] };

export function drawSizes({ theory, sizes, epsilon, needed, name }) {
  const c = colours();
  const at = theory.map((each) => each.epsilon);
  const curve = (pick, name, colour, dash, width = 1.6) => ({ x: at, y: theory.map(pick), name, mode: "lines", line: { color: colour, width, dash }, hovertemplate: "%{y:.4~s}" });
  const traces = theory.length
    ? [
        { x: at, y: theory.map((t) => t.sandwich[0]), mode: "lines", line: { width: 0 }, hoverinfo: "skip", showlegend: false },
        { x: at, y: theory.map((t) => Math.max(t.sandwich[1], t.sandwich[0])), mode: "lines", line: { width: 0 }, fill: "tonexty", fillcolor: faded(c.soft, 0.13), name: "1/H² to 1/(εH²)", hoverinfo: "skip" },
        curve((t) => t.nonprivate, "without privacy, order", c.soft, "dot"),
        curve((t) => t.value, "theorem, order", c.third, "dash", 2),
      ]
    : [];
  const points = Object.values(sizes).sort((a, b) => a.epsilon - b.epsilon);
  const marks = (pick, name, colour, symbol, dash) => ({
    x: points.map((each) => each.epsilon), y: points.map(pick), name, mode: "lines+markers",
    line: { color: colour, width: 2, dash }, marker: { size: 7, symbol, color: colour }, hovertemplate: "%{y:,d}",
  });
  if (points.length) {
    traces.push(marks((each) => each.n, "records needed, exact", c.null, "circle", "solid"));
    traces.push(marks((each) => each.lower_bound, "no test needs fewer", c.alternative, "triangle-up", "dot"));
  }
  if (needed) traces.push({ x: [epsilon], y: [needed], mode: "markers", name: `${name}: ${whole(needed)}`, marker: { size: 12, symbol: "circle-open", color: c.ink, line: { width: 2.5 } }, hoverinfo: "skip" });
  const shapes = [{ type: "line", x0: epsilon, x1: epsilon, yref: "paper", y0: 0, y1: 1, line: { color: c.ink, width: 1.3, dash: "dash" } }];
  const annotations = [];
  let start = 0;
  for (let i = 1; i <= theory.length; i++) {
    if (i < theory.length && theory[i].regime === theory[start].regime) continue;
    const [words, share] = REGIMES[theory[start].regime];
    const [x0, x1] = [at[start], at[Math.min(i, theory.length - 1)]];
    shapes.unshift({ type: "rect", x0, x1, yref: "paper", y0: 0, y1: 1, line: { width: 0 }, fillcolor: faded(c.soft, share), layer: "below" });
    if (Math.log(x1 / x0) > 0.7) annotations.push({ x: (Math.log10(x0) + Math.log10(x1)) / 2, y: 0.99, yref: "paper", yanchor: "top", text: words, showarrow: false, font: { size: 11, color: c.soft } });
    start = i;
  }
  const made = layout(c, {
    shapes, annotations,
    xaxis: { type: "log", title: { text: "privacy loss ε" }, range: [Math.log10(0.04), Math.log10(5)], tickvals: [0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10], autorange: epsilon >= 0.04 && epsilon <= 5 ? false : true },
    yaxis: { type: "log", title: { text: "records" }, tickvals: TICKS, tickformat: ",~s" },
  });
  const listed = points.map((each) => `${each.n} at epsilon ${each.epsilon}`).join(", ");
  return show("chart-sizes", traces, made, `Records needed against epsilon: ${listed || "being computed"}.`, { epsilon: String(epsilon), points: String(points.length) });
}

export function drawPower({ points, n, goal }) {
  const c = colours();
  const sorted = [...points].sort((a, b) => a.n - b.n);
  const x = sorted.map((each) => each.n);
  const line = (pick, name, colour, dash, symbol) => ({ x, y: sorted.map(pick), name, mode: "lines+markers", line: { color: colour, width: 2.2, dash }, marker: { size: 6, symbol, color: colour }, hovertemplate: "%{y:.3g}" });
  const traces = [
    line((each) => each.alpha, "type I error", c.null, "solid", "circle"),
    line((each) => each.beta, "type II error", c.alternative, "dash", "square"),
    line((each) => 1 - each.alpha - each.beta, "advantage", c.third, "dot", "diamond"),
  ];
  const level = "advantage" in goal ? [[goal.advantage, c.third]] : [[goal.alpha, c.null], [goal.beta, c.alternative]];
  const shapes = level.map(([y, color]) => ({ type: "line", xref: "paper", x0: 0, x1: 1, y0: y, y1: y, line: { color, width: 1, dash: "dot" } }));
  shapes.push({ type: "line", x0: n, x1: n, yref: "paper", y0: 0, y1: 1, line: { color: c.ink, width: 1.3, dash: "dash" } });
  const made = layout(c, {
    shapes,
    xaxis: { type: "log", title: { text: "records n" }, tickvals: TICKS, tickformat: ",~s" },
    yaxis: { title: { text: "probability" }, range: [0, 1.02] },
  });
  return show("chart-power", traces, made, `Errors against n at ${x.length} sizes: ${sorted.map((each) => `${each.n}: ${short(each.alpha)} and ${short(each.beta)}`).join("; ")}.`, { n: String(n), points: String(x.length) });
}

export function drawChange(release) {
  const c = colours();
  const { index, accuracy, n } = release;
  const found = index !== null;
  const traces = [{ x: [0, n], y: [0, 0], mode: "lines", line: { color: c.soft, width: 8 }, name: `${whole(n)} records`, hoverinfo: "skip" }];
  if (found) {
    traces.push({ x: [Math.max(index - accuracy, 0), Math.min(index + accuracy, n)], y: [0, 0], mode: "lines", line: { color: faded(c.alternative, 0.6), width: 22 }, name: `within ${whole(accuracy)}`, hoverinfo: "skip" });
    traces.push({ x: [index], y: [0], mode: "markers", marker: { symbol: "line-ns", size: 30, line: { width: 4, color: c.ink } }, name: `change at ${whole(index)}`, hoverinfo: "x" });
  }
  const made = layout(c, { xaxis: { title: { text: "record" }, range: [0, n] }, yaxis: { visible: false, range: [-1, 1] }, hovermode: "closest" });
  return show("chart-release", traces, made, found ? `Change at record ${index} of ${n}, within ${accuracy}.` : `No change in ${n} records.`);
}

// Block sums above; below them what the alarm looks at, with the threshold that it must exceed.
export function drawMonitor(state) {
  const c = colours();
  const { trace, alarms, settings, threshold } = state;
  const levels = state.levels || [];
  const block = settings.block || 1;
  const last = Math.floor(state.seen / block);
  const x = trace.map((_, i) => (last - trace.length + i + 0.5) * block);
  const traces = [{ x, y: trace, type: "bar", width: block * 0.9, name: "noisy block sums", marker: { color: trace.map((each) => (each >= 0 ? faded(c.null, 0.75) : faded(c.alternative, 0.85))) }, hovertemplate: "%{y:.3g} nats" }];
  const shapes = [];
  const annotations = [];
  for (const alarm of alarms) {
    const low = Math.max(alarm.index - (alarm.accuracy ?? 0), 0);
    shapes.push({ type: "rect", x0: low, x1: alarm.index + (alarm.accuracy ?? 0), yref: "paper", y0: 0, y1: 1, line: { width: 0 }, fillcolor: faded(c.third, 0.18), layer: "below" });
    shapes.push({ type: "line", x0: alarm.index, x1: alarm.index, yref: "paper", y0: 0, y1: 1, line: { color: c.third, width: 2.2 } });
    shapes.push({ type: "line", x0: alarm.seen, x1: alarm.seen, yref: "paper", y0: 0, y1: 1, line: { color: c.ink, width: 1.6, dash: "dash" } });
    annotations.push({ x: alarm.index, y: 1, yref: "paper", text: `change at ${whole(alarm.index)}`, showarrow: false, xanchor: "right", xshift: -5, font: { size: 11, color: c.thirdInk } });
    annotations.push({ x: alarm.seen, y: 1, yref: "paper", text: "alarm", showarrow: false, xanchor: "right", xshift: -5, font: { size: 11 } });
  }
  const made = { shapes, annotations, showlegend: false, xaxis: { title: { text: "records seen" } }, yaxis: { title: { text: "block sum (up: P)" } } };
  if (threshold !== null && threshold !== undefined) {
    const end = Math.max(last, 1) * block;
    const start = (last - trace.length) * block;
    traces.push({ x: levels.map((_, i) => (last - levels.length + i + 1) * block), y: levels, yaxis: "y2", mode: "lines+markers", name: "evidence for a change", line: { color: c.ink, width: 2, shape: "hv" }, marker: { size: 4 }, hovertemplate: "%{y:.3g}" });
    shapes.push({ type: "line", x0: start, x1: end, yref: "y2", y0: threshold, y1: threshold, line: { color: c.alternative, width: 2, dash: "dash" } });
    annotations.push({ x: start, y: threshold, yref: "y2", text: `alarm above ${short(threshold)}`, showarrow: false, xanchor: "left", yshift: 9, font: { size: 11, color: c.alternativeInk } });
    made.yaxis.domain = [0.5, 1];
    made.yaxis2 = { domain: [0, 0.4], title: { text: "evidence" }, range: [0, 1.35 * Math.max(threshold, ...levels)] };
    made.xaxis.anchor = "y2";
  }
  const reached = threshold === null || threshold === undefined ? "" : ` Evidence ${short(levels.at(-1) ?? 0)}, alarm above ${short(threshold)}.`;
  return show("chart-monitor", traces, layout(c, made), `${trace.length} noisy block sums; ${alarms.length ? `alarm: change at ${alarms[0].index}` : "no alarm"}.${reached}`, { points: String(trace.length), threshold: String(threshold) });
}

export function drawWalk(state) {
  const c = colours();
  const { walk, alarms, settings, seen } = state;
  const [first, later] = settings.schedule;
  const [low, high] = settings.boundaries;
  const blocks = seen < first ? 0 : 1 + Math.floor((seen - first) / later);
  const at = (block) => (block ? first + (block - 1) * later : 0);
  const x = walk.map((_, i) => at(blocks - walk.length + i + 1));
  const y = [...walk];
  if (blocks === walk.length) { x.unshift(0); y.unshift(0); }
  const end = Math.max(...x, at(blocks) * 1.03, ...settings.expected_n, 1);
  const traces = [{ x, y, mode: "lines+markers", name: "log e-value", line: { color: c.ink, width: 2 }, marker: { size: 7 }, hovertemplate: "%{y:.3g} nats" }];
  const level = (value, color, dash) => ({ type: "line", x0: 0, x1: end, y0: value, y1: value, line: { color, width: 2, dash } });
  const shapes = [level(high, c.alternative, "solid"), level(low, c.null, "dash")];
  const annotations = [
    { x: end, y: high, text: "alternative", showarrow: false, xanchor: "right", yshift: 9, font: { size: 11, color: c.alternativeInk } },
    { x: end, y: low, text: "null", showarrow: false, xanchor: "right", yshift: -9, font: { size: 11, color: c.nullInk } },
  ];
  for (const verdict of alarms) shapes.push({ type: "line", x0: verdict.seen, x1: verdict.seen, yref: "paper", y0: 0, y1: 1, line: { color: c.ink, width: 1.4, dash: "dot" } });
  const made = layout(c, {
    shapes, annotations, showlegend: false,
    xaxis: { title: { text: "records seen" }, range: [0, end] },
    yaxis: { title: { text: "log e-value against P, nats" } },
  });
  const verdict = alarms.length ? `verdict: ${alarms[0].decision} after ${alarms[0].seen} records` : "no verdict yet";
  return show("chart-walk", traces, made, `Log e-value after ${walk.length} blocks, between ${short(low)} and ${short(high)}; ${verdict}.`, { points: String(walk.length) });
}
