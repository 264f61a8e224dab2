// Requests to this studio's own API. Answers are JSON; a refusal is an Error whose message is the server's sentence.
//
// Every question carries the studio's key as a header. The key lives in this page and, so that it survives a reload, in
// the session storage of this origin (host and port): no cookie, no address and no other site ever holds it. It is
// traded for a launch word, which works once: from the address, from the form, or a page of this studio that is open
// already hands it on.

export class Refused extends Error {}

const PLACE = "privatest-key";
const remembered = () => { try { return sessionStorage.getItem(PLACE); } catch { return null; } };
const remember = (value) => { try { sessionStorage.setItem(PLACE, value); } catch { /* then for this page only */ } };
let key = remembered();

const pages = new BroadcastChannel("privatest");
if (pages.unref) pages.unref(); // outside of a browser it would keep the process
pages.addEventListener("message", ({ data }) => {
  if (data === "who has the key?" && key) pages.postMessage({ key });
});

function fromOthers() {
  return new Promise((done) => {
    const heard = ({ data }) => { if (data && data.key) finish(data.key); };
    const finish = (found) => { pages.removeEventListener("message", heard); clearTimeout(timer); done(found); };
    const timer = setTimeout(() => finish(null), 400);
    pages.addEventListener("message", heard);
    pages.postMessage("who has the key?");
  });
}

// Trade a launch word for the key.
export async function launch(word) {
  const found = await fetched("/api/key", { method: "POST", headers: { authorization: `Launch ${word}` } });
  key = found.key;
  remember(key);
}

// Whether this page has the key: from a launch word, from before, or from another page.
export async function enter(word) {
  if (word) await launch(word);
  key = key || (await fromOthers());
  if (!key) return false;
  remember(key);
  const found = await fetch("/api/about", { headers: { authorization: `Bearer ${key}` }, credentials: "omit", cache: "no-store" });
  if (found.status === 401) key = null;
  return Boolean(key);
}

async function answer(response) {
  let body = null;
  try {
    body = await response.json();
  } catch {
    throw new Refused(`The studio gave no readable answer (status ${response.status}). Is it still running?`);
  }
  if (!response.ok) throw new Refused(body.error || `Status ${response.status}.`);
  return body;
}

// What has been asked and is not answered, for whoever shows that it takes a while.
const open = new Map();
const SLOW = 2000;
export const waitedFor = (now = performance.now()) => [...open.values()].filter((each) => now - each.since > SLOW);

// Where something takes longer than two seconds: since when, and how far the studio says it has come.
export function watchSlow(show) {
  let asking = false;
  setInterval(async () => {
    const slow = waitedFor();
    if (!slow.length || asking) return slow.length ? undefined : show("");
    asking = true;
    try {
      const working = await inWork();
      show(progressText(slow, working));
    } catch {
      show(progressText(slow, []));
    } finally {
      asking = false;
    }
  }, 500);
}

export const inWork = async () => (await fetched("/api/working", { quiet: true })).working;

// While an answer is waited for: whatever part of it is there already, as often as there is more of it.
export async function filling(waited, job, asked, show) {
  let done = false;
  const end = () => { done = true; };
  waited.then(end, end);
  let shown = 0;
  while (!done) {
    await new Promise((next) => setTimeout(next, 500));
    if (done) return;
    const working = await inWork().catch(() => []);
    const mine = working.find((each) => each.job === job && each.found && Object.keys(asked).every((name) => same(asked[name], each.asked[name])));
    if (!done && mine && mine.found.length > shown) {
      shown = mine.found.length;
      show(mine.found);
    }
  }
}
const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

// One line: what the studio says of the longest computation, or what is waited for.
export function progressText(slow, working, now = performance.now()) {
  const [first] = [...slow].sort((a, b) => a.since - b.since);
  const seconds = Math.round((now - first.since) / 1000);
  const told = working.filter((each) => each.headway).sort((a, b) => b.seconds - a.seconds)[0];
  const more = slow.length > 1 ? `, and ${slow.length - 1} more` : "";
  return `${told ? told.headway : WORDS[first.path.replace("/api", "")] || "computing"} … ${seconds} s${more}`;
}
const WORDS = {
  __proto__: null, "/look": "drawing P and Q", "/design": "designing the test", "/size": "counting the records needed", "/plan": "looking for what no test can beat",
  "/theory": "the theorem", "/power": "errors against records", "/along": "power along the parameter", "/compare": "every test side by side", "/notions": "comparing notions of privacy",
  "/estimate": "planning the interval", "/estimate/size": "records for the interval", "/groups": "planning two groups", "/groups/size": "records for two groups",
  "/run/test": "running the test", "/run/change": "looking for the change", "/run/estimate": "estimating", "/run/groups": "comparing the groups", "/run/table": "describing the column", "/monitors": "designing the monitor",
  "/sequentials": "designing the sequential test", "/upload": "uploading", "/columns": "looking for the columns' names",
};

async function fetched(path, options) {
  const mark = {};
  if (!options.quiet) open.set(mark, { path: path.split("?")[0], since: performance.now() });
  try {
    const headers = { authorization: `Bearer ${key}`, ...options.headers };
    return await answer(await fetch(path, { credentials: "omit", cache: "no-store", ...options, headers }));
  } catch (error) {
    // Whatever went wrong, also while the answer was arriving: nobody waits for it any more.
    if (options.signal && options.signal.aborted) throw new DOMException("Asked again.", "AbortError");
    if (error instanceof Refused) throw error;
    throw new Refused("The studio does not answer. Is it still running?");
  } finally {
    open.delete(mark);
  }
}

export const get = (path, signal) => fetched(path, { signal });

export const post = (path, body, signal) =>
  fetched(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body), signal });

export const upload = (file) =>
  fetched(`/api/upload?name=${encodeURIComponent(file.name)}`, {
    method: "POST",
    headers: { "content-type": "application/octet-stream" },
    body: file,
  });

// Of many questions of one sort only the newest counts: asking again aborts what is under way.
export class Newest {
  constructor() {
    this.controller = null;
    this.timer = null;
  }
  ask(work, delay = 0) {
    this.stop();
    const controller = (this.controller = new AbortController());
    this.timer = setTimeout(() => {
      work(controller.signal).catch((error) => {
        if (error.name !== "AbortError") console.warn(error.message);
      });
    }, delay);
  }
  stop() {
    clearTimeout(this.timer);
    if (this.controller) this.controller.abort();
  }
}

// One question at a time; while it is under way only the newest of the others is remembered, and asked next.
export class Steady {
  constructor(work) {
    this.work = work;
    this.busy = false;
    this.next = null;
  }
  async ask(value) {
    this.next = { value };
    if (this.busy) return;
    this.busy = true;
    try {
      while (this.next) {
        const { value } = this.next;
        this.next = null;
        await this.work(value);
      }
    } finally {
      this.busy = false;
    }
  }
}
