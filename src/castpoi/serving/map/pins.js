// Numbered pins on recommended places. They are buttons of the page, not drawings of the map.

import { element } from "./dom.js";
import { percent, titleOf } from "./words.js";

const TAIL_PX = 7;
const STEP_PX = 5;
const MAX_STEPS = 60;
const HEIGHT_PX = 29; // of a pin and the gap around it
const WIDTH_PX = 70;

/** The pins of a map. */
export function pinsOn(map, maplibre) {
  let pins = []; // {place, spot, marker}, most probable first

  map.on("zoomend", () => spread(pins, map));

  return {
    show(recommendations, onChoose) {
      pins.forEach(({ marker }) => marker.remove());
      pins = recommendations.map((each, index) => {
        const spot = [each.lon, each.lat];
        const pin = pinFor(each, index + 1, onChoose);
        const marker = new maplibre.Marker({ element: pin, anchor: "bottom" });
        return { place: each.place, spot, marker: marker.setLngLat(spot).addTo(map) };
      });
      spread(pins, map);
    },

    /** Draws the pins on a picture of the map. */
    paint(canvas) {
      const context = canvas.getContext("2d");
      const scale = canvas.width / map.getCanvas().clientWidth;
      context.scale(scale, scale);
      context.font = "600 12px sans-serif";
      context.textAlign = "center";
      context.textBaseline = "middle";
      for (const { marker } of [...pins].reverse()) paintPin(context, marker, map);
    },

    choose(chosen) {
      pins.forEach(({ place, marker }) => {
        const { classList } = marker.getElement();
        classList.toggle("chosen", place === chosen);
        classList.toggle("faded", chosen !== null && place !== chosen);
      });
    },
  };
}

// Where pins would overlap, the less probable one is on a stem above the other.
function spread(pins, map) {
  const taken = [];
  for (const { spot, marker } of pins) {
    const { x, y } = map.project(spot);
    const covers = (lift) =>
      taken.some((other) => Math.abs(other.x - x) < WIDTH_PX && Math.abs(other.y - y + lift) < HEIGHT_PX);
    let step = 0;
    while (step < MAX_STEPS && covers(step * STEP_PX)) step += 1;
    const lift = step * STEP_PX;
    taken.push({ x, y: y - lift });
    marker.setOffset([0, -TAIL_PX - lift]);
    marker.getElement().style.setProperty("--lift", `${lift}px`);
  }
}

// The box of a pin of the page, filled with its text.
function paintPin(context, marker, map) {
  const pin = marker.getElement();
  const box = pin.getBoundingClientRect();
  const from = map.getContainer().getBoundingClientRect();
  const style = getComputedStyle(pin);
  const [x, y] = [box.left - from.left, box.top - from.top];
  const foot = map.project(marker.getLngLat());
  context.fillStyle = style.backgroundColor;
  context.strokeStyle = style.borderColor;
  context.lineWidth = 1.5;
  context.beginPath();
  context.moveTo(x + box.width / 2, y + box.height);
  context.lineTo(foot.x, foot.y);
  context.stroke();
  context.beginPath();
  context.roundRect(x, y, box.width, box.height, box.height / 2);
  context.fill();
  context.stroke();
  context.fillStyle = style.color;
  context.fillText(pin.innerText.replace(/\s+/g, " "), x + box.width / 2, y + box.height / 2);
}

function pinFor(recommendation, rank, onChoose) {
  const probability = percent(recommendation.probability);
  const pin = element(
    "button",
    {
      type: "button",
      className: "pin",
      tabIndex: -1, // by keyboard, the list has the same places
      "aria-label": `${rank} ${probability}, ${titleOf(recommendation)}`, // begins with what is seen
    },
    element("b", { textContent: rank }),
    ` ${probability}`,
  );
  pin.style.zIndex = 200 - rank;
  pin.addEventListener("click", (event) => {
    event.stopPropagation(); // not a click on the map behind it
    onChoose(recommendation.place);
  });
  return pin;
}
