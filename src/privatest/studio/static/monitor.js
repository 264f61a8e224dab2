// The Monitor tab: follows one monitor; shows noisy block sums and alarms, nothing else.

import { drawMonitor, short, whole } from "./draw.js";
import { follower, standing } from "./follow.js";
import { laws, shared } from "./settings.js";

const by = (id) => document.getElementById(id);

function ask(now) {
  const between = by("monitor-between").value.trim();
  return {
    ...laws(now), ...shared(now, "/monitors"), beta: now.goal === "errors" ? now.beta : 0.1,
    mean_time_between_false_alarms: between === "" ? null : Number(between),
  };
}

function told(state) {
  const [alarm] = state.alarms;
  const { mean_time_between_false_alarms: between, expected_delay: delay, block } = state.settings;
  return {
    state: [standing(state, "changed"), `${state.privacy ?? `ε = ${state.epsilon}`}, request ${state.request}`],
    seen: [whole(state.seen), block ? `in blocks of ${whole(block)}` : ""],
    alarm: [alarm ? whole(alarm.index) : "–", alarm ? `give or take ${whole(alarm.accuracy)}; alarm after ${whole(alarm.seen)}` : "no alarm so far"],
    between: [between ? whole(Math.round(between)) : "–", delay ? `records; delay about ${short(delay)}` : "records"],
  };
}

export const monitor = follower({ id: "monitor", watch: "watch", feed: "feed", route: "/api/monitors", list: "monitors", ask, told, draw: drawMonitor });
