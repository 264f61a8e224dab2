// Requests to this studio's own API. Answers are JSON; a refusal is an Error whose message is the server's sentence.

export class Refused extends Error {}

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

async function fetched(path, options) {
  try {
    return await answer(await fetch(path, { credentials: "same-origin", cache: "no-store", ...options }));
  } catch (error) {
    // Whatever went wrong, also while the answer was arriving: nobody waits for it any more.
    if (options.signal && options.signal.aborted) throw new DOMException("Asked again.", "AbortError");
    if (error instanceof Refused) throw error;
    throw new Refused("The studio does not answer. Is it still running?");
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
