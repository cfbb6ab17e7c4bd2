// The page: choose visits, request recommendations, show them on the map and in the list.

import { NoAtlas, openAtlas, PHONE } from "./atlas.js";
import { byId, calmly, element } from "./dom.js";
import {
  chosenFilters,
  clearFilters,
  howMany,
  isFiltered,
  offerCategories,
  setNear,
  startFilters,
} from "./filters.js";
import { hint, invite, showProblem, showRemarks, toast } from "./notice.js";
import { FAMILIES, familyOf, paletteOf } from "./palette.js";
import { Past } from "./past.js";
import { openRow, showRanking, showWaiting } from "./ranking.js";
import { explanationOf, shareWords } from "./explanation.js";
import { explain, findPlaces, modelCard, recommend, useKey } from "./service.js";
import { visibleBox } from "./shapes.js";
import { setSheet, startSheet } from "./sheet.js";
import { followTheme, isDark } from "./theme.js";
import { counted } from "./words.js";

const MOST_PLACES = 20_000; // as many as the service lists at once
const SETTLE_MS = 250;
const VISITS_IN_VIEW = 8;
const BEST_IN_VIEW = 6; // the others may be far away

const places = new Map(); // by id: all places listed so far
let atlas = new NoAtlas();
let past = null;
let answer = null; // the latest answer of the service
let meanings = {}; // of the terms of a score, by name
let chosen = null; // id of the recommendation that is open
let isPointing = false; // whether the next click on the map sets the point of the filter
let pending = new AbortController();

async function start() {
  past = new Past({
    onChange: pastChanged,
    onShown: () => atlas.showTrajectory(past.drawn),
    onProblem: reportProblem,
  });
  startFilters({ changed: update, pointing: () => point(true) });
  startSheet();
  startKeys();
  begin();
  atlas = await openAtlas(byId("map"), {
    tiles: tilesUrl(),
    isDark: isDark(),
    panel: byId("panel"),
  }).catch(continueWithoutMap);
  globalThis.castpoi = { atlas }; // for the console
  atlas.onClick(onMapClick);
  followTheme(() => {
    atlas.paint(isDark());
    showLegend();
  });
  await readCity();
}

/** Reads the model card and the places; opens the dialog for a key if one is needed. */
async function readCity() {
  try {
    const [card, listed] = await Promise.all([modelCard(), findPlaces({ limit: MOST_PLACES })]);
    meanings = card.terms;
    byId("card").textContent = `${counted(card.places, "place")} · ${card.model}`;
    addPlaces(listed);
    if (listed.length < card.places) atlas.onRest(calmly(readBox, SETTLE_MS));
    atlas.fit(listed, { leftOut: 0.02, calmly: false });
    showLegend();
  } catch (problem) {
    byId("card").textContent = "The city could not be read.";
    reportProblem(problem, readCity);
  }
}

/** Reads the places of the visible area, in a city too large to list at once. */
async function readBox(seen) {
  const box = visibleBox(seen);
  await findPlaces({ box, limit: MOST_PLACES }).then(addPlaces, ({ message }) => toast(message));
}

function addPlaces(listed) {
  for (const place of listed) places.set(place.place, place);
  atlas.showPlaces([...places.values()]);
  offerCategories(places.values());
}

function pastChanged(why) {
  const before = why === "visit" && answer ? ranksOf(answer) : null;
  answer = null;
  choose(null);
  atlas.showTrajectory(past.drawn);
  update({ before, why });
}

/** Requests recommendations; a newer request cancels an older one. */
async function update({ before = null, why = "filters" } = {}) {
  pending.abort();
  pending = new AbortController();
  const { signal } = pending;
  if (past.request === null) {
    clear();
    return;
  }
  const filters = chosenFilters();
  showReach(filters);
  busy(true);
  showWaiting(howMany());
  try {
    answer = await recommend({ ...past.request, ...filters }, signal);
    busy(false);
    show(before, why);
  } catch (problem) {
    if (problem.name === "AbortError") return;
    busy(false);
    clear();
    reportProblem(problem, () => update({ before, why }));
  }
}

function show(before, why) {
  const found = answer.recommendations;
  choose(null);
  if (past.mode === "history" && !past.history.length) begin();
  else showRemarks(answer.remarks ?? []);
  showRanking(found, { before, onChoose: (place) => choose(place === chosen ? null : place) });
  atlas.showPins(found, (place) => choose(place));
  byId("footnote").textContent = `Probabilities are among all places of the city. ${answer.model}.`;
  const visits = located(past.all.slice(-VISITS_IN_VIEW));
  if (why === "chosen" || (why === "visit" && !visits.slice(-1).every((last) => atlas.sees(last)))) {
    atlas.fit([...found.slice(0, BEST_IN_VIEW), ...visits]);
  }
  if (why === "chosen" && PHONE.matches) byId("answers").scrollIntoView({ behavior: "smooth" });
  if (before) toast(changeSince(before));
}

