// The moment of a request: the last visit, now, or a day and an hour in the city.

import { byId } from "./dom.js";
import { clock } from "./words.js";

const LATEST = { value: "", title: "Right after the last visit" };
const NOW = { value: "now", title: "Now" };
const NOW_BY_DEFAULT = { value: "", title: "Now, or at the last visit if that is later" };
const CHOSEN = { value: "at", title: "At a day and an hour…" };
const chooser = byId("moment");
const field = byId("moment-at");

let zone = "UTC";
let usesTime = false;

/** Starts the fields; `changed` is called at every change, `suggest` returns a first local time. */
export function startMoment({ changed, suggest }) {
  chooser.addEventListener("change", async () => {
    if (chooser.value === "at" && !field.value) field.value = await suggest();
    show();
    changed();
  });
  field.addEventListener("change", () => field.value && changed());
}

/** Offers the moments that the model of a card can use. */
export function offerMoments({ zone: zoneOfCity, known_time: knownTime }) {
  [zone, usesTime] = [zoneOfCity, knownTime];
  const chosen = chooser.value;
  const moments = usesTime ? [NOW_BY_DEFAULT, CHOSEN] : [LATEST, NOW, CHOSEN];
  chooser.replaceChildren(...moments.map(({ title, value }) => new Option(title, value)));
  chooser.value = moments.some(({ value }) => value === chosen) ? chosen : "";
  byId("moment-zone").textContent = `Local time (${zone.split("/").at(-1).replaceAll("_", " ")})`;
  show();
}

/** The moment as fields of the API; empty for the default of the service. */
export function chosenMoment() {
  if (chooser.value === "now") return { at: new Date().toISOString() };
  if (chooser.value === "at" && field.value) return { at: instantOf(field.value, zone) };
  return {};
}

/** The moment as parameters of a link. */
export const momentInLink = () => (chooser.value === "at" ? field.value : chooser.value);

/** Chooses the moment of a link. */
export function openMoment(text) {
  chooser.value = ["", "now"].includes(text) ? text : "at";
  if (chooser.value === "at") field.value = text;
  show();
}

/** The moment in words, for the heading of a list. */
export function momentWords() {
  if (chooser.value === "at" && field.value) return clock(field.value);
  return usesTime || chooser.value === "now" ? "now" : "after the last visit";
}

/** A local time of a zone with its offset from UTC: 2012-04-03T18:00:00-04:00. */
export function instantOf(wall, name) {
  const asUtc = Date.parse(`${wall.slice(0, 16)}Z`);
  const guess = asUtc - offsetMs(asUtc, name);
  const minutes = Math.round(offsetMs(guess, name) / 60_000);
  const [hour, minute] = [Math.floor(Math.abs(minutes) / 60), Math.abs(minutes) % 60];
  const two = (number) => String(number).padStart(2, "0");
  return `${wall.slice(0, 16)}:00${minutes < 0 ? "-" : "+"}${two(hour)}:${two(minute)}`;
}

function offsetMs(instant, name) {
  const parts = new Intl.DateTimeFormat("en-GB", {
    timeZone: name,
    hourCycle: "h23",
    year: "numeric",
    month: "numeric",
    day: "numeric",
    hour: "numeric",
    minute: "numeric",
    second: "numeric",
  }).formatToParts(instant);
  const { year, month, day, hour, minute, second } = Object.fromEntries(
    parts.map(({ type, value }) => [type, Number(value)]),
  );
  return Date.UTC(year, month - 1, day, hour, minute, second) - instant;
}

function show() {
  byId("moment-row").hidden = chooser.value !== "at";
  const note = byId("moment-note");
  note.hidden = usesTime || chooser.value === "";
  note.textContent =
    "This model does not use the time of the request. The moment decides which visits count and " +
    "how long ago they were; the order of places depends on the visits alone. A model trained " +
    "with --known-time answers for the moment.";
}
