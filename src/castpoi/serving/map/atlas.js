// The map: the city's places, a trajectory, pins, and the lines that explain one of them.

import { pinsOn } from "./pins.js";
import { familyOf, paletteOf } from "./palette.js";
import { arc, boxAround, collection, disc, line, point, wrapped } from "./shapes.js";
import { styleOf } from "./map_style.js";
import { clock, counted, detailOf, percent, titleOf } from "./words.js";
import { element } from "./dom.js";

const MAX_WARM = 4000; // places of the density: more cost much and look the same
const NEAR_ENOUGH_PX = 12;
const MAX_TIMES = 4;
const FADING = [
  ["trajectory", "line-opacity"],
  ["visits", "circle-opacity"],
  ["visits", "circle-stroke-opacity"],
];

/** Whether the panel is a sheet at the foot of the window. */
export const PHONE = matchMedia("(width < 760px)");

/** The closest zoom that fits the map to places. */
export const CLOSEST = 15.5;

/** The share of places on each side that the first view leaves out. */
export const OUTLIERS = 0.02;

/** What covers the edges of the map: controls and, on a phone, the sheet; and the height of a pin. */
export function roomIn({ clientWidth: width, clientHeight: height }, panel) {
  const edge = Math.min(56, width / 8, height / 8);
  const room = { top: edge + 44, right: Math.max(edge, 64), bottom: edge, left: edge };
  if (PHONE.matches) room.bottom += Math.min(panel.getBoundingClientRect().height, height * 0.55);
  return room;
}

/** A map of the city in an element; throws if the browser cannot draw one. */
export async function openAtlas(container, { tiles, isDark, panel }) {
  const maplibre = await import("./vendor/maplibre-gl.mjs");
  const style = styleOf(paletteOf(isDark), tiles);
  const map = new maplibre.Map({
    container,
    style,
    center: [0, 20],
    zoom: 1.5,
    attributionControl: tiles ? { compact: true } : false,
    dragRotate: false,
    pitchWithRotate: false,
    touchPitch: false,
  });
  map.touchZoomRotate.disableRotation();
  map.addControl(new maplibre.NavigationControl({ showCompass: false }), "bottom-right");
  map.addControl(new maplibre.ScaleControl({ maxWidth: 90 }), "bottom-right");
  await map.once("style.load");
  return new Atlas(map, maplibre, { style, tiles, panel });
}

class Atlas {
  constructor(map, maplibre, { style, tiles, panel }) {
    this.map = map;
    this.tiles = tiles;
    this.style = style;
    this.panel = panel;
    this.pins = pinsOn(map, maplibre);
    this.popup = new maplibre.Popup({
      className: "popup",
      closeButton: false,
      closeOnClick: false,
      maxWidth: "280px",
      offset: 12,
    });
    map.on("mousemove", (event) => this.#hover(event));
    map.on("mouseout", () => this.popup.remove());
    if (!tiles) map.once("idle", () => map.setLayoutProperty("density", "visibility", "visible"));
  }

  /** Draws the places of the city. */
  showPlaces(places) {
    const step = Math.ceil(places.length / MAX_WARM);
    const features = places.map((place, index) =>
      point(place, {
        heat: index % step ? 0 : step,
        place: place.place,
        family: familyOf(place.category),
        title: titleOf(place),
        detail: detailOf(place),
      }),
    );
    this.#draw("places", features);
  }

  /** Draws visits, oldest first, as a line that fades into the past. */
  showTrajectory(visits) {
    const known = visits.filter((visit) => visit.lat !== null);
    const recency = (index) => (known.length > 1 ? index / (known.length - 1) : 1);
    const steps = known.slice(1).map((visit, index) =>
      line(known[index], visit, { recency: recency(index + 1) }),
    );
    this.#draw("trajectory", steps);
    this.#draw(
      "visits",
      known.map((visit, index) =>
        point(visit, { recency: recency(index), title: titleOf(visit), at: visit.at }),
      ),
    );
  }

