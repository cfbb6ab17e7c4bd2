// The run that answers, if the service has several.

import { byId } from "./dom.js";
import { modelCard } from "./service.js";

const chooser = byId("run");
let cards = new Map(); // by name of the run

/** Calls a function with the card of the chosen run, or null, when another one is chosen. */
export function startRuns(changed) {
  chooser.addEventListener("change", () => changed(cards.get(chooser.value) ?? null));
}

/** Offers the runs of a service. */
export async function offerRuns({ runs }) {
  const names = Object.keys(runs);
  byId("run-row").hidden = names.length < 2;
  if (names.length < 2) return;
  const read = await Promise.all(names.map((name) => modelCard(name)));
  cards = new Map(names.map((name, index) => [name, read[index]]));
  chooser.replaceChildren(
    new Option("By the share of each", ""),
    ...names.map((name) => new Option(`${name}: ${cards.get(name).method}`, name)),
  );
}

/** The run as a field of the API; empty if the service chooses. */
export const chosenRun = () => (chooser.value ? { run: chooser.value } : {});

/** The run in words, for the heading of a list. */
export const runWords = () => (chooser.value ? `, run ${chooser.value}` : "");

/** Chooses the run of a link. */
export function openRun(name) {
  chooser.value = cards.has(name) ? name : "";
}

/** The meanings of the terms of all runs, and of the card of the service. */
export const meaningsOf = (card) =>
  Object.assign({}, ...[...cards.values()].map(({ terms }) => terms), card.terms);
