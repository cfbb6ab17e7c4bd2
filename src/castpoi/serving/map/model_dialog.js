// The model card as a dialog: what the model is, what it was trained on, how good it is.

import { byId, element } from "./dom.js";
import { counted, percent } from "./words.js";

/** The name of a city, by its folder. */
export const cityName = ({ city }) => city ?? "";

/** A time zone in words: New York. */
export const zoneName = (zone) => zone.split("/").at(-1).replaceAll("_", " ");

/** Opens the dialog about a card. */
export function showModel(card) {
  const test = card.metrics ?? {};
  const rates = ["HR@1", "HR@5", "HR@10", "MRR"].filter((name) => test[name] != null);
  const facts = [
    ["Model", card.model],
    ["City", `${cityName(card)}, ${counted(card.places, "place")}, time zone ${card.zone}`.replace(/^, /, "")],
    ["Trained", card.trained_utc ? card.trained_utc.slice(0, 10) : "unknown"],
    ["Time of the request", card.known_time ? "changes the order of places" : "does not change the order of places"],
    ["Private places", `${counted(card.private_places, "place")}, shown only to people who have been there`],
    ["Test", rates.map((name) => `${name} ${percent(test[name])}`).join(", ") || "no result next to the run"],
    ["Split", card.fingerprint.slice(0, 12)],
    ...Object.entries(card.terms).map(([name, meaning]) => [`Term: ${name}`, meaning]),
  ];
  byId("model-facts").replaceChildren(
    ...facts.flatMap(([name, text]) => [
      element("dt", { textContent: name }),
      element("dd", { textContent: text }),
    ]),
  );
  byId("model-dialog").showModal();
}
