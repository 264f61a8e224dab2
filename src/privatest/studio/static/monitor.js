// The Monitor tab: follows one monitor; shows noisy block sums and alarms, nothing else.

import { get, post } from "./ask.js";
import { drawMonitor, short, whole } from "./draw.js";
import { showBudgets, requestName } from "./run.js";
import { laws } from "./settings.js";

const by = (id) => document.getElementById(id);
const AT_ONCE = 5000;
const PAUSE = 600;
let followed = null;
let timer = null;
let shown = null;

function said(message) {
  by("monitor-problem").hidden = !message;
  by("monitor-problem").textContent = message || "";
}

function fact(name, value, note = "") {
  const place = by(`watch-${name}`);
  if (place.textContent !== value) place.textContent = value;
  by(`watch-${name}-note`).textContent = note;
}

async function show(state) {
  shown = state;
  followed = state.monitor;
  const [alarm] = state.alarms;
  fact("state", state.drift_detected ? "changed" : state.stopped ? "stopped" : state.following ? "following" : "waiting for records", `ε = ${state.epsilon}, request ${state.request}`);
  fact("seen", whole(state.seen), state.settings.block ? `in blocks of ${whole(state.settings.block)}` : "");
  fact("alarm", alarm ? whole(alarm.index) : "–", alarm ? `give or take ${whole(alarm.accuracy)}; alarm after ${whole(alarm.seen)}` : "no alarm so far");
  const { mean_time_between_false_alarms: between, expected_delay: delay } = state.settings;
  fact("between", between ? whole(Math.round(between)) : "–", delay ? `records; delay about ${short(delay)}` : "records");
  if (state.problem) said(state.problem);
  by("monitor-stop").disabled = state.stopped || state.drift_detected;
  by("feed-card").hidden = state.following || state.stopped || state.drift_detected;
  await drawMonitor(state);
  clearTimeout(timer);
  if (state.following && !state.drift_detected) timer = setTimeout(poll, PAUSE);
}

async function poll() {
  try {
    const state = await get(`/api/monitors/${followed}`);
    if (JSON.stringify(state) !== JSON.stringify(shown)) await show(state);
    else timer = setTimeout(poll, PAUSE);
  } catch (error) {
    said(error.message);
  }
}

async function pressed(button, work) {
  if (button.disabled) return;
  button.disabled = true;
  said("");
  try {
    await work();
  } catch (error) {
    said(error.message);
  } finally {
    button.disabled = false;
  }
}

async function send() {
  const file = by("feed-file").files[0];
  const text = file ? await file.text() : by("feed-lines").value;
  const lines = text.split(/\r?\n/);
  if (lines.at(-1) === "") lines.pop();
  if (!lines.length) throw new Error("Write records, one a line, or pick a file.");
  for (let i = 0; i < lines.length; i += AT_ONCE) {
    const state = await post(`/api/monitors/${followed}/records`, { lines: lines.slice(i, i + AT_ONCE).map((line) => line.slice(0, 1000)) });
    await show(state);
    if (state.drift_detected) break;
  }
  by("feed-lines").value = "";
}

export function redrawMonitor() {
  if (shown) drawMonitor(shown);
}

// The newest monitor of this studio, so that a reload of the page goes on with it.
export async function restoreMonitor() {
  const { monitors } = await get("/api/monitors");
  if (monitors.length) await show(monitors.at(-1));
}

export function startMonitor(settings) {
  by("monitor-request").value = requestName();
  by("monitor").addEventListener("submit", (event) => {
    event.preventDefault();
    pressed(by("monitor-button"), async () => {
      const now = settings();
      const between = by("monitor-between").value.trim();
      const state = await post("/api/monitors", {
        ...laws(now), epsilon: now.epsilon, beta: now.goal === "errors" ? now.beta : 0.1,
        mean_time_between_false_alarms: between === "" ? null : Number(between),
        path: by("monitor-path").value.trim() || null, rotated: by("monitor-rotated").checked,
        dataset: by("monitor-dataset").value.trim(), request: by("monitor-request").value.trim(),
      });
      await show(state);
      await showBudgets();
    });
  });
  by("monitor-stop").addEventListener("click", () => pressed(by("monitor-stop"), async () => show(await post(`/api/monitors/${followed}/stop`, {}))));
  by("feed-button").addEventListener("click", () => pressed(by("feed-button"), send));
}
