// Why a place is recommended, or why not: its rank, and its terms beside those of the list.

import { sentenceFor, termLabel } from "./explanation.js";
import { element } from "./dom.js";
import { explain, recommend } from "./service.js";
import { grouped, percent, sentenceCase, signed, titleOf } from "./words.js";

const MAX_RANKED = 100; // as many places as the service ranks at once

/**
 * The answer to “why (not) here?” as an element. `request` has the person, the moment and the
 * filters; `answer` is the list that is shown.
 */
export async function whyHere(place, { request, answer, meanings, isOwn }) {
  const rivals = rivalsOf(place, answer.recommendations);
  const candidates = [place.place, ...rivals.map((rival) => rival.each.place)];
  let found;
  try {
    found = await explain({ ...request, k: candidates.length, candidates });
  } catch (problem) {
    if (problem.status !== 422) throw problem;
    return element("p", { textContent: `It cannot be in this list: ${problem.message}` });
  }
  const byId = new Map(found.recommendations.map((each) => [each.place, each]));
  const own = byId.get(place.place);
  if (!own) {
    const why = found.remarks.at(-1) ?? "the filters leave it out";
    return element("p", { textContent: `It cannot be in this list. ${sentenceCase(why)}.` });
  }
  const rank = own.rank ?? (await rankOf(place, request, answer));
  const known = rivals.filter(({ each }) => byId.has(each.place));
  const shown = known.map(({ each, rank: at }) => ({ ...byId.get(each.place), rank: at }));
  return element(
    "div",
    {},
    element("p", {}, element("strong", { textContent: rankWords(rank) }), ` · ${percent(own.probability)}`),
    element("p", { className: "sentence", textContent: sentenceFor(own, isOwn) }),
    own.terms && shown.length ? element("p", { textContent: gapWords(own, shown[0]) }) : null,
    own.terms ? termTable(own, shown, meanings) : null,
  );
}

// The first and the last place of the list, with their ranks.
function rivalsOf(place, recommendations) {
  const ranked = recommendations.map((each, index) => ({ each, rank: index + 1 }));
  const ends = [...new Set([ranked.at(0), ranked.at(-1)])].filter(Boolean);
  return ends.filter(({ each }) => each.place !== place.place);
}

// Of a model that does not score all places exactly only the best have a rank.
async function rankOf(place, request, { recommendations }) {
  const isIt = (each) => each.place === place.place;
  const listed = recommendations.findIndex(isIt);
  if (listed >= 0) return listed + 1;
  const more = await recommend({ ...request, k: MAX_RANKED });
  return more.recommendations.findIndex(isIt) + 1;
}

const rankWords = (rank) => (rank ? `No. ${grouped(rank)}` : `Not among the first ${MAX_RANKED}`);

// What separates the place from the first of the list, by its largest term.
function gapWords(own, first) {
  const gaps = Object.keys(own.terms).map((name) => [name, own.terms[name] - first.terms[name]]);
  const isAhead = own.score >= first.score;
  gaps.sort((one, other) => (isAhead ? other[1] - one[1] : one[1] - other[1]));
  const [name, gap] = gaps[0];
  const whole = signed(own.score - first.score);
  const subject = `Its score differs by ${whole} from no. ${first.rank}, ${titleOf(first)}`;
  return `${subject}; the largest part is ${name} (${signed(gap)}).`;
}

function termTable(own, rivals, meanings) {
  const columns = [own, ...rivals];
  const names = Object.keys(own.terms).filter((name) =>
    columns.some((each) => signed(each.terms[name]) !== "0.00"),
  );
  const titles = ["Here", ...rivals.map(({ rank }) => `No. ${rank}`)];
  const head = titles.map((title) => element("th", { scope: "col", textContent: title }));
  const row = (label, values) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, ...label),
      ...values.map((value) => element("td", { textContent: signed(value) })),
    );
  return element(
    "table",
    { className: "beside" },
    element("thead", {}, element("tr", {}, element("th", { scope: "col", textContent: "Term" }), ...head)),
    element(
      "tbody",
      {},
      ...names.map((name) => row(termLabel(name, meanings[name] ?? ""), columns.map((each) => each.terms[name]))),
      row(["= Score"], columns.map((each) => each.score)),
    ),
  );
}
