// A list that is kept beside the current one: another person, moment, model or filter.

import { byId, element } from "./dom.js";
import { percent, titleOf } from "./words.js";

let kept = null; // {title, recommendations}

/** The recommendations of the kept list; empty if none is kept. */
export const keptPlaces = () => kept?.recommendations ?? [];

/** Keeps a list under its title; null ends the comparison. */
export function keep(list) {
  kept = list;
  document.body.classList.toggle("comparing", kept !== null);
  byId("compare").setAttribute("aria-pressed", String(kept !== null));
  byId("compare").textContent = kept ? "End comparison" : "Compare";
  byId("kept").hidden = kept === null;
  byId("kept-title").textContent = kept?.title ?? "";
}

/** Shows the kept list, with the rank of each place in the current one. */
export function showKept(recommendations, onChoose) {
  const ranks = ranksOf(recommendations);
  const rows = keptPlaces().map((each, index) => {
    const rank = ranks.get(each.place);
    const button = element(
      "button",
      { type: "button", className: "kept-row plain" },
      element("span", { className: "rank", textContent: index + 1 }),
      element("span", { className: "title", textContent: titleOf(each) }),
      element("span", { className: "probability", textContent: percent(each.probability) }),
      element("span", { className: "detail", textContent: otherRank(rank, index + 1) }),
    );
    button.addEventListener("click", () => onChoose(each));
    return element("li", {}, button);
  });
  byId("kept-ranking").replaceChildren(...rows);
}

/** How many places two lists share, in a sentence. */
export function overlapWords(recommendations) {
  const ranks = ranksOf(recommendations);
  const shared = keptPlaces().filter((each) => ranks.has(each.place)).length;
  return `${shared} of ${keptPlaces().length} places are in both lists.`;
}

/** The rank of every place of a list. */
export function ranksOf(recommendations) {
  return new Map(recommendations.map((each, index) => [each.place, index + 1]));
}

function otherRank(rank, here) {
  if (rank === undefined) return "not in the other list";
  return rank === here ? "the same in the other list" : `no. ${rank} in the other list`;
}
