// The Run tab: one request to the data, through the ledger.

import { get, post, upload } from "./ask.js";
import { drawChange, drawInterval, drawLaw, drawTable, short, whole } from "./draw.js";
import { RUNS, compared, estimated, known, laws, shared, tabled, takes } from "./settings.js";

const by = (id) => document.getElementById(id);
let busy = false;
let settingsNow = () => ({});
const answers = {}; // what was released last, for each task

export function requestName() {
  const letters = Array.from(crypto.getRandomValues(new Uint8Array(3)), (each) => each.toString(16).padStart(2, "0")).join("");
  return `studio-${new Date().toISOString().slice(0, 10)}-${letters}`;
}

let about = { ledger: false, notions: {}, demo: null };
export const atHand = () => about;

// What keeps a run from being asked for, and the way around it.
function reasons() {
  const reason = about.ledger ? "" : "Nothing can be run yet, because the studio was started without a ledger. Start it with privatest studio --ledger FILE, or try made-up data.";
  document.querySelectorAll("[data-reason]").forEach((each) => { each.hidden = !reason; each.textContent = reason; });
  document.querySelectorAll("[data-demo]").forEach((each) => { each.hidden = about.ledger && !about.demo; });
  for (const id of ["run-button", "monitor-button", "sequential-button"]) by(id).disabled = Boolean(reason) || (id === "run-button" && busy);
}

const DEMO = { groups: ["visits.csv", "bought"], change: ["stream.csv", "value"], plan: ["measurements.csv", "value"], estimate: ["measurements.csv", "value"], describe: ["measurements.csv", "value"] };

// Made-up data with a ledger of their own, and the open form filled in with them.
async function demonstrate() {
  const { dataset } = await post("/api/demo", {});
  await showBudgets();
  const { tab } = settingsNow();
  for (const id of ["run-dataset", "monitor-dataset", "sequential-dataset"]) by(id).value = dataset;
  for (const id of ["monitor-path", "sequential-path"]) by(id).value = `${dataset}/stream.txt`;
  const [file, column] = DEMO[tab] || DEMO.plan;
  by("run-file").value = "";
  by("run-path").value = `${dataset}/${file}`;
  await listColumns();
  by("run-column").value = column;
  if (tab === "groups") by("run-group").value = "arm";
  told();
}

// The names of the chosen file's columns, to choose from; names alone are ever sent.
const uploaded = { file: null, word: null };
async function listColumns() {
  const [file, path] = [by("run-file").files[0], text("run-path")];
  let names = [];
  let note = "";
  if (file || path) {
    try {
      names = (await post("/api/columns", { source: await source() })).columns;
    } catch (error) {
      note = error.message;
    }
  }
  by("columns-note").textContent = note;
  document.querySelectorAll("select.column").forEach((place) => choose(place, names));
  if (names.length > 1 && !by("run-column").value && names.includes("value")) by("run-column").value = "value";
}

// A list of columns, in which a name that is not listed can be written, too.
function choose(place, names, chosen = place.value) {
  const option = (value, textContent) => Object.assign(document.createElement("option"), { value, textContent });
  const listed = names.length || !chosen ? names : [chosen];
  place.replaceChildren(option("", place.dataset.none), ...listed.map((name) => option(name, name)), option(OTHER, "another name …"));
  place.value = listed.includes(chosen) ? chosen : "";
}
const OTHER = "\u0000";

function otherName(place) {
  if (place.value !== OTHER) return;
  const box = Object.assign(document.createElement("input"), { maxLength: 200, id: `${place.id}-name` });
  box.setAttribute("aria-label", "Name of the column");
  const done = () => {
    const name = box.value.trim();
    const names = [...place.options].map((each) => each.value).filter((each) => each && each !== OTHER);
    box.remove();
    place.hidden = false;
    choose(place, name && !names.includes(name) ? [...names, name] : names, name);
    told();
  };
  box.addEventListener("change", done, { once: true });
  place.hidden = true;
  place.after(box);
  box.focus();
}

