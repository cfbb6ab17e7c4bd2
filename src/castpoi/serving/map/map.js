// The page: choose visits, a moment and a place, show recommendations on the map and in the list.

import { NoAtlas, openAtlas, OUTLIERS, PHONE } from "./atlas.js";
import { keep, keptPlaces, overlapWords, ranksOf, showKept } from "./comparison.js";
import { byId, calmly, painted } from "./dom.js";
import { byPlace, explanationOf, shareWords } from "./explanation.js";
import {
  chosenFilters,
  howMany,
  offerCategories,
  openFilters,
  setNear,
  startFilters,
} from "./filters.js";
import { hiddenFamilies, showLegend } from "./legend.js";
import { cityName, showModel, zoneName } from "./model_dialog.js";
import { chosenMoment, momentInLink, momentWords, offerMoments, openMoment, startMoment } from "./moment.js";
import { hint, invite, showRemarks, toast } from "./notice.js";
import { Past } from "./past.js";
import { closePlace, openPlace, openPlaceId, refreshPlace, startPlaceCard } from "./place_card.js";
import { openRow, showRanking, showWaiting } from "./ranking.js";
import { explain, findPlaces, landAround, modelCard, openCityPage, recommend } from "./service.js";
import { visibleBox } from "./shapes.js";
import { drawSketch, removeSketch, sketched } from "./sketch.js";
import { startShare } from "./share_menu.js";
import { viewOfAddress } from "./share.js";
import { setSheet, startSheet } from "./sheet.js";
import { followTheme, isDark } from "./theme.js";
import { chosenRun, meaningsOf, offerRuns, openRun, runWords, startRuns } from "./runs.js";
import { reportProblem, startTrouble } from "./trouble.js";
import { counted } from "./words.js";
import { whyHere } from "./why_here.js";

const MAX_PLACES = 20_000; // as many as the service lists at once
const FIRST_PLACES = 2_000; // drawn before the others, for an early first picture
const SETTLE_MS = 250;
const VISITS_IN_VIEW = 8;
const BEST_IN_VIEW = 6; // the others may be far away

const places = new Map(); // by id: all places listed so far
let atlas = new NoAtlas();
let isOpened = false; // whether the map is ready, or known to be missing
let ground = null; // the outline of land and sea
let past = null;
let card = null; // the model card
let answer = null; // the latest answer of the service
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
  startMoment({ changed: () => update({ why: "moment" }), suggest: () => past.nextTime() });
  startRuns((chosenCard) => {
    offerMoments(chosenCard ?? card);
    update({ why: "run" });
  });
  startPlaceCard({
    past,
    explain: whyPlace,
    found: showPlace,
    closed: () => atlas.mark(null),
    onProblem: reportProblem,
  });
  startShare({ view: currentView, list: () => answer?.recommendations ?? [], picture: () => atlas.picture() });
  startSheet();
  startTrouble({ readCity, begin });
  startButtons();
  begin();
  followTheme(() => {
    atlas.paint(isDark());
    paintLegend();
    sketchCity();
  });
  const reading = readCity();
  await Promise.race([sketched, reading]);
  await painted(); // to start the map blocks the page
  atlas = await openAtlas(byId("map"), {
    tiles: tilesUrl(),
    isDark: isDark(),
    panel: byId("panel"),
  }).catch(continueWithoutMap);
  globalThis.castpoi = { atlas }; // for the console
  atlas.onClick(onMapClick);
  isOpened = true;
  drawCity();
  await reading;
  await openView(viewOfAddress());
}

/** Reads the model card and the places; opens the dialog for a key if one is needed. */
async function readCity() {
  try {
    const outline = tilesUrl() ? null : landAround().catch(() => null); // an extra
    const [read, first] = await Promise.all([modelCard(), findPlaces({ limit: FIRST_PLACES })]);
    card = read;
    byId("city-name").textContent = cityName(card);
    document.title = `Where next in ${cityName(card) || "the city"}? · castpoi`;
    byId("card").textContent = `${counted(card.places, "place")} · time of ${zoneName(card.zone)} · ${card.method}`;
    offerMoments(card);
    addPlaces(first);
    drawCity();
    sketchCity();
    outline?.then(showGround);
    await offerRuns(card);
    if (first.length < FIRST_PLACES) return;
    addPlaces(await findPlaces({ limit: MAX_PLACES }));
  } catch (problem) {
    byId("card").textContent = "The city could not be read.";
    reportProblem(problem, readCity);
  }
}

