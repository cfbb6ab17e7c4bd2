// Why a place is recommended: a sentence, the terms that sum to its score, and the visits.

import { element } from "./dom.js";
import { ago, clock, kilometres, percent, sentenceCase, signed, titleOf } from "./words.js";

// The heading and the unit of the weights of visits, by `visits_by` of the answer.
const WEIGHTS = {
  attention: { heading: "Visits with the most attention", share: "of the attention" },
  counterfactual: {
    heading: "Visits that matter most (share of the total effect)",
    share: "of the total effect",
  },
};

/** The unit of the weight of a visit: `of the attention`. */
export const shareWords = (visitsBy) => WEIGHTS[visitsBy]?.share ?? "";

/** The explanation of a recommendation; `places` has names by id, `meanings` those of the terms. */
export function explanationOf(recommendation, { places, meanings, visitsBy }) {
  const { sentence, terms, visits, score } = recommendation;
  const parts = [element("p", { className: "sentence", textContent: sentence })];
  if (terms) parts.push(heading("The terms of the score"), waterfall(terms, score, meanings));
  if (visits?.length) {
    parts.push(heading(WEIGHTS[visitsBy].heading), visitList(recommendation, places));
  }
  return element("div", { className: "explanation" }, ...parts);
}

const heading = (text) => element("h3", { textContent: text });

// Each bar begins where the previous one ends, so the last one ends at the score.
function waterfall(terms, score, meanings) {
  const steps = [];
  let reached = 0;
  for (const [name, value] of Object.entries(terms)) {
    steps.push({ title: sentenceCase(name), meaning: meanings[name] ?? "", from: reached, to: reached + value, value });
    reached += value;
  }
  const ends = [0, score, ...steps.flatMap(({ from, to }) => [from, to])];
  const [least, most] = [Math.min(...ends), Math.max(...ends)];
  const share = (value) => `${(100 * (value - least)) / (most - least || 1)}%`;
  const list = element("dl", { className: "terms" });
  for (const step of steps) {
    const label = element("dt", { textContent: step.title, title: step.meaning });
    list.append(label, track(step, share), element("dd", { textContent: signed(step.value) }));
  }
  list.append(
    element("dt", { className: "sum", textContent: "= Score" }),
    track({ from: 0, to: score }, share, "sum"),
    element("dd", { className: "sum", textContent: signed(score) }),
  );
  return list;
}

function track({ from, to }, share, kind = "") {
  const bar = element("i", { className: to < from ? "less" : "" });
  bar.style.left = share(Math.min(from, to));
  bar.style.right = `calc(100% - ${share(Math.max(from, to))})`;
  const zero = element("b");
  zero.style.left = share(0);
  return element("div", { className: `track ${kind}`, "aria-hidden": "true" }, bar, zero);
}

function visitList({ place: candidate, score, visits }, places) {
  const rows = visits.map((visit) => {
    const place = { ...places.get(visit.place), ...visit };
    const isSame = visit.place === candidate;
    const where = isSame ? "this very place" : `${kilometres(visit.distance_km)} from it`;
    const without = signed(visit.score_without);
    const change = signed(visit.score_without - score);
    return element(
      "li",
      {},
      element("span", { className: "weight", textContent: percent(visit.weight) }),
      element(
        "span",
        { textContent: titleOf(place) },
        element("small", { textContent: `${clock(visit.at)} · ${ago(visit.hours_ago)}` }),
        element("small", {
          textContent: `${where} · score without it ${without} (${change})`,
        }),
      ),
    );
  });
  return element("ol", { className: "contributions" }, ...rows);
}