  /** Draws the outline of land and sea, GeoJSON of the service. */
  showGround(shapes) {
    this.map.getSource("ground").setData(shapes);
  }

  /** Hides the places of some families of categories. */
  hideFamilies(families) {
    const filter = families.length ? ["!", ["in", ["get", "family"], ["literal", families]]] : null;
    for (const layer of ["places", "names"]) this.map.setFilter(layer, filter);
  }

  /** Marks a place with a ring; null removes it. */
  mark(place) {
    this.#draw("marked", place ? [point(place, {})] : []);
  }

  /** Draws the places of a kept list with their ranks. */
  showKept(recommendations) {
    const features = recommendations.map((each, index) =>
      point(each, { rank: String(index + 1), title: titleOf(each), detail: percent(each.probability) }),
    );
    this.#draw("kept", features);
  }

  /** Puts numbered pins on recommended places; `onChoose` is called with the clicked one. */
  showPins(recommendations, onChoose) {
    this.pins.show(recommendations, onChoose);
  }

  /**
   * Draws lines from a candidate to the places whose visits explain it, a ring for its own visits;
   * `of` is the unit of their weight.
   */
  showExplanation(candidate, groups, of = "") {
    this.pins.choose(candidate?.place ?? null);
    this.#fade(candidate !== null);
    const heaviest = Math.max(...groups.map((group) => group.weight), 1e-9);
    const elsewhere = groups.filter((group) => group.place !== candidate.place);
    this.#draw(
      "explanation",
      elsewhere.map((group) => arc(group, candidate, { strength: group.weight / heaviest })),
    );
    this.#draw(
      "contributions",
      groups.map((group) =>
        point(group, {
          title: titleOf(group),
          at: group.visits[0].at,
          text: `${counted(group.visits.length, "visit")}: ${percent(group.weight)} ${of}`,
        }),
      ),
    );
  }

  /** Draws how far the filter reaches, around a centre. */
  showReach(centre, km) {
    const shapes = centre ? [point(centre, {}), ...(km ? [disc(centre, km)] : [])] : [];
    this.#draw("reach", shapes);
  }

  /** Moves the map so that points are visible next to the panel. */
  fit(spots, { leftOut = 0, closest = CLOSEST, calmly = true } = {}) {
    if (!spots.length) return;
    this.map.fitBounds(boxAround(spots, leftOut), {
      padding: this.#room(),
      maxZoom: closest,
      duration: calmly ? 700 : 0,
    });
  }

  #room() {
    return roomIn(this.map.getContainer(), this.panel);
  }

  /** Whether a point is visible next to the panel. */
  sees(spot) {
    const { clientWidth: width, clientHeight: height } = this.map.getContainer();
    const { top, right, bottom, left } = this.#room();
    const { x, y } = this.map.project([spot.lon, spot.lat]);
    return x >= left && x <= width - right && y >= top && y <= height - bottom;
  }

  /** The middle and the zoom of the map, for a link. */
  centre() {
    const { lat, lng } = this.map.getCenter();
    return [Number(lat.toFixed(4)), Number(wrapped(lng).toFixed(4)), Number(this.map.getZoom().toFixed(2))];
  }

  /** Shows the view of a link. */
  goTo([lat, lon, zoom]) {
    this.map.jumpTo({ center: [lon, lat], zoom });
  }

  /** The map and its pins as a PNG. */
  async picture() {
    const canvas = await new Promise((done) => {
      this.map.once("render", () => done(copyOf(this.map.getCanvas()))); // later the canvas is blank
      this.map.triggerRepaint();
    });
    this.pins.paint(canvas);
    return new Promise((done) => canvas.toBlob(done, "image/png"));
  }

  /** Calls a function at clicks: on a place (its id), or elsewhere (lat and lon). */
  onClick(listener) {
    this.map.on("click", (event) => {
      const found = this.#nearest(event.point, ["places"]);
      listener({
        place: found?.properties.place ?? null,
        lat: event.lngLat.lat,
        lon: wrapped(event.lngLat.lng),
      });
    });
  }

  /** Calls a function with the visible area when the map stops moving: south, west, north, east. */
  onRest(listener) {
    this.map.on("moveend", () => {
      const box = this.map.getBounds();
      listener([box.getSouth(), box.getWest(), box.getNorth(), box.getEast()]);
    });
  }

  /** Calls a function when everything that is shown so far has been drawn. */
  onDrawn(listener) {
    this.map.once("idle", listener);
  }

  /** Draws in the colours of the light or the dark theme. */
  paint(isDark) {
    this.style = styleOf(paletteOf(isDark), this.tiles);
    for (const layer of this.style.layers) {
      for (const [property, value] of Object.entries(layer.paint)) {
        this.map.setPaintProperty(layer.id, property, value);
      }
    }
  }

  #draw(source, features) {
    this.map.getSource(source).setData(collection(features));
  }

  #fade(isFaded) {
    for (const [layer, property] of FADING) {
      const usual = this.style.layers.find(({ id }) => id === layer).paint[property];
      this.map.setPaintProperty(layer, property, isFaded ? 0.12 : usual);
    }
  }

  #hover(event) {
    const found = this.#nearest(event.point, ["contributions"])
      ?? this.#nearest(event.point, ["kept"])
      ?? this.#nearest(event.point, ["visits"])
      ?? this.#nearest(event.point, ["places"]);
    this.map.getCanvas().style.cursor = found ? "pointer" : "";
    if (!found) {
      this.popup.remove();
      return;
    }
    const { title, detail, text } = found.properties;
    const lines = [...this.#timesAt(event.point, found), text ?? detail].filter(Boolean);
    const content = element("div", {}, element("strong", { textContent: title }));
    content.append(...lines.map((text) => element("small", { textContent: text })));
    this.popup.setLngLat(found.geometry.coordinates).setDOMContent(content).addTo(this.map);
  }

  // One dot may represent many visits to a place: the latest times are shown.
  #timesAt(pixel, found) {
    if (!found.properties.at) return [];
    if (found.layer.id === "contributions") return [clock(found.properties.at)];
    const times = this.#around(pixel, ["visits"])
      .filter((each) => each.properties.title === found.properties.title)
      .map((each) => each.properties.at)
      .sort()
      .reverse();
    const distinct = [...new Set(times)];
    const more = distinct.length - MAX_TIMES;
    return [
      ...distinct.slice(0, MAX_TIMES).map(clock),
      ...(more > 0 ? [`and ${counted(more, "earlier visit")}`] : []),
    ];
  }

  #around({ x, y }, layers) {
    const box = [[x - NEAR_ENOUGH_PX, y - NEAR_ENOUGH_PX], [x + NEAR_ENOUGH_PX, y + NEAR_ENOUGH_PX]];
    return this.map.queryRenderedFeatures(box, { layers });
  }

  #nearest(pixel, layers) {
    let [nearest, least] = [null, NEAR_ENOUGH_PX];
    for (const each of this.#around(pixel, layers)) {
      const spot = this.map.project(each.geometry.coordinates);
      const away = Math.hypot(spot.x - pixel.x, spot.y - pixel.y);
      if (away < least) [nearest, least] = [each, away];
    }
    return nearest;
  }
}

function copyOf(canvas) {
  const copy = document.createElement("canvas");
  Object.assign(copy, { width: canvas.width, height: canvas.height });
  copy.getContext("2d").drawImage(canvas, 0, 0);
  return copy;
}

/** Replaces the map in browsers that cannot draw it. */
export class NoAtlas {
  showPlaces() {}
  showGround() {}
  showTrajectory() {}
  showPins() {}
  showExplanation() {}
  showReach() {}
  showKept() {}
  hideFamilies() {}
  mark() {}
  centre() {
    return null;
  }
  goTo() {}
  picture() {
    return null;
  }
  fit() {}
  sees() {
    return true;
  }
  onClick() {}
  onRest() {}
  onDrawn(listener) {
    listener();
  }
  paint() {}
}
