// Numbers, times and places in words.

const DAY = new Intl.DateTimeFormat("en-GB", {
  weekday: "short",
  day: "numeric",
  month: "short",
  year: "numeric",
  hour: "2-digit",
  minute: "2-digit",
  timeZone: "UTC",
});
// Unit, minutes, and the count from which it is used: as in recommend/recommendation.py.
const UNITS = [
  ["year", 365 * 24 * 60, 2],
  ["month", 30 * 24 * 60, 2],
  ["week", 7 * 24 * 60, 2],
  ["day", 24 * 60, 1],
  ["hour", 60, 1],
  ["minute", 1, 1],
];
const COUNT = new Intl.NumberFormat("en-GB");

/** A number with its thousands: 2,300. */
export const grouped = (number) => COUNT.format(number);

/** A count with its noun: 1 visit, 2,300 visits. */
export function counted(count, noun) {
  return `${grouped(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/** A distance: 300 m, 2.3 km, 41 km. */
export function kilometres(km) {
  if (km < 0.0095) return "under 10 m";
  if (km < 0.995) return `${Math.round(km * 100) * 10} m`;
  return `${km < 9.95 ? km.toFixed(1) : COUNT.format(Math.round(km))} km`;
}

/** A probability: 23 %, 2.3 %, < 0.1 %, with spaces that do not break. */
export function percent(share) {
  if (share < 0.001) return "<\u202f0.1\u202f%";
  return `${share < 0.0995 ? (100 * share).toFixed(1) : Math.round(100 * share)}\u202f%`;
}

/** A number with its sign; minus is the minus character. */
export function signed(value) {
  const text = Math.abs(value).toFixed(2);
  return Number(text) === 0 ? "0.00" : `${value < 0 ? "−" : "+"}${text}`;
}

/** The time since a visit, as in the sentence of the service: 40 minutes ago, 2 days ago. */
export function ago(hours) {
  const minutes = Math.round(hours * 60_000) / 1000; // 3 hours must not become 2.9999
  for (const [unit, length, least] of UNITS) {
    const count = Math.floor(minutes / length);
    if (count >= least) return `${counted(count, unit)} ago`;
  }
  return "a moment ago";
}

/** A sentence of the service about “you”, as one about the person who is looked at. */
export function aboutThem(sentence) {
  return sentence
    .replace(/\bYou were\b/g, "They were")
    .replace(/\byour\b/g, "their")
    .replace(/\byou\b/g, "them");
}

/** The local time of a visit, independent of the time zone of the browser: Tue 3 Apr 2012, 18:00. */
export function clock(at) {
  return DAY.format(wall(at));
}

/** An hour after a local time, as the value of a time field. */
export function hourAfter(at) {
  return new Date(wall(at).getTime() + 3_600_000).toISOString().slice(0, 16);
}

/** The current time of the browser, as the value of a time field. */
export function now() {
  const date = new Date();
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

// The first sixteen characters of an ISO time are the local time.
function wall(at) {
  return new Date(`${at.slice(0, 16)}Z`);
}

/** The title of a place: its name, else its category, else its id. */
export function titleOf(place) {
  return place.name ?? place.category ?? `Place ${shortId(place.place)}`;
}

/** Details of a place; an id distinguishes places without names. */
export function detailOf(place) {
  if (place.name) return place.category ?? "";
  return place.category ? `no. ${shortId(place.place)}` : "";
}

/** A text with a capital first letter. */
export function sentenceCase(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function shortId(id) {
  return id.length > 8 ? `…${id.slice(-6)}` : id;
}
