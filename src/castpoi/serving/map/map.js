// The page: a past is chosen, the model is asked, the answer is shown on the map and beside it.

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
import { reasonsFor, shareWords } from "./reasons.js";
import { explain, findPlaces, modelCard, recommend, useKey } from "./service.js";
import { boxToAsk } from "./shapes.js";
import { setSheet, startSheet } from "./sheet.js";
import { followTheme, isDark } from "./theme.js";
import { counted } from "./words.js";

const MOST_PLACES = 20_000; // as many as the service lists at once
const SETTLE_MS = 250;
const VISITS_IN_VIEW = 8;
const LIKELIEST_IN_VIEW = 6; // the others may be far away

const places = new Map(); // by id: all that were ever listed
let atlas = new NoAtlas();
let past = null;
let answer = null; // the last one of the service
let chosen = null; // id of the recommendation that is open
let isPointing = false; // whether the next click on the map sets the point of the filter
let underWay = new AbortController();

async function start() {
  past = new Past({
    onChange: pastChanged,
    onShown: () => atlas.showTrajectory(past.drawn),
    onProblem: tellProblem,
  });
  startFilters({ changed: ask, pointing: () => point(true) });
  startSheet();
  startKeys();
  begin();
  atlas = await openAtlas(byId("map"), {
    tiles: tilesWanted(),
    isDark: isDark(),
    panel: byId("panel"),
  }).catch(withoutMap);
  globalThis.castpoi = { atlas }; // for the console
  atlas.onClick(clicked);
  followTheme(() => {
    atlas.paint(isDark());
    showLegend();
  });
  await readCity();
}

/** Reads the model's card and the places; asks for a key where one is needed. */
async function readCity() {
  try {
    const [card, listed] = await Promise.all([modelCard(), findPlaces({ limit: MOST_PLACES })]);
    byId("card").textContent = `${counted(card.places, "place")} · ${card.model}`;
    takePlaces(listed);
    if (listed.length < card.places) atlas.onRest(calmly(readBox, SETTLE_MS));
    atlas.fit(listed, { leftOut: 0.02, calmly: false });
    showLegend();
  } catch (problem) {
    byId("card").textContent = "The city could not be read.";
    tellProblem(problem, readCity);
  }
}

/** A city too large to list at once is read where the map rests. */
async function readBox(seen) {
  const box = boxToAsk(seen);
  await findPlaces({ box, limit: MOST_PLACES }).then(takePlaces, ({ message }) => toast(message));
}

function takePlaces(listed) {
  for (const place of listed) places.set(place.place, place);
  atlas.showPlaces([...places.values()]);
  offerCategories(places.values());
}

function pastChanged(why) {
  const before = why === "visit" && answer ? ranksOf(answer) : null;
  answer = null;
  choose(null);
  atlas.showTrajectory(past.drawn);
  ask({ before, why });
}

/** Asks where next; a newer question overtakes an older one. */
async function ask({ before = null, why = "filters" } = {}) {
  underWay.abort();
  underWay = new AbortController();
  const { signal } = underWay;
  if (past.question === null) {
    clear();
    return;
  }
  const filters = chosenFilters();
  showReach(filters);
  busy(true);
  showWaiting(howMany());
  try {
    answer = await recommend({ ...past.question, ...filters }, signal);
    busy(false);
    show(before, why);
  } catch (problem) {
    if (problem.name === "AbortError") return;
    busy(false);
    clear();
    tellProblem(problem, () => ask({ before, why }));
  }
}

function show(before, why) {
  const found = answer.recommendations;
  choose(null);
  if (past.mode === "history" && !past.history.length) begin();
  else showRemarks(answer.remarks ?? []);
  showRanking(found, { before, onChoose: (place) => choose(place === chosen ? null : place) });
  atlas.showPins(found, (place) => choose(place));
  byId("footnote").textContent = `The chances are among all places of the city. ${answer.model}.`;
  const visits = located(past.all.slice(-VISITS_IN_VIEW));
  if (why === "chosen" || (why === "visit" && !visits.slice(-1).every((last) => atlas.sees(last)))) {
    atlas.fit([...found.slice(0, LIKELIEST_IN_VIEW), ...visits]);
  }
  if (why === "chosen" && PHONE.matches) byId("answers").scrollIntoView({ behavior: "smooth" });
  if (before) toast(changeSince(before));
}

/** Opens a recommendation with its reasons; null closes the open one. */
async function choose(place) {
  chosen = place;
  openRow(place);
  atlas.showReasons(null, []);
  if (place === null) return;
  const picked = answer.recommendations.find((each) => each.place === place);
  atlas.showReasons(picked, []);
  const { k: _, ...filters } = chosenFilters();
  const question = { ...past.question, ...filters, k: 1, candidates: [place] };
  try {
    const { recommendations, visits_by: visitsBy } = await explain(question, underWay.signal);
    if (chosen !== place) return;
    const [told] = recommendations;
    openRow(place, reasonsFor(told, places, visitsBy));
    const witnesses = located(told.visits ?? []);
    atlas.showReasons(told, witnesses, shareWords(visitsBy));
    const around = witnesses.length ? witnesses : located(past.all.slice(-1));
    atlas.fit([told, ...around], { closest: 14.5 });
  } catch (problem) {
    if (problem.name !== "AbortError") tellProblem(problem, () => choose(place));
  }
}

function clicked({ place, lat, lon }) {
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
  byId("key-button").addEventListener("click", () => askForKey(readCity));
}

/** Tells a problem in the panel with a way out; a missing key is asked for. */
function tellProblem(problem, retry) {
  showProblem(problem.message, wayOut(problem, retry));
  if (problem.wantsKey) askForKey(retry);
}

function wayOut({ status }, retry) {
  if (status === 422 && isFiltered()) return { text: "Clear the filters", act: clearFilters };
  const isFinal = status === undefined || status === 422; // asking again gives the same answer
  return isFinal || !retry ? null : { text: "Try again", act: retry };
}

function askForKey(retry) {
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

function withoutMap(problem) {
  console.warn(problem);
  hint(
    "This browser cannot draw the map: it offers no WebGL 2. The list and the reasons work without it.",
    { isBlank: true },
  );
  return new NoAtlas();
}

function clear() {
  answer = null;
  showRanking([], { onChoose: () => {} });
  atlas.showPins([], () => {});
  atlas.showReasons(null, []);
  byId("footnote").textContent = "";
  begin();
}

function begin() {
  invite(past.mode, past.mode === "user" ? () => past.chooseAnybody() : null);
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

/** Visits with the coordinates of their places; those nowhere on the map are left out. */
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

function tilesWanted() {
  return document.querySelector('meta[name="castpoi-tiles"]').content || null;
}

start();
