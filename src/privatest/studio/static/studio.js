// The page: controls, tabs and the address.

import { enter, launch, watchSlow } from "./ask.js";
import { monitor } from "./monitor.js";
import { planned, problem, redraw, saveDesign } from "./plan.js";
import { askedFor, atHand, chosenData, moveRun, questionMoved, redrawRelease, showBudgets, startRun } from "./run.js";
import { sequential } from "./sequential.js";
import { ASKED, EXAMPLE, FAMILIES, PLANS, TABS, described, launchWord, numbers, parsed, plainly, read, steps, takes, write } from "./settings.js";
import { grouped, redrawSizes, sized } from "./sized.js";

/* global Plotly */

const by = (id) => document.getElementById(id);
let settings = read(location.hash);
let begun = false;

const LOGARITHMIC = { epsilon: 3, n: 0, alpha: 2, beta: 2 };
const fromSlider = (name) => {
  const value = 10 ** Number(by(name).value);
  return name === "n" ? Math.max(1, Math.round(value)) : Number(value.toPrecision(LOGARITHMIC[name]));
};
const toSlider = (name, value) => { by(name).value = String(Math.log10(value)); };

function announce(text) {
  by("said").textContent = text;
}

function changed() {
  history.replaceState(null, "", write(settings));
  document.querySelectorAll("[data-summary]").forEach((place) => { place.textContent = described(settings); });
  labels();
  showPath();
  if (!begun) return;
  questionMoved();
  const ask = { plan: planned, estimate: sized, groups: grouped }[settings.tab];
  if (ask && (plainly(settings) || atHand().takes)) ask(settings);
}

// The steps of the way to an answer, what was chosen at each, and a press that goes there.
const needed = {};
function showPath() {
  const made = steps(settings, { ...chosenData(), needed: needed[settings.tab] });
  const now = made.findIndex((each) => !each.done);
  const place = by("path");
  if (!place.children.length) place.replaceChildren(...made.map(() => {
    const button = Object.assign(document.createElement("button"), { type: "button" });
    button.append(...["title", "said"].map((className) => Object.assign(document.createElement("span"), { className })));
    button.addEventListener("click", () => { const there = by(button.dataset.to); there.scrollIntoView({ block: "center" }); there.focus({ preventScroll: true }); });
    const item = document.createElement("li");
    item.append(button);
    return item;
  }));
  made.forEach((each, i) => {
    const button = place.children[i].firstChild;
    button.dataset.to = each.to;
    button.classList.toggle("done", each.done);
    if (i === now) button.setAttribute("aria-current", "step");
    else button.removeAttribute("aria-current");
    [each.title, each.said].forEach((text, j) => { if (button.children[j].textContent !== text) button.children[j].textContent = text; });
  });
  if (place.dataset.now !== String(now)) {
    place.dataset.now = String(now);
    intoView(place, place.children[now]);
  }
}

// Where a row's parts do not all fit: the one that counts is in view, and a little of the one before it.
function intoView(row, part) {
  if (part) row.scrollLeft = part.offsetLeft - row.offsetLeft - 40;
}
function openIntoView() {
  intoView(document.querySelector('[role="tablist"]'), by(`tab-${settings.tab}`));
  intoView(by("path"), by("path").children[by("path").dataset.now]);
}

// Controls that the open question takes, as the package's table has it.
function showTaken() {
  const request = PLANS[settings.tab];
  document.querySelectorAll("[data-takes]").forEach((each) => { each.hidden = !takes(each.closest("#asking") ? request.replace("/design", "/run/test").replace(/^\/(estimate|groups)$/, "/run/$1") : request, each.dataset.takes); });
  const other = Boolean(settings.privacy) && takes(request, "privacy");
  by("price-epsilon").hidden = other;
  by("price-other").hidden = !other;
}

function showNotion() {
  const { notions } = atHand();
  const place = by("notion");
  if (!place.options.length) place.replaceChildren(...Object.entries(notions).map(([value, each]) => Object.assign(document.createElement("option"), { value, textContent: `${value}: ${each.words.split(":")[0]}` })));
  let found = parsed(settings.privacy);
  if (found && (!(found.name in notions) || found.name === "pure" || found.values.length !== notions[found.name].parameters.length)) { settings.privacy = ""; found = null; }
  place.value = found ? found.name : "pure";
  by("notion-hint").textContent = (notions[place.value] || { words: "" }).words.replace(/^[^:]*: /, "");
  const wanted = found ? notions[found.name].parameters : [];
  const boxes = by("price-other");
  if (boxes.dataset.notion === (found ? found.name : "")) return;
  boxes.dataset.notion = found ? found.name : "";
  boxes.replaceChildren(...wanted.map(([name], i) => {
    const field = Object.assign(document.createElement("div"), { className: "field" });
    const input = Object.assign(document.createElement("input"), { id: `notion-${name}`, type: "number", step: "any", min: "0", value: String(found.values[i]) });
    input.addEventListener("input", () => {
      const values = [...boxes.querySelectorAll("input")].map((each) => each.value.trim());
      if (values.some((each) => each === "" || !Number.isFinite(Number(each)))) return problem(`Give a number for ${name}.`);
      problem("");
      settings.privacy = `${place.value}(${values.map(Number).join(", ")})`;
      changed();
    });
    field.append(Object.assign(document.createElement("label"), { htmlFor: input.id, textContent: name }), input);
    return field;
  }));
}