export async function showBudgets() {
  about = await get("/api/about");
  known(about.takes);
  reasons();
  told();
  by("files").replaceChildren(...about.files.map((name) => Object.assign(document.createElement("option"), { value: name })));
  by("datasets").replaceChildren(...about.budgets.map((each) => Object.assign(document.createElement("option"), { value: each.dataset })));
  for (const id of ["run-dataset", "monitor-dataset", "sequential-dataset"]) if (!by(id).value && about.budgets.length === 1) by(id).value = about.budgets[0].dataset;
  for (const id of ["run-path", "run-treatment", "monitor-path", "sequential-path"]) by(id).disabled = !about.folder;
  by("budget-hint").textContent = about.ledger
    ? "A budget is granted on the command line: privatest ledger grant --ledger FILE --dataset NAME --epsilon 1. Use --covers to name its files; otherwise any data set can pay for the same file."
    : "There is no ledger, so there are no budgets.";
  if (about.demo) by("budget-hint").textContent = "This budget covers the made-up files only, and is deleted when the studio ends.";
  by("budgets").tBodies[0].replaceChildren(...about.budgets.map((each) => {
    const line = document.createElement("tr");
    [each.dataset, short(each.granted, 6), short(each.spent, 6), short(each.left, 6)].forEach((text, i) => {
      const cell = line.insertCell();
      cell.textContent = text;
      if (i) cell.className = "number";
    });
    const used = line.insertCell();
    if (typeof each.granted === "number") {  // budgets in other notions are texts: no one number fills them
      const meter = Object.assign(document.createElement("meter"), { min: 0, max: each.granted, value: each.spent });
      meter.setAttribute("aria-label", `${short(each.spent)} of ${short(each.granted)} spent`);
      used.append(meter);
    }
    line.insertCell().textContent = each.covers === null ? "any source" : each.covers.join(", ");
    return line;
  }));
}

function said(message) {
  by("run-problem").hidden = !message;
  by("run-problem").textContent = message || "";
}

function facts(entries) {
  const list = document.createElement("dl");
  list.className = "facts";
  list.append(...entries.map((entry) => fact(...entry)));
  return list;
}

function fact(name, value, note) {
  const box = document.createElement("div");
  box.append(
    Object.assign(document.createElement("dt"), { textContent: name }),
    Object.assign(document.createElement("dd"), { textContent: value, className: value.length > 40 ? "long" : "" }),
    Object.assign(document.createElement("dd"), { className: "note", textContent: note || "" }),
  );
  return box;
}

// What was released, in a few words.
export function headlined(task, release, answers = []) {
  if (task === "test") return release.fits === "neither" ? "The data fit neither P nor Q" : `The data look like ${release.decision === "null" ? "P" : "Q"}`;
  if (task === "estimate") return release.beyond ? `The data lie ${release.beyond} the whole range` : `${release.parameter}: about ${short(release.estimate, 4)}`;
  if (task === "table") return answers.slice(0, 2).map((each) => `${each.question}: about ${short(each.estimate, 4)}`).join("; ");
  if (task === "groups") return `rate of ${release.names[1]} minus rate of ${release.names[0]}: about ${short(release.difference, 4)}`;
  if (release.changed === false) return `No change in ${whole(release.n)} records`;
  return `Change at record ${whole(release.index)}${release.order_value === null ? "" : ` (${release.order_value})`}`;
}