// The map and the city are read at the same time: whichever is later draws the places.
function drawCity() {
  if (!places.size || !card || !isOpened) return;
  atlas.showPlaces([...places.values()]);
  if (ground) atlas.showGround(ground);
  atlas.fit([...places.values()], { leftOut: OUTLIERS, calmly: false });
  atlas.onDrawn(removeSketch);
  if (card.places - card.private_places > MAX_PLACES) atlas.onRest(calmly(readBox, SETTLE_MS));
  paintLegend();
}

function showGround(shapes) {
  ground = shapes;
  if (ground) atlas.showGround(ground);
  sketchCity();
}

function sketchCity() {
  if (places.size && !isOpened) drawSketch([...places.values()], ground, isDark());
}

/** Reads the places of the visible area, in a city too large to list at once. */
async function readBox(seen) {
  const box = visibleBox(seen);
  await findPlaces({ box, limit: MAX_PLACES }).then(addPlaces, ({ message }) => toast(message));
}

function addPlaces(listed) {
  const before = places.size;
  for (const place of listed) places.set(place.place, place);
  if (places.size === before) return;
  atlas.showPlaces([...places.values()]);
  offerCategories(places.values());
}

function paintLegend() {
  showLegend(places.values(), isDark(), () => atlas.hideFamilies(hiddenFamilies()));
}

function pastChanged(why) {
  const had = answer?.recommendations.length && past.all.length > 1; // not the list of an empty history
  const before = why === "visit" && had ? ranksOf(answer.recommendations) : null;
  answer = null;
  choose(null);
  atlas.showTrajectory(past.drawn);
  update({ before, why });
}

// The person or history with moment and filters; null while nobody is chosen.
function currentRequest() {
  return past.request && { ...past.request, ...chosenRun(), ...chosenMoment(), ...chosenFilters() };
}

/** Requests recommendations; a newer request cancels an older one. */
async function update({ before = null, why = "filters" } = {}) {
  pending.abort();
  pending = new AbortController();
  const { signal } = pending;
  const request = currentRequest();
  if (request === null) {
    clear();
    return;
  }
  showReach(request);
  busy(true);
  showWaiting(howMany());
  try {
    answer = await recommend(request, signal);
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
  const isEmpty = past.mode === "history" && !past.history.length;
  if (isEmpty) begin();
  else showRemarks(answer.remarks ?? []);
  byId("heading").hidden = false;
  byId("who").textContent = title();
  showRanking(found, { before, onChoose: (place) => choose(place === chosen ? null : place) });
  showKept(found, showPlace);
  atlas.showPins(found, (place) => choose(place));
  atlas.showKept(keptPlaces());
  byId("footnote").textContent = `${footnote()} ${answer.model}.`;
  const visits = located(past.all.slice(-VISITS_IN_VIEW));
  if (why === "chosen" || (why === "visit" && !visits.slice(-1).every((last) => atlas.sees(last)))) {
    atlas.fit([...found.slice(0, BEST_IN_VIEW), ...keptPlaces().slice(0, BEST_IN_VIEW), ...visits]);
  }
  if (why === "chosen" && PHONE.matches) byId("answers").scrollIntoView({ behavior: "smooth" });
  if (before) toast(changeSince(before));
  refreshPlace();
}

// About whom and when the list is.
function title() {
  const whom = past.mode === "user" ? past.user : "your history";
  const isEmpty = past.mode === "history" && !past.history.length;
  return isEmpty ? "Popular places" : `${whom}, ${momentWords()}${runWords()}`;
}

function footnote() {
  const whole = "Probabilities are among all places of the city; a full bar is 100\u202f%.";
  return keptPlaces().length ? `${overlapWords(answer.recommendations)} ${whole}` : whole;
}

/** Opens a recommendation with its explanation; null closes the open one. */
async function choose(place) {
  chosen = place;
  openRow(place);
  atlas.showExplanation(null, []);
  if (place === null) return;
  const picked = answer.recommendations.find((each) => each.place === place);
  atlas.showExplanation(picked, []);
  const request = { ...currentRequest(), k: 1, candidates: [place] };
  try {
    const { recommendations, visits_by: visitsBy } = await explain(request, pending.signal);
    if (chosen !== place) return;
    const [explained] = recommendations;
    const [all, isOwn] = [past.all, past.mode === "history"];
    const meanings = meaningsOf(card);
    openRow(place, explanationOf(explained, { meanings, visitsBy, all, isOwn }));
    const groups = located(byPlace(explained.visits ?? []));
    const elsewhere = groups.filter((group) => group.place !== place);
    atlas.showExplanation(explained, groups, shareWords(visitsBy));
    const around = elsewhere.length ? elsewhere : located(past.all.slice(-VISITS_IN_VIEW));
    atlas.fit([explained, ...around], { closest: 14.5 });
  } catch (problem) {
    if (problem.name !== "AbortError") reportProblem(problem, () => choose(place));
  }
}

/** Shows a place that was found by name or in the other list, and why (not) there. */
function showPlace(place) {
  choose(null);
  openPlace(place);
  atlas.mark(place);
  if (!atlas.sees(place)) atlas.fit([place, ...located(past.all.slice(-1))], { closest: 14.5 });
}

async function whyPlace(place) {
  const request = currentRequest();
  if (request === null || answer === null) return "Choose a person to see why (not) here.";
  const isOwn = past.mode === "history";
  return whyHere(place, { request, answer, meanings: meaningsOf(card), isOwn });
}

function onMapClick({ place, lat, lon }) {
  if (isPointing) {
    point(false);
    setNear({ lat, lon });
    return;
  }
  if (place === null) return;
  if (past.mode === "history") addToHistory(places.get(place));
  else showPlace(places.get(place));
}

async function addToHistory(place) {
  try {
    await past.add(place, await past.nextTime());
  } catch (problem) {
    reportProblem(problem, null);
  }
}

function point(isOn) {
  isPointing = isOn;
  byId("near").setAttribute("aria-pressed", String(isOn));
  hint(isOn ? "Click where distances should be counted from. Escape stops." : null);
  setSheet(isOn ? "low" : "half");
}

function startButtons() {
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || document.querySelector("dialog[open]")) return;
    if (isPointing) point(false);
    else if (!closePlace() && chosen !== null) choose(null);
  });
  byId("city-link").addEventListener("click", () => openCityPage().catch(({ message }) => toast(message)));
  byId("model-link").addEventListener("click", () => card && showModel(card));
  byId("compare").addEventListener("click", () => {
    const { recommendations } = answer;
    keep(keptPlaces().length ? null : { title: title(), recommendations });
    show(null, "compare");
    if (keptPlaces().length) toast("Kept. Now choose another person, moment or filter.");
  });
}