/** Opens a recommendation with its explanation; null closes the open one. */
async function choose(place) {
  chosen = place;
  openRow(place);
  atlas.showExplanation(null, []);
  if (place === null) return;
  const picked = answer.recommendations.find((each) => each.place === place);
  atlas.showExplanation(picked, []);
  const { k: _, ...filters } = chosenFilters();
  const request = { ...past.request, ...filters, k: 1, candidates: [place] };
  try {
    const { recommendations, visits_by: visitsBy } = await explain(request, pending.signal);
    if (chosen !== place) return;
    const [explained] = recommendations;
    openRow(place, explanationOf(explained, { places, meanings, visitsBy }));
    const visits = located(explained.visits ?? []);
    atlas.showExplanation(explained, visits, shareWords(visitsBy));
    const around = visits.length ? visits : located(past.all.slice(-1));
    atlas.fit([explained, ...around], { closest: 14.5 });
  } catch (problem) {
    if (problem.name !== "AbortError") reportProblem(problem, () => choose(place));
  }
}

function onMapClick({ place, lat, lon }) {
  if (isPointing) {
    point(false);
    setNear({ lat, lon });
    return;
  }
  if (place !== null) past.pick(places.get(place));
}

function point(isOn) {
  isPointing = isOn;
  byId("near").setAttribute("aria-pressed", String(isOn));
  hint(isOn ? "Click where distances should be counted from. Escape stops." : null);
  setSheet(isOn ? "low" : "half");
}

function startKeys() {
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || byId("key-dialog").open) return;
    if (isPointing) point(false);
    else if (!past.closeForm() && chosen !== null) choose(null);
  });
  byId("key-button").addEventListener("click", () => requestKey(readCity));
}

/** Shows a problem in the panel and how to fix it; opens the dialog for a missing key. */
function reportProblem(problem, retry) {
  showProblem(problem.message, fixFor(problem, retry));
  if (problem.wantsKey) requestKey(retry);
}

function fixFor({ status }, retry) {
  if (status === 422 && isFiltered()) return { text: "Clear the filters", act: clearFilters };
  const isFinal = status === undefined || status === 422; // another request gives the same answer
  return isFinal || !retry ? null : { text: "Try again", act: retry };
}

function requestKey(retry) {
  const dialog = byId("key-dialog");
  byId("key-button").hidden = false;
  if (dialog.open) return;
  byId("key").value = "";
  dialog.returnValue = "";
  dialog.showModal();
  dialog.addEventListener(
    "close",
    () => {
      if (dialog.returnValue !== "open") return;
      useKey(byId("key").value);
      byId("key").value = "";
      begin();
      retry();
    },
    { once: true },
  );
}

function continueWithoutMap(problem) {
  console.warn(problem);
  hint(
    "This browser cannot draw the map: it offers no WebGL 2. The list and the explanations work without it.",
    { isBlank: true },
  );
  return new NoAtlas();
}

function clear() {
  answer = null;
  showRanking([], { onChoose: () => {} });
  atlas.showPins([], () => {});
  atlas.showExplanation(null, []);
  byId("footnote").textContent = "";
  begin();
}

function begin() {
  invite(past.mode, past.mode === "user" ? () => past.chooseRandom() : null);
}

function showReach({ near, within_km: km }) {
  const centre = near ?? (km ? located(past.all).at(-1) : null);
  atlas.showReach(centre ?? null, km ?? null);
}

function showLegend() {
  const families = new Set([...places.values()].map((place) => familyOf(place.category)));
  const { families: colours } = paletteOf(isDark());
  const entries = FAMILIES.flatMap(({ title }, family) => {
    if (!families.has(family)) return [];
    const entry = element("li", { textContent: title });
    entry.style.setProperty("--colour", colours[family]);
    return [entry];
  });
  byId("legend").replaceChildren(...entries);
  byId("legend").hidden = entries.length === 0;
}

/** Visits with the coordinates of their places; those of places without coordinates are left out. */
function located(visits) {
  return visits.map((visit) => ({ ...places.get(visit.place), ...visit })).filter(({ lat }) => lat != null);
}

function ranksOf({ recommendations }) {
  return new Map(recommendations.map((each, index) => [each.place, index + 1]));
}

function changeSince(before) {
  const ranks = [...ranksOf(answer)];
  const moved = ranks.filter(([place, rank]) => before.get(place) !== rank).length;
  if (!moved) return "The list stays as it was.";
  return `${moved} of ${counted(ranks.length, "place")} moved.`;
}

function busy(isBusy) {
  byId("progress").hidden = !isBusy;
  byId("answers").setAttribute("aria-busy", String(isBusy));
}

function tilesUrl() {
  return document.querySelector('meta[name="castpoi-tiles"]').content || null;
}

start();
