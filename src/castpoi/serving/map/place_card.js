// One place, found by name or clicked: why (not) there, and a form that adds a visit to it.

import { combobox } from "./combobox.js";
import { byId, element } from "./dom.js";
import { findPlaces } from "./service.js";
import { detailOf, titleOf } from "./words.js";

const card = byId("place-card");
const why = byId("why-here");
let place = null;
let asked = 0; // an answer about an earlier place is not shown

/** Starts the search and the form; `explain` returns an element about a place, or a promise. */
export function startPlaceCard({ past, explain, found, closed, onProblem }) {
  combobox(byId("place"), byId("place-options"), { find: findByName, choose: found });
  byId("place-close").addEventListener("click", () => closePlace());
  byId("visit").addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      await past.add(place, byId("visit-at").value);
      closePlace();
    } catch (problem) {
      onProblem(problem);
    }
  });
  Object.assign(actions, { past, explain, closed });
}

const actions = {};

/** Shows a place. */
export async function openPlace(chosen) {
  const turn = (asked += 1);
  place = chosen;
  byId("place").value = "";
  byId("place-title").textContent = titleOf(place);
  byId("place-detail").textContent = detailOf(place);
  byId("visit").hidden = !actions.past.isOpen;
  byId("visit-at").value = "";
  card.hidden = false;
  card.scrollIntoView({ block: "nearest" });
  refreshPlace();
  const at = await actions.past.nextTime();
  if (turn === asked) byId("visit-at").value = at;
}

/** Explains the open place again after another person, moment or filter was chosen. */
export async function refreshPlace() {
  if (place === null) return;
  const [turn, of] = [asked, place];
  byId("visit").hidden = !actions.past.isOpen;
  const answer = await Promise.resolve(actions.explain(of)).catch(({ name, message }) =>
    name === "AbortError" ? null : element("p", { textContent: message }),
  );
  if (turn === asked && of === place && answer) why.replaceChildren(answer);
}

/** Closes the place; returns whether one was open. */
export function closePlace() {
  const wasOpen = place !== null;
  asked += 1;
  place = null;
  card.hidden = true;
  why.replaceChildren();
  if (wasOpen) actions.closed();
  return wasOpen;
}

/** The id of the open place, or null. */
export const openPlaceId = () => place?.place ?? null;

async function findByName(text) {
  const places = await findPlaces({ text, limit: 30 });
  return places.map((each) => ({ title: titleOf(each), detail: detailOf(each), value: each }));
}
