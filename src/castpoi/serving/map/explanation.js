// Why a place is recommended: a sentence, the terms that sum to its score, and the visits.

import { element } from "./dom.js";
import { aboutThem, ago, clock, counted, kilometres, percent, sentenceCase, signed, titleOf } from "./words.js";

// The heading and the unit of the weights of visits, by `visits_by` of the answer.
const WEIGHTS = {
  attention: { heading: "Visits with the most attention", share: "of the attention" },
  counterfactual: {
    heading: "Visits that matter most (share of the total effect)",
    share: "of the total effect",
  },
};

const MIN_WEIGHT = 0.01;

/** The unit of the weight of a visit: `of the attention`. */
export const shareWords = (visitsBy) => WEIGHTS[visitsBy]?.share ?? "";

/** The sentence of a recommendation, about “you” only in a history of one's own. */
export const sentenceFor = ({ sentence }, isOwn) => (isOwn ? sentence : aboutThem(sentence));

/**
 * The explanation of a recommendation; `meanings` has those of the terms, `all` every visit of
 * the history.
 */
export function explanationOf(recommendation, { meanings, visitsBy, all, isOwn }) {
  const { terms, visits, score } = recommendation;
  const sentence = sentenceFor(recommendation, isOwn);
  const parts = [element("p", { className: "sentence", textContent: sentence })];
  if (terms) parts.push(heading("The terms of the score"), waterfall(terms, score, meanings));
  if (visits?.length) {
    parts.push(heading(WEIGHTS[visitsBy].heading), placeList(recommendation, all));
  }
  return element("div", { className: "explanation" }, ...parts);
}

/**
 * The visits of an explanation by place, highest weight first: {place, weight, visits}. Places of
 * less than a hundredth are left out, unless there is no other.
 */
export function byPlace(visits) {
  const groups = new Map();
  for (const visit of visits) {
    const group = groups.get(visit.place) ?? { ...visit, weight: 0, visits: [] };
    group.weight += visit.weight;
    group.visits = [...group.visits, visit].sort((one, other) => one.hours_ago - other.hours_ago);
    groups.set(visit.place, group);
  }
  const sorted = [...groups.values()].sort((one, other) => other.weight - one.weight);
  return sorted.filter(({ weight }, index) => index === 0 || weight >= MIN_WEIGHT);
}

const heading = (text) => element("h3", { textContent: text });

/** The name of a term as a button that shows its meaning below it. */
export function termLabel(name, meaning) {
  const label = element("button", {
    type: "button",
    className: "term plain",
    textContent: sentenceCase(name),
    title: meaning,
    "aria-expanded": "false",
  });
  const text = element("p", { className: "meaning", textContent: meaning, hidden: true });
  label.disabled = !meaning;
  label.addEventListener("click", () => {
    text.hidden = !text.hidden;
    label.setAttribute("aria-expanded", String(!text.hidden));
  });
  return [label, text];
}

// Each bar begins where the previous one ends, so the last one ends at the score. Terms that
// would be shown as 0.00 are left out.
function waterfall(terms, score, meanings) {
  const steps = [];
  let reached = 0;
  for (const [name, value] of Object.entries(terms)) {
    const step = { name, from: reached, to: reached + value, value };
    reached += value;
    if (signed(value) !== "0.00") steps.push(step);
  }
  const ends = [0, score, ...steps.flatMap(({ from, to }) => [from, to])];
  const [least, most] = [Math.min(...ends), Math.max(...ends)];
  const share = (value) => `${(100 * (value - least)) / (most - least || 1)}%`;
  const list = element("div", { className: "terms" });
  for (const step of steps) {
    const [label, meaning] = termLabel(step.name, meanings[step.name] ?? "");
    const value = element("span", { className: "value", textContent: signed(step.value) });
    list.append(label, track(step, share), value, meaning);
  }
  list.append(
    element("span", { className: "term sum", textContent: "= Score" }),
    track({ from: 0, to: score }, share, "sum"),
    element("span", { className: "value sum", textContent: signed(score) }),
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

function placeList(recommendation, all) {
  const rows = byPlace(recommendation.visits).map((group) => {
    const isHere = group.place === recommendation.place;
    const where = isHere ? "here" : `to ${titleOf(group)}`;
    const away = isHere ? "" : ` · ${kilometres(group.distance_km)} away`;
    return element(
      "li",
      {},
      element("span", { className: "weight", textContent: percent(group.weight) }),
      element(
        "div",
        {},
        element("strong", { textContent: `${visitsIn(group, all)} ${where}` }),
        element("small", { textContent: latestOf(group.visits) + away }),
        withoutEach(group.visits, recommendation.score),
      ),
    );
  });
  return element("ol", { className: "contributions" }, ...rows);
}

// `3 of 7 visits`: the service names only those that matter most.
function visitsIn({ place, visits }, all) {
  const known = Math.max(all.filter((visit) => visit.place === place).length, visits.length);
  const shown = visits.length < known ? `${visits.length} of ` : "";
  return `${shown}${counted(known, "visit")}`;
}

function latestOf([{ at, hours_ago: hours }, ...others]) {
  return `${others.length ? "The latest of them: " : ""}${clock(at)}, ${ago(hours)}`;
}

function withoutEach(visits, score) {
  const rows = visits.map((visit) => {
    const change = signed(visit.score_without - score);
    const text = `${clock(visit.at)}: ${signed(visit.score_without)} (${change})`;
    return element("li", { textContent: text });
  });
  return element(
    "details",
    {},
    element("summary", { textContent: visits.length > 1 ? "Score without each" : "Score without it" }),
    element("ul", {}, ...rows),
  );
}
