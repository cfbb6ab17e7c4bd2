// Which places may be recommended: number, categories, distance, visited or not.

import { byId, calmly, element } from "./dom.js";

const CALM_MS = 350;
const k = byId("k");
const within = byId("within");
const chooser = byId("category");
const excludeVisited = byId("exclude-visited");
const newOnly = byId("new-only");

let categories = [];
let near = null;
let onChange = () => {};

/** Starts the form; `changed` is called at every change, `pointing` to choose a point on the map. */
export function startFilters({ changed, pointing }) {
  onChange = () => {
    showCount();
    changed();
  };
  byId("filter-form").addEventListener("submit", (event) => event.preventDefault());
  for (const field of [k, within]) field.addEventListener("input", calmly(onChange, CALM_MS));
  for (const field of [excludeVisited, newOnly]) field.addEventListener("change", () => onChange());
  chooser.addEventListener("change", () => chooseCategory(chooser.value));
  byId("near").addEventListener("click", () => (near ? setNear(null) : pointing()));
  byId("clear-filters").addEventListener("click", clearFilters);
  showCount();
}

/** Offers the categories of places, most frequent first. */
export function offerCategories(places) {
  const counts = new Map();
  for (const { category } of places) {
    if (category) counts.set(category, (counts.get(category) ?? 0) + 1);
  }
  const sorted = [...counts].sort((one, other) => other[1] - one[1]);
  chooser.replaceChildren(
    new Option(sorted.length ? "any" : "none is known", ""),
    ...sorted.map(([name, count]) => new Option(`${name} (${count})`, name)),
  );
  chooser.disabled = sorted.length === 0;
}

/** The filters as fields of the API; an invalid field is left out. */
export function chosenFilters() {
  const filters = { k: howMany() };
  if (categories.length) filters.categories = categories;
  if (near) filters.near = near;
  if (within.value && within.validity.valid) filters.within_km = Number(within.value);
  if (excludeVisited.checked) filters.exclude_visited = true;
  if (newOnly.checked) filters.new_only = true;
  return filters;
}

/** Chooses the filters of a link, given as fields of the API. */
export function openFilters({ k: count = 10, categories: names = [], ...fields }) {
  k.value = String(count);
  within.value = fields.within_km ?? "";
  excludeVisited.checked = Boolean(fields.exclude_visited);
  newOnly.checked = Boolean(fields.new_only);
  [categories, near] = [names, fields.near ?? null];
  showCount();
}

/** Sets or clears the point from which distances are measured. */
export function setNear(spot) {
  near = spot;
  if (near && !within.value) within.value = "2";
  onChange();
}

/** The number of requested places. */
export function howMany() {
  return k.value && k.validity.valid ? Number(k.value) : 10;
}

function chooseCategory(name) {
  if (name && !categories.includes(name)) categories = [...categories, name];
  chooser.value = "";
  onChange();
}

/** Whether anything but the number of places is filtered. */
export function isFiltered() {
  return Object.keys(chosenFilters()).length > 1;
}

/** Removes all filters. */
export function clearFilters() {
  k.value = "10";
  within.value = "";
  excludeVisited.checked = newOnly.checked = false;
  [categories, near] = [[], null];
  onChange();
}

function showCount() {
  const { k: count, near: _, ...others } = chosenFilters();
  const active = Object.keys(others).length + (count === 10 ? 0 : 1);
  byId("filter-count").textContent = active || "";
  byId("near-text").textContent = near ? "of the point you chose" : "of the last visit";
  byId("near").textContent = near ? "Clear the point" : "Choose a point";
  const chips = byId("categories");
  chips.hidden = categories.length === 0;
  chips.replaceChildren(...categories.map((name) => element("li", {}, chip(name))));
}

function chip(name) {
  const button = element("button", {
    type: "button",
    textContent: `${name} ×`,
    "aria-label": `No longer only ${name}`,
  });
  button.addEventListener("click", () => {
    categories = categories.filter((each) => each !== name);
    onChange();
  });
  return button;
}