function labels() {
  by("advantage-value").textContent = settings.advantage === 2 / 3 ? "2/3" : settings.advantage.toFixed(2);
  by("alpha-value").textContent = String(settings.alpha);
  by("beta-value").textContent = String(settings.beta);
  by("epsilon").setAttribute("aria-valuetext", `epsilon ${settings.epsilon}`);
  by("n").setAttribute("aria-valuetext", `${settings.n} records`);
  by("alpha").setAttribute("aria-valuetext", String(settings.alpha));
  by("beta").setAttribute("aria-valuetext", String(settings.beta));
}

function lawInputs(side) {
  const values = numbers(settings[side]);
  const place = by(`family-${side}`);
  const title = document.createElement("h3");
  title.textContent = side === "null" ? "P, null" : "Q, alternative";
  const fields = FAMILIES[settings.kind].parameters.map((name, i) => {
    const id = `${side}-${name}`;
    const field = Object.assign(document.createElement("div"), { className: "field" });
    const label = Object.assign(document.createElement("label"), { htmlFor: id, textContent: name });
    const input = Object.assign(document.createElement("input"), { id, type: "number", step: "any", value: String(values[i]) });
    input.setAttribute("aria-label", `${name} of ${side === "null" ? "P" : "Q"}`);
    input.addEventListener("input", () => {
      settings[side] = [...place.querySelectorAll("input")].map((each) => each.value.trim()).join(", ");
      changed();
    });
    field.append(label, input);
    return field;
  });
  place.replaceChildren(title, ...fields);
}

// Put all settings into the controls.
function fill() {
  by("kind").value = settings.kind;
  const family = settings.kind in FAMILIES;
  by("family").hidden = !family;
  by("written").hidden = settings.kind !== "written";
  by("tabled").hidden = settings.kind !== "table";
  if (family) ["null", "alternative"].forEach(lawInputs);
  by("null-text").value = settings.null;
  by("alternative-text").value = settings.alternative;
  by("table").value = settings.table;
  for (const name of ["family", "from", "to"]) by(`along-${name}`).value = settings[name];
  for (const name of ASKED) by(`ask-${name}`).value = settings[name];
  by("epsilon-number").value = String(settings.epsilon);
  by("n-number").value = String(settings.n);
  for (const name of Object.keys(LOGARITHMIC)) toSlider(name, settings[name]);
  by("advantage").value = String(settings.advantage);
  by("neighbours").value = settings.neighbours;
  by("goal").value = settings.goal;
  by("goal-advantage").hidden = settings.goal !== "advantage";
  by("goal-errors").hidden = settings.goal !== "errors";
  labels();
}

function kindChosen() {
  const before = { ...settings };
  settings.kind = by("kind").value;
  if (settings.kind in FAMILIES) {
    settings.null = FAMILIES[settings.kind].null.join(", ");
    settings.alternative = FAMILIES[settings.kind].alternative.join(", ");
  } else if (settings.kind === "written") {
    const text = (side) => (before.kind in FAMILIES ? `${before.kind}(${before[side]})` : EXAMPLE.written[side === "null" ? 0 : 1]);
    [settings.null, settings.alternative] = [text("null"), text("alternative")];
  } else if (!settings.table) settings.table = EXAMPLE.table;
  fill();
  changed();
}

function select(tab, { focus = false } = {}) {
  settings.tab = tab;
  for (const each of TABS) {
    const button = by(`tab-${each}`);
    button.setAttribute("aria-selected", String(each === tab));
    button.tabIndex = each === tab ? 0 : -1;
    by(`panel-${each}`).hidden = each !== tab;
  }
  openIntoView();
  document.querySelectorAll("[data-tab]").forEach((each) => { each.hidden = !each.dataset.tab.split(" ").includes(tab); });
  by("answers").hidden = !["plan", "estimate", "groups"].includes(tab);
  showTaken();
  problem("");
  moveRun(tab);
  if (focus) by(`tab-${tab}`).focus();
  changed();
  document.querySelectorAll(`#panel-${tab} .js-plotly-plot`).forEach((each) => { if (!each.hidden) Plotly.Plots.resize(each); }); // there are none before it is loaded
}

function tabKeys(event) {
  const at = TABS.indexOf(settings.tab);
  const last = TABS.length - 1;
  const to = { ArrowRight: at === last ? 0 : at + 1, ArrowLeft: at ? at - 1 : last, Home: 0, End: last }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  select(TABS[to], { focus: true });
}

