// Requests to the service (docs/api.md).

let key = ""; // kept in memory only

/** An error of the service, or a missing answer, in a sentence for the user. */
export class Refusal extends Error {
  constructor(sentence, status) {
    super(sentence);
    this.status = status;
  }

  get wantsKey() {
    return this.status === 401;
  }
}

/** Uses an API key from now on. */
export function useKey(text) {
  key = text.trim();
}

export const recommend = (request, signal) => call("recommend", { body: request, signal });
export const explain = (request, signal) => call("explain", { body: request, signal });
export const addVisit = (visit) => call("visits", { body: visit });
export const landAround = () => call("land");
export const modelCard = (run = null) =>
  call(run === null ? "model" : `model?${new URLSearchParams({ run })}`);

/** Visits of a user, oldest first. */
export async function visitsOf(user, { limit = 1000 } = {}) {
  const id = user.split("/").map(encodeURIComponent).join("/");
  return (await call(`users/${id}/visits?limit=${limit}`)).visits;
}

/** Users whose id begins with a text, by id. */
export async function usersLike(text) {
  const query = new URLSearchParams({ q: text, limit: "60" });
  return (await call(`users?${query}`)).users;
}

/** Places of a box or with a text in their name, those with most check-ins first. */
export async function findPlaces({ box = null, text = "", limit }, signal) {
  const query = new URLSearchParams({ limit: String(limit) });
  if (box) query.set("bbox", box.join(","));
  if (text) query.set("q", text);
  return (await call(`places?${query}`, { signal })).places;
}

/** Opens the page about the city in another tab; a plain link could not send the key. */
export async function openCityPage() {
  const tab = window.open("", "_blank"); // before the answer, or the browser blocks it
  try {
    const page = await send("city");
    tab.location = URL.createObjectURL(await page.blob());
  } catch (problem) {
    tab?.close();
    throw problem;
  }
}

async function call(path, options = {}) {
  const response = await send(path, options);
  const answer = await response.json().catch(() => ({}));
  options.signal?.throwIfAborted(); // a newer request has replaced this one: its answer is not shown
  return answer;
}

async function send(path, { body = null, signal } = {}) {
  const headers = { Accept: "application/json" };
  if (key) headers.Authorization = `Bearer ${key}`;
  if (body) headers["Content-Type"] = "application/json";
  const response = await reach(`v1/${path}`, {
    method: body ? "POST" : "GET",
    headers,
    body: body && JSON.stringify(body),
    signal,
  });
  if (response.ok) return response;
  const problem = await response.json().catch(() => ({}));
  signal?.throwIfAborted();
  throw new Refusal(sentenceOf(problem, response.status), response.status);
}

async function reach(url, options) {
  try {
    return await fetch(url, options);
  } catch (problem) {
    if (problem.name === "AbortError") throw problem;
    throw new Refusal("The service does not answer. Is it still running?", 0);
  }
}

function sentenceOf(answer, status) {
  const fields = (answer.fields ?? []).map((each) => `${each.field}: ${each.problem}`).join("; ");
  const sentence = fields || answer.error || `The service answered with status ${status}.`;
  return sentence.charAt(0).toUpperCase() + sentence.slice(1);
}
