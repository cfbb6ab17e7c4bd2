// The list of recommendations next to the map; one can be open, with its explanation.

import { byId, element } from "./dom.js";
import { kilometres, percent, titleOf } from "./words.js";

const list = byId("ranking");

/** Shows recommendations; `before` gives the rank a place had in the last answer, if that matters. */
export function showRanking(recommendations, { before = null, onChoose }) {
  list.replaceChildren(
    ...recommendations.map((each, index) => {
      const button = rowButton(each, index + 1, before);
      button.addEventListener("click", () => onChoose(each.place));
      const row = element("li", {}, button);
      row.dataset.place = each.place;
      return row;
    }),
  );
  reachable(0);
}

/** Shows that an answer is on its way. */
export function showWaiting(count) {
  if (list.children.length) return; // the former answer stays until the new one is there
  const rows = Array.from({ length: Math.min(count, 8) }, () =>
    element("li", { className: "waiting", "aria-hidden": "true" }),
  );
  list.replaceChildren(...rows);
}

/** Opens the row of a place with its explanation, and closes the others. */
export function openRow(place, explanation = null) {
  for (const row of list.children) {
    const isChosen = row.dataset.place === place;
    row.classList.toggle("chosen", isChosen);
    row.querySelector(".explanation")?.remove();
    row.firstChild?.setAttribute?.("aria-expanded", String(isChosen));
    if (!isChosen) continue;
    if (explanation) row.append(explanation);
    row.scrollIntoView({ block: "nearest", behavior: "smooth" });
    reachable([...list.children].indexOf(row));
  }
}

list.addEventListener("keydown", (event) => {
  const buttons = [...list.querySelectorAll(".row-button")];
  const here = buttons.indexOf(event.target);
  const next = { ArrowDown: here + 1, ArrowUp: here - 1, Home: 0, End: buttons.length - 1 }[event.key];
  if (here < 0 || next === undefined || !buttons[next]) return;
  event.preventDefault();
  reachable(next);
  buttons[next].focus();
});

// Tab stops at one row of the list; the arrow keys move from there.
function reachable(index) {
  list.querySelectorAll(".row-button").forEach((button, place) => {
    button.tabIndex = place === index ? 0 : -1;
  });
}

function rowButton(recommendation, rank, before) {
  const filled = element("i");
  filled.style.width = `${100 * recommendation.probability}%`; // the whole bar is 100 %
  return element(
    "button",
    { type: "button", className: "row-button", "aria-expanded": "false" },
    element("span", { className: "rank", textContent: rank }),
    element("span", { className: "title", textContent: titleOf(recommendation) }),
    detail(recommendation, moved(recommendation.place, rank, before)),
    element("span", { className: "probability", textContent: percent(recommendation.probability) }),
    element("span", { className: "bar", "aria-hidden": "true" }, filled),
  );
}

function detail(recommendation, change) {
  const { distance_km: distance, visited } = recommendation;
  const known = [
    recommendation.name ? recommendation.category : "",
    distance === null ? "" : `${kilometres(distance)} away`,
    visited ? "been there" : "new",
  ];
  const line = element("span", { className: "detail" });
  if (change) line.append(element("span", { className: "moved", textContent: change }), " · ");
  line.append(known.filter(Boolean).join(" · "));
  return line;
}

function moved(place, rank, before) {
  if (!before) return "";
  const former = before.get(place);
  if (former === undefined) return "new in list";
  if (former === rank) return "";
  return former > rank ? `▲ ${former - rank}` : `▼ ${rank - former}`;
}