function listen() {
  const kinds = Object.entries(FAMILIES).map(([name, family]) => [name, family.title]);
  by("kind").replaceChildren(...[...kinds, ["written", "written as text"], ["table", "a table of labels"]].map(([value, textContent]) => Object.assign(document.createElement("option"), { value, textContent })));
  by("kind").addEventListener("change", kindChosen);
  for (const side of ["null", "alternative"]) by(`${side}-text`).addEventListener("input", (event) => { settings[side] = event.target.value; changed(); });
  for (const name of ASKED) by(`ask-${name}`).addEventListener("input", (event) => { settings[name] = event.target.value; changed(); });
  for (const name of ["family", "from", "to"]) by(`along-${name}`).addEventListener("input", (event) => { settings[name] = event.target.value; changed(); });
  by("table").addEventListener("input", (event) => { settings.table = event.target.value; changed(); });
  for (const name of Object.keys(LOGARITHMIC)) {
    by(name).addEventListener("input", () => {
      settings[name] = fromSlider(name);
      const number = by(`${name}-number`);
      if (number) number.value = String(settings[name]);
      changed();
    });
  }
  by("advantage").addEventListener("input", () => { settings.advantage = Number(by("advantage").value); changed(); });
  for (const [name, low, high] of [["epsilon", 1e-6, 100], ["n", 1, 1e9]]) {
    by(`${name}-number`).addEventListener("input", (event) => {
      const value = Number(event.target.value);
      const fits = event.target.value !== "" && value >= low && value <= high && (name !== "n" || Number.isInteger(value));
      if (!fits) return problem(name === "n" ? "Records: a whole number from 1 to 1,000,000,000." : "Epsilon: a number above 0, at most 100.");
      problem("");
      settings[name] = value;
      toSlider(name, value);
      changed();
    });
  }
  by("neighbours").addEventListener("change", () => { settings.neighbours = by("neighbours").value; askedFor(); changed(); });
  by("notion").addEventListener("change", () => {
    const { notions } = atHand();
    const name = by("notion").value;
    settings.privacy = name === "pure" ? "" : `${name}(${notions[name].parameters.map(([, start]) => start).join(", ")})`;
    showNotion();
    showTaken();
    changed();
  });
  document.addEventListener("followed", showPath);
  document.addEventListener("needed", ({ detail }) => { needed[settings.tab] = detail; showPath(); });
  by("goal").addEventListener("change", () => { settings.goal = by("goal").value; fill(); changed(); });
  for (const tab of TABS) by(`tab-${tab}`).addEventListener("click", () => select(tab));
  window.addEventListener("resize", openIntoView);
  document.querySelector('[role="tablist"]').addEventListener("keydown", tabKeys);
  by("save-design").addEventListener("click", () => saveDesign(settings));
  by("copy-link").addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(location.href);
      announce("The link is copied.");
      by("copy-link").textContent = "Copied";
    } catch {
      announce("The link is in the address bar.");
      by("copy-link").textContent = "It is in the address bar";
    }
    setTimeout(() => { by("copy-link").textContent = "Copy link"; }, 1500);
  });
  window.addEventListener("hashchange", () => {
    if (location.hash === write(settings)) return;
    const word = launchWord(location.hash);
    settings = read(location.hash);
    fill();
    if (atHand().takes) showNotion();
    askedFor();
    select(settings.tab);
    if (word) open(word);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { redraw(); redrawSizes(); redrawRelease(); monitor.redraw(); sequential.redraw(); });
}

// Everything that asks the server, once there is a key.
function begin() {
  by("launch").hidden = begun = true;
  by("main").hidden = false;
  changed();
  const told = showBudgets().then(() => { showNotion(); showTaken(); askedFor(); changed(); });
  watchSlow((text) => { by("working").hidden = !text; by("working").textContent = text; });
  Promise.all([told, monitor.restore(), sequential.restore()]).catch((error) => problem(error.message)).finally(() => { document.documentElement.dataset.ready = "yes"; });
}

function shut(message = "") {
  by("main").hidden = true;
  by("launch").hidden = false;
  by("launch-problem").hidden = !message;
  by("launch-problem").textContent = message;
}

async function open(word) {
  try {
    if (!(await enter(word))) shut();
    else if (!begun) begin();
  } catch (error) {
    if (begun || (await enter().catch(() => false))) begin();
    else shut(error.message);
  }
}

const word = launchWord(location.hash);
listen();
fill();
startRun(() => settings, showPath);
monitor.start(() => settings);
sequential.start(() => settings);
select(settings.tab); // which also writes the address anew, without the word
by("launch").addEventListener("submit", async (event) => {
  event.preventDefault();
  const given = by("launch-word").value.trim();
  try {
    await launch(launchWord(given.slice(given.indexOf("#"))) || given);
    begin();
  } catch (error) {
    shut(error.message);
  }
});
open(word);
