// The legend: the families of categories, each a button that hides its places.

import { byId, element } from "./dom.js";
import { FAMILIES, familyOf, paletteOf } from "./palette.js";

const OTHER = { title: "Other" };
const hidden = new Set();

/** The families that are hidden, by number. */
export const hiddenFamilies = () => [...hidden];

/** Shows the families that the places have; `changed` is called when one is hidden or shown. */
export function showLegend(places, isDark, changed) {
  const present = new Set([...places].map((place) => familyOf(place.category)));
  const { families, other } = paletteOf(isDark);
  const entries = [...FAMILIES, OTHER].flatMap(({ title }, family) => {
    if (!present.has(family)) return [];
    const button = element("button", {
      type: "button",
      className: "plain",
      textContent: title,
      "aria-pressed": String(!hidden.has(family)),
    });
    button.style.setProperty("--colour", families[family] ?? other);
    button.addEventListener("click", () => {
      if (!hidden.delete(family)) hidden.add(family);
      button.setAttribute("aria-pressed", String(!hidden.has(family)));
      changed();
    });
    return [element("li", {}, button)];
  });
  byId("legend").replaceChildren(...entries);
  byId("legend").hidden = entries.length < 2;
}
