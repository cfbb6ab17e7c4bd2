// Why a place is recommended: a sentence, the terms that sum to its score, and the visits.

import { element } from "./dom.js";
import { ago, clock, kilometres, percent, signed, titleOf } from "./words.js";

const TERMS = [
  ["base", "Base", "What the latest visits say of this place"],
  ["popularity", "Popularity", "What the place is worth to anybody"],
  ["reader", "Reader", "What the place finds when it reads the history"],
  ["revisit", "Revisit", "What earlier visits to this very place count"],
  ["distance", "Distance", "What it counts to be near the places this person starts from"],
];

// What the weight of a visit is, by the service's word for it.
const WEIGHED = {
  attention: { heading: "The visits it looked at most", share: "of the attention" },
  counterfactual: {
    heading: "The visits it would miss most, by share of what the score would lose",
    share: "of what the score would lose",
  },
};

/** What a visit has a share of: `of the attention`. */
export const shareWords = (visitsBy) => WEIGHED[visitsBy]?.share ?? "";

/** The reasons for a recommendation as an element; `places` knows names and kinds by id. */
export function reasonsFor(recommendation, places, visitsBy) {
  const { sentence, terms, visits, score } = recommendation;
  const parts = [element("p", { className: "sentence", textContent: sentence })];
  if (terms) parts.push(heading("The score and what it is made of"), waterfall(terms, score));
  if (visits?.length) {
    parts.push(heading(WEIGHED[visitsBy].heading), witnesses(recommendation, places));
  }
  if (!terms && !visits) {
    parts.push(element("p", { textContent: "This method counts; its score has no terms to show." }));
  }
  return element("div", { className: "reasons" }, ...parts);
}

const heading = (text) => element("h3", { textContent: text });

// Every bar begins where the one before it ended, so the last ends at the score.
function waterfall(terms, score) {
  const steps = [];
  let reached = 0;
  for (const [name, title, meaning] of TERMS.filter(([name]) => name in terms)) {
    steps.push({ title, meaning, from: reached, to: reached + terms[name], value: terms[name] });
    reached += terms[name];
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

function witnesses({ place: candidate, score, visits }, places) {
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
  return element("ol", { className: "witnesses" }, ...rows);
}
