// The Sequential tab: one sequential test; shows the walk of the log e-value between its boundaries, nothing else.

import { drawWalk, short, whole } from "./draw.js";
import { follower, standing } from "./follow.js";
import { laws, shared } from "./settings.js";

const by = (id) => document.getElementById(id);

function ask(now) {
  const most = by("sequential-most").value.trim();
  const errors = now.goal === "errors" ? { alpha: now.alpha, beta: now.beta } : {};
  return { ...laws(now), ...shared(now, "/sequentials"), ...errors, most: most === "" ? null : Number(most) };
}

function told(state) {
  const [verdict] = state.alarms;
  const { expected_n: expected, fixed_n: fixed, schedule, evalue, pvalue, alpha, beta } = state.settings;
  return {
    state: [standing(state, verdict ? verdict.decision : "decided"), `${state.privacy ?? `ε = ${state.epsilon}`}, request ${state.request}`],
    seen: [whole(state.seen), `in blocks of ${whole(schedule[0])}, then ${whole(schedule[1])}`],
    evalue: [short(evalue), `against P; p-value ${short(pvalue)}, whenever you look`],
    expected: [expected.map((n) => short(n)).join(" / "), `records on average under P / Q; a fixed test needs ${whole(fixed)}; errors ${short(alpha)}, ${short(beta)}`],
  };
}

export const sequential = follower({ id: "sequential", watch: "walk", feed: "walk-feed", route: "/api/sequentials", list: "sequentials", ask, told, draw: drawWalk });
