// What a view leaves the page as: a link, the list as CSV or GeoJSON.

import { collection, point } from "./shapes.js";

const COLUMNS = [
  "rank", "place", "name", "category", "lat", "lon", "probability", "score", "distance_km",
  "visited", "sentence",
];

/** The list as CSV, with a header. */
export function csvOf(recommendations) {
  const rows = ranked(recommendations).map((row) => COLUMNS.map((name) => cell(row[name])).join(","));
  return [COLUMNS.join(","), ...rows, ""].join("\r\n");
}

/** The list as a GeoJSON collection of points. */
export function geojsonOf(recommendations) {
  const features = ranked(recommendations).map((row) => {
    const properties = Object.fromEntries(COLUMNS.map((name) => [name, row[name] ?? null]));
    const { lat: _, lon: __, ...others } = properties;
    return point(row, others);
  });
  return JSON.stringify(collection(features), null, 1);
}

/** The address of a view: its parameters follow #, so that no server receives them. */
export function linkOf(view) {
  const filled = Object.entries(view).filter(([, value]) => value);
  const text = filled.map(([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value)]);
  return `${location.origin}${location.pathname}#${new URLSearchParams(text)}`;
}

/** The view of the page's address; the address is then cleared of it. */
export function viewOfAddress() {
  const parameters = new URLSearchParams(location.hash.slice(1));
  if (!parameters.size) return null;
  history.replaceState(null, "", location.pathname + location.search);
  const parsed = (name) => {
    try {
      return JSON.parse(parameters.get(name));
    } catch {
      return null; // a link that was cut
    }
  };
  const text = (name) => parameters.get(name) ?? "";
  return {
    centre: parsed("centre"),
    filters: parsed("filters"),
    history: parsed("history"),
    when: text("when"),
    run: text("run"),
    user: text("user"),
    place: text("place"),
  };
}

/** Offers a file to the person. */
export function save(content, name, type) {
  const url = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  const link = document.createElement("a");
  Object.assign(link, { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

const ranked = (recommendations) => recommendations.map((each, index) => ({ rank: index + 1, ...each }));

// A text that begins as a formula would be one in a spreadsheet: it gets an apostrophe.
function cell(value) {
  if (value === null || value === undefined) return "";
  if (typeof value !== "string") return String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
