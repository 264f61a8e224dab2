// The Run tab: one request to the data, through the ledger.

import { get, post, upload } from "./ask.js";
import { drawChange, drawInterval, drawLaw, short, whole } from "./draw.js";
import { compared, estimated, laws } from "./settings.js";

const by = (id) => document.getElementById(id);
let busy = false;
let settingsNow = () => ({});
const answers = {}; // what was released last, for each task

export function requestName() {
  const letters = Array.from(crypto.getRandomValues(new Uint8Array(3)), (each) => each.toString(16).padStart(2, "0")).join("");
  return `studio-${new Date().toISOString().slice(0, 10)}-${letters}`;
}

export async function showBudgets() {
  const about = await get("/api/about");
  by("files").replaceChildren(...about.files.map((name) => Object.assign(document.createElement("option"), { value: name })));
  by("datasets").replaceChildren(...about.budgets.map((each) => Object.assign(document.createElement("option"), { value: each.dataset })));
  for (const id of ["run-dataset", "monitor-dataset", "sequential-dataset"]) if (!by(id).value && about.budgets.length === 1) by(id).value = about.budgets[0].dataset;
  for (const id of ["run-path", "run-treatment", "monitor-path", "sequential-path"]) by(id).disabled = !about.folder;
  by("budget-hint").textContent = about.ledger
    ? "A budget is granted on the command line: privatest ledger grant --ledger FILE --dataset NAME --epsilon 1. Name the files it is for, or the same file can be charged to any data set."
    : "No ledger was given at start, so nothing can be run. Start again with: privatest studio --ledger FILE.";
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

async function showRelease(task, found, asked) {
  const { release, budget } = found;
  const headline = document.createElement("p");
  headline.className = "decision";
  const note = Object.assign(document.createElement("span"), { className: "note" });
  const paid = ["Left of the budget", short(budget.left, 6), `of ${short(budget.granted, 6)} for ${budget.dataset}`];
  const none = release.changed === false;
  if (task === "test") headline.textContent = release.fits === "neither" ? "The data fit neither P nor Q" : `The data look like ${release.decision === "null" ? "P" : "Q"}`;
  else if (task === "estimate") headline.textContent = release.beyond ? `The data lie ${release.beyond} the whole range` : `${release.parameter}: about ${short(release.estimate, 4)}`;
  else if (task === "groups") headline.textContent = `${release.names[1]} minus ${release.names[0]}: about ${short(release.difference, 4)}`;
  else headline.textContent = none ? `No change in ${whole(release.n)} records` : `Change at record ${whole(release.index)}${release.order_value === null ? "" : ` (${release.order_value})`}`;
  note.textContent = found.sentence;
  // What the package tells of a release, wherever it is shown.
  const list = facts([...found.facts, ["request", found.request], paid]);
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
  by("chart-release").hidden = false;
  by("chart-release").classList.toggle("low", task === "estimate" || task === "groups");
  answers[task] = [found, asked];
  if (task === "change") return drawChange(release);
  if (task === "estimate" || task === "groups") return drawInterval(task, release, found.design);
  const picture = await post("/api/design", { null: asked.null, alternative: asked.alternative, epsilon: asked.epsilon, n: release.n, alpha: asked.alpha, neighbours: asked.neighbours });
  return drawLaw(picture, "chart-release", release);
}

const text = (id) => by(id).value.trim() || null;
// Two tabs have a task of their own; on the Run tab it is chosen.
const task = () => {
  const { tab } = settingsNow();
  return tab === "estimate" || tab === "groups" ? tab : document.querySelector('input[name="task"]:checked').value;
};

// The form, what it released last, and the budgets: once on the page, on the tab that is open.
export function moveRun(tab) {
  if (!["run", "estimate", "groups"].includes(tab)) return;
  by(`panel-${tab}`).append(by("asking"));
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
  by("release").replaceChildren(Object.assign(document.createElement("p"), { className: "hint", textContent: "Nothing yet. Only what is shown here will have left the data." }));
  delete by("release").dataset.request;
  by("chart-release").hidden = true;
}

function question(kind, settings) {
  if (kind === "estimate") return estimated(settings);
  if (kind === "groups") return { ...compared(settings), treatment: text("run-treatment") === null ? null : { path: text("run-treatment") }, group: text("run-group"), control_name: text("run-control") };
  return { ...laws(settings), epsilon: settings.epsilon };
}

async function source() {
  const file = by("run-file").files[0];
  if (file) return { upload: (await upload(file)).upload };
  if (!text("run-path")) throw new Error("Name a file in the folder, or pick one to upload.");
  return { path: text("run-path") };
}

async function submit(event) {
  event.preventDefault();
  if (busy) return;
  busy = true;
  by("run-button").disabled = true;
  by("run-button").textContent = "Running …";
  said("");
  try {
    const settings = settingsNow();
    const kind = task();
    const asked = {
      ...question(kind, settings), source: await source(), column: text("run-column"),
      dataset: text("run-dataset"), request: text("run-request"),
    };
    if (settings.neighbours !== "replace" && kind === "change") throw new Error("A change point is private against the replacement of a record; the number of records is public. Choose that at the left.");
    if (kind === "test" || kind === "estimate") {
      const n = text("run-n");
      if (settings.neighbours === "add-remove" && n === null) throw new Error("The number of records stays hidden: say for how many it shall be designed, as you expect.");
      Object.assign(asked, { neighbours: settings.neighbours, n: settings.neighbours === "add-remove" ? Number(n) : null });
    }
    if (kind === "test") asked.alpha = settings.goal === "errors" ? settings.alpha : null;
    if (kind === "change") Object.assign(asked, { beta: settings.goal === "errors" ? settings.beta : 0.1, order: text("run-order"), public_order: by("run-public-order").checked, false_alarm: text("run-false-alarm") === null ? null : Number(text("run-false-alarm")), assume_change: by("run-assume-change").checked });
    await showRelease(kind, await post(`/api/run/${kind}`, asked), asked);
    await showBudgets();
  } catch (error) {
    said(error.message);
  } finally {
    busy = false;
    by("run-button").disabled = false;
    by("run-button").textContent = "Run";
  }
}

export function startRun(settings) {
  settingsNow = settings;
  by("run-request").value = requestName();
  by("run").addEventListener("submit", submit);
  by("run-new").addEventListener("click", () => { by("run-request").value = requestName(); });
  document.querySelectorAll('input[name="task"]').forEach((each) => each.addEventListener("change", taskChosen));
  taskChosen();
}