async function showRelease(task, found, asked, posed) {
  const { release, budget } = found;
  const headline = document.createElement("p");
  headline.className = "decision";
  const note = Object.assign(document.createElement("span"), { className: "note" });
  const paid = ["Left of the budget", short(budget.left, 6), `of ${short(budget.granted, 6)} for ${budget.dataset}`];
  headline.textContent = headlined(task, release, found.answers);
  note.textContent = found.sentence;
  // What the package tells of a release, wherever it is shown.
  const described = (found.answers || []).map((each) => [each.question, `${short(each.estimate, 4)} (${short(each.interval[0], 4)} to ${short(each.interval[1], 4)})`, each.sentence]);
  const list = facts([...described, ...found.facts, ["request", found.request], paid]);
  headline.append(note);
  const before = Object.assign(document.createElement("p"), { className: "replayed", hidden: !release.replayed });
  if (release.replayed) before.textContent = `Not a new answer: ${release.receipt.note}.`;
  const details = document.createElement("details");
  details.append(
    Object.assign(document.createElement("summary"), { textContent: "The same as JSON" }),
    Object.assign(document.createElement("pre"), { textContent: JSON.stringify(release, null, 2), tabIndex: 0 }),
  );
  by("release").replaceChildren(before, headline, list, details);
  by("release").dataset.request = found.request;
  by("chart-release").classList.toggle("low", task === "estimate" || task === "groups");
  answers[task] = [found, asked, posed];
  handedOver();
  if (task === "change") return drawChange(release);
  if (task === "table") return drawTable(release, found.noise);
  if (task === "estimate" || task === "groups") return drawInterval(task, release, found.design);
  const { source: _from, column: _column, unit: _unit, odd_epsilon: _odd, dataset: _paid, request: _name, ...rules } = asked;
  const picture = await post("/api/design", { ...rules, n: release.n });
  return drawLaw(picture, "chart-release", release);
}

const text = (id) => by(id).value.trim() || null;
const TASKS = { __proto__: null, plan: "test", change: "change", estimate: "estimate", describe: "table", groups: "groups" };
const task = () => TASKS[settingsNow().tab] || "test";

// What the way to an answer says of the data and of the run.
let said_ = () => {};
const told = () => said_();
export function chosenData() {
  const { tab } = settingsNow();
  const file = by("run-file").files[0];
  if (tab === "monitor" || tab === "sequential") return { file: by(`${tab}-path`).value.trim(), dataset: by(`${tab}-dataset`).value.trim(), ledger: about.ledger, released: by(tab === "monitor" ? "watch-state" : "walk-state").textContent !== "–", running: false };
  return { file: file ? file.name : by("run-path").value.trim(), dataset: by("run-dataset").value.trim(), ledger: about.ledger, released: Boolean(answers[task()]), running: busy };
}

// The report is of what was released last; an answer of other settings says so.
function handedOver() {
  const last = answers[task()];
  by("report-button").disabled = !last;
  by("report-note").textContent = last ? `A page to sign, about the request “${last[1].request}”: the answer, its guarantee, and what is left of the budget.` : "A page to sign: the answer, its guarantee, and what is left of the budget. Available after a release.";
  let stale = false;
  if (last) {
    try {
      stale = JSON.stringify(question(task(), settingsNow())) !== last[2];
    } catch {
      stale = true;
    }
  }
  by("release-stale").hidden = !stale;
  by("release").classList.toggle("stale", stale);
  by("chart-release").classList.toggle("stale", stale);
  told();
}
export const questionMoved = () => { if (answers[task()]) handedOver(); };

async function report(event) {
  event.preventDefault();
  const kind = task();
  const button = by("report-button");
  by("report-problem").hidden = true;
  button.disabled = true;
  button.textContent = "Writing …";
  try {
    // The same request again: what was recorded, at no new charge.
    const found = await post(`/api/run/${kind}`, { ...answers[kind][1], report: true, purpose: text("report-purpose"), author: text("report-author") });
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([found.report], { type: "text/html" }));
    link.download = `report-${answers[kind][1].request.replace(/[^\w-]+/g, "-")}.html`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    by("report-note").textContent = `Saved ${link.download} in your downloads.`;
  } catch (error) {
    by("report-problem").hidden = false;
    by("report-problem").textContent = error.message;
  } finally {
    button.disabled = false;
    button.textContent = "Make the report";
  }
}

// The picture of what was released, in the colours that are on now.
export function redrawRelease() {
  if (answers[task()]) showRelease(task(), ...answers[task()]);
}

// The form, what it released last, and the budgets: once on the page, on the tab that is open.
export function moveRun(tab) {
  const place = by(`panel-${tab}`).querySelector("[data-asking]");
  if (!place) return;
  place.append(by("asking"));
  taskChosen();
}

