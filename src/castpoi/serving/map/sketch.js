// A first picture of the city, on a plain canvas: to start the map takes seconds without a graphics
// card, and blocks the page.

import { CLOSEST, OUTLIERS, roomIn } from "./atlas.js";
import { byId } from "./dom.js";
import { familyOf, paletteOf } from "./palette.js";
import { boxAround } from "./shapes.js";

const WORLD_PX = 512; // width of the whole Earth at zoom 0
const DOT_PX = 1.8;

let isSketched = () => {};
/** Resolves when the first places have been drawn. */
export const sketched = new Promise((resolve) => (isSketched = resolve));

/** Draws places over land and sea (GeoJSON, or null), where the map will draw them. */
export function drawSketch(places, ground, isDark) {
  const canvas = byId("sketch");
  const pen = canvas.getContext("2d");
  if (!pen) return;
  const palette = paletteOf(isDark);
  const { clientWidth: width, clientHeight: height } = canvas;
  Object.assign(canvas, { width: width * devicePixelRatio, height: height * devicePixelRatio });
  pen.scale(devicePixelRatio, devicePixelRatio);
  const pixelOf = projection(boxAround(places, OUTLIERS), canvas, roomIn(canvas, byId("panel")));
  pen.fillStyle = palette.paper;
  pen.fillRect(0, 0, width, height);
  for (const { properties, geometry } of ground?.features ?? []) {
    pen.fillStyle = properties.kind === "land" ? palette.paper : palette.sea;
    pen.beginPath();
    for (const [lon, lat] of geometry.coordinates[0]) pen.lineTo(...pixelOf(lon, lat));
    pen.fill();
  }
  pen.globalAlpha = 0.55;
  for (const { lat, lon, category } of places) {
    const [x, y] = pixelOf(lon, lat);
    pen.fillStyle = palette.families[familyOf(category)] ?? palette.other;
    pen.fillRect(x - DOT_PX, y - DOT_PX, 2 * DOT_PX, 2 * DOT_PX);
  }
  isSketched();
}

/** Removes the sketch; the map has been drawn. */
export function removeSketch() {
  byId("sketch")?.remove();
}

/** The pixel of a longitude and latitude when a box fills a view: Mercator, like the map. */
export function projection([[west, south], [east, north]], { clientWidth: width, clientHeight: height }, room) {
  const [left, right, top, bottom] = [across(west), across(east), down(north), down(south)];
  const scale = Math.min(
    (width - room.left - room.right) / (right - left),
    (height - room.top - room.bottom) / (bottom - top),
    WORLD_PX * 2 ** CLOSEST,
  );
  const middle = [(width + room.left - room.right) / 2, (height + room.top - room.bottom) / 2];
  return (lon, lat) => [
    middle[0] + (across(lon) - (left + right) / 2) * scale,
    middle[1] + (down(lat) - (top + bottom) / 2) * scale,
  ];
}

const across = (lon) => (lon + 180) / 360;

function down(lat) {
  return (1 - Math.log(Math.tan(Math.PI / 4 + (lat * Math.PI) / 360)) / Math.PI) / 2;
}