// The view as parameters of a link; the person or history only if asked.
function currentView({ withIds }) {
  const { k, ...others } = chosenFilters();
  const filters = k === 10 ? others : { k, ...others };
  return {
    centre: atlas.centre(),
    when: momentInLink(),
    run: chosenRun().run,
    filters: Object.keys(filters).length ? filters : null,
    place: openPlaceId(),
    user: withIds && past.mode === "user" ? past.user : null,
    history: withIds && past.mode === "history" ? past.history.map(({ place, at }) => ({ place, at })) : null,
  };
}

/** Opens the view of a link. */
async function openView(view) {
  if (view === null) return;
  openFilters(view.filters ?? {});
  openRun(view.run);
  openMoment(view.when);
  if (view.history) {
    past.open(view.history.map((visit) => ({ ...places.get(visit.place), ...visit })));
  } else if (view.user) await past.choose(view.user);
  if (places.has(view.place)) openPlace(places.get(view.place));
  if (view.centre) atlas.goTo(view.centre);
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
  byId("heading").hidden = true;
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

/** Visits with the coordinates of their places; those of places without coordinates are left out. */
function located(visits) {
  // private places are not among the places of the city, but among the person's own visits
  const own = new Map(past.all.map((visit) => [visit.place, visit]));
  const spotOf = ({ place }) => {
    const { lat, lon } = own.get(place) ?? places.get(place) ?? {};
    return { lat, lon };
  };
  return visits.map((visit) => ({ ...spotOf(visit), ...visit })).filter(({ lat }) => lat != null);
}

function changeSince(before) {
  const ranks = [...ranksOf(answer.recommendations)];
  const moved = ranks.filter(([place, rank]) => before.get(place) !== rank).length;
  if (!moved) return "The list stays as it was.";
  return `${moved} of ${counted(ranks.length, "place")} changed their rank or are new.`;
}

function busy(isBusy) {
  byId("progress").hidden = !isBusy;
  byId("answers").setAttribute("aria-busy", String(isBusy));
}

function tilesUrl() {
  return document.querySelector('meta[name="castpoi-tiles"]').content || null;
}

start();