let chosen = "test";
// What is asked for depends on the task and on what privacy hides.
export function askedFor() {
  const { neighbours } = settingsNow();
  document.querySelectorAll("[data-task]").forEach((each) => {
    each.hidden = !each.dataset.task.split(" ").includes(task()) || (each.dataset.hides !== undefined && each.dataset.hides !== neighbours);
  });
}

function taskChosen() {
  askedFor();
  if (task() === chosen) return;
  chosen = task();
  said("");
  if (answers[chosen]) return void showRelease(chosen, ...answers[chosen]);
  by("release").replaceChildren(Object.assign(document.createElement("p"), { className: "hint", textContent: "Nothing yet. Only what appears here is released from the data." }));
  delete by("release").dataset.request;
  if (window.Plotly) window.Plotly.purge(by("chart-release"));
  by("chart-release").classList.remove("js-plotly-plot", "low");
  handedOver();
}

function question(kind, settings) {
  if (kind === "estimate") return estimated(settings);
  if (kind === "table") return tabled(settings);
  if (kind === "groups") return { ...compared(settings), treatment: text("run-treatment") === null ? null : { path: text("run-treatment") }, group: text("run-group"), control_name: text("run-control") };
  return { ...laws(settings), ...shared(settings, RUNS[settings.tab]), ...(kind === "test" ? { alpha: settings.goal === "errors" ? settings.alpha : null } : { beta: settings.goal === "errors" ? settings.beta : 0.1 }) };
}

async function source() {
  const file = by("run-file").files[0];
  if (file && file !== uploaded.file) Object.assign(uploaded, { word: (await upload(file)).upload, file });
  if (file) return { upload: uploaded.word };
  if (!text("run-path")) throw new Error("Name a file in the folder, or choose a file to upload.");
  return { path: text("run-path") };
}

async function submit(event) {
  event.preventDefault();
  if (busy) return;
  busy = true;
  by("run-button").disabled = true;
  by("run-button").textContent = "Running …";
  said("");
  told();
  try {
    const settings = settingsNow();
    const kind = task();
    const posed = question(kind, settings);
    const asked = { ...posed, source: await source(), column: text("run-column"), dataset: text("run-dataset"), request: text("run-request") };
    if (takes(RUNS[settings.tab], "unit") && text("run-unit") !== null) asked.unit = text("run-unit");
    if (text("run-odd") !== null) asked.odd_epsilon = Number(text("run-odd"));
    if (kind === "test" || kind === "estimate" || kind === "table") {
      const n = text("run-n");
      if (settings.neighbours === "add-remove" && n === null) throw new Error("The true number of records is hidden. Give the number that you expect; the test is designed for it.");
      asked.n = settings.neighbours === "add-remove" ? Number(n) : null;
    }
    if (kind === "change") Object.assign(asked, { order: text("run-order"), public_order: by("run-public-order").checked, false_alarm: text("run-false-alarm") === null ? null : Number(text("run-false-alarm")), assume_change: by("run-assume-change").checked });
    await showRelease(kind, await post(`/api/run/${kind}`, asked), asked, JSON.stringify(posed));
    await showBudgets();
  } catch (error) {
    said(error.message);
  } finally {
    busy = false;
    by("run-button").disabled = false;
    by("run-button").textContent = "Run";
    told();
  }
}

export function startRun(settings, moved) {
  settingsNow = settings;
  said_ = moved;
  by("run-request").value = requestName();
  by("run").addEventListener("submit", submit);
  by("hand-over").addEventListener("submit", report);
  by("run-new").addEventListener("click", () => { by("run-request").value = requestName(); });
  by("run-path").addEventListener("change", () => { by("run-file").value = ""; listColumns().then(told); });
  by("run-file").addEventListener("change", () => { by("run-path").value = ""; listColumns().then(told); });
  for (const id of ["run-dataset", "monitor-dataset", "sequential-dataset", "monitor-path", "sequential-path"]) by(id).addEventListener("input", told);
  document.querySelectorAll("select.column").forEach((place) => { choose(place, []); place.addEventListener("change", () => otherName(place)); });
  document.querySelectorAll("[data-demo]").forEach((each) => each.addEventListener("click", () => demonstrate().catch((error) => said(error.message))));
  taskChosen();
}
