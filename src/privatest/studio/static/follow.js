// What follows a stream: one form that starts it, one card that sends it records, and what it has released.

import { get, post } from "./ask.js";
import { showBudgets, requestName } from "./run.js";

const by = (id) => document.getElementById(id);
const AT_ONCE = 5000;
const PAUSE = 600;

// kind: id of its form, where its facts (watch) and its records (feed) are, its route and list, `ask` (what the form asks
// for, beside file and payer), `told` (its facts, by name) and `draw`.
export function follower(kind) {
  const { id, watch, feed, route, list, ask, told, draw } = kind;
  let followed = null;
  let timer = null;
  let shown = null;

  function said(message) {
    by(`${id}-problem`).hidden = !message;
    by(`${id}-problem`).textContent = message || "";
  }

  function fact(name, value, note = "") {
    const place = by(`${watch}-${name}`);
    if (place.textContent !== value) place.textContent = value;
    by(`${watch}-${name}-note`).textContent = note;
  }

  async function show(state) {
    shown = state;
    followed = state.monitor;
    for (const [name, [value, note]] of Object.entries(told(state))) fact(name, value, note);
    if (state.problem) said(state.problem);
    by(`${id}-stop`).disabled = state.stopped || state.drift_detected;
    by(`${feed}-card`).hidden = state.following || state.stopped || state.drift_detected;
    await draw(state);
    document.dispatchEvent(new Event("followed"));
    clearTimeout(timer);
    if (state.following && !state.drift_detected) timer = setTimeout(poll, PAUSE);
  }

  async function poll() {
    try {
      const state = await get(`${route}/${followed}`);
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
    const file = by(`${feed}-file`).files[0];
    const text = file ? await file.text() : by(`${feed}-lines`).value;
    const lines = text.split(/\r?\n/);
    if (lines.at(-1) === "") lines.pop();
    if (!lines.length) throw new Error("Write records, one per line, or choose a file.");
    for (let i = 0; i < lines.length; i += AT_ONCE) {
      const state = await post(`${route}/${followed}/records`, { lines: lines.slice(i, i + AT_ONCE).map((line) => line.slice(0, 1000)) });
      await show(state);
      if (state.drift_detected) break;
    }
    by(`${feed}-lines`).value = "";
  }

  return {
    redraw() {
      if (shown) draw(shown);
    },

    // The newest one of this studio, so that a reload of the page goes on with it.
    async restore() {
      const all = (await get(route))[list];
      if (all.length) await show(all.at(-1));
    },

    start(settings) {
      by(`${id}-request`).value = requestName();
      by(id).addEventListener("submit", (event) => {
        event.preventDefault();
        pressed(by(`${id}-button`), async () => {
          const state = await post(route, {
            ...ask(settings()),
            path: by(`${id}-path`).value.trim() || null,
            dataset: by(`${id}-dataset`).value.trim(), request: by(`${id}-request`).value.trim(),
          });
          await show(state);
          await showBudgets();
        });
      });
      by(`${id}-stop`).addEventListener("click", () => pressed(by(`${id}-stop`), async () => show(await post(`${route}/${followed}/stop`, {}))));
      by(`${feed}-button`).addEventListener("click", () => pressed(by(`${feed}-button`), send));
    },
  };
}

export const standing = (state, over) => (state.drift_detected ? over : state.stopped ? "stopped" : state.following ? "following" : "waiting for records");
