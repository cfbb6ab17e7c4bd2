// On a phone the panel is a sheet: its grip makes it low, half or tall, by tap or by drag.

import { byId } from "./dom.js";

const SIZES = ["low", "half", "tall"];
const DRAG_PX = 36;
const panel = byId("panel");
const grip = byId("grip");
let size = "half";

/** Sets the height of the sheet: low, half or tall. */
export function setSheet(name) {
  size = name;
  SIZES.forEach((each) => panel.classList.toggle(each, each === name));
  grip.setAttribute("aria-expanded", String(name === "tall"));
}

/** Starts the grip. */
export function startSheet() {
  let began = null;
  grip.addEventListener("pointerdown", (event) => {
    began = event.clientY;
    grip.setPointerCapture(event.pointerId);
  });
  grip.addEventListener("pointerup", (event) => {
    const up = began === null ? 0 : began - event.clientY;
    began = null;
    if (Math.abs(up) < DRAG_PX) return; // a tap, which arrives as a click
    const next = SIZES.indexOf(size) + Math.sign(up);
    setSheet(SIZES[Math.min(Math.max(next, 0), SIZES.length - 1)]);
    grip.dataset.dragged = "true";
  });
  grip.addEventListener("click", () => {
    if (grip.dataset.dragged) {
      delete grip.dataset.dragged; // the click that ends a drag
      return;
    }
    setSheet(size === "half" ? "tall" : "half");
  });
}
