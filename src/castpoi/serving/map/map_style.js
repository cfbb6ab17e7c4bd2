// The style of the map: empty sources, and how each is drawn, without fonts and sprites.

import { FAMILIES } from "./palette.js";

const NOTHING = { type: "FeatureCollection", features: [] };
const DRAWN = [
  "ground",
  "places", "reach", "trajectory", "visits", "explanation", "contributions", "marked", "kept",
];

/** A whole MapLibre style in the colours of a palette, over tiles if there are some. */
export function styleOf(palette, tiles) {
  const sources = Object.fromEntries(
    DRAWN.map((name) => [name, { type: "geojson", data: NOTHING, tolerance: 0.1 }]),
  );
  if (tiles) {
    sources.tiles = { type: "raster", tiles: [tiles], tileSize: 256, attribution: creditOf(tiles) };
  }
  return { version: 8, sources, layers: layersOf(palette, tiles) };
}

function layersOf(palette, tiles) {
  return [
    { id: "paper", type: "background", paint: { "background-color": palette.paper } },
    ...(tiles ? [tileLayer(palette)] : [...groundLayers(palette), densityLayer(palette)]),
    ...placeLayers(palette),
    ...reachLayers(palette),
    ...trajectoryLayers(palette),
    ...reasonLayers(palette),
    ...otherLayers(palette),
  ];
}

function tileLayer({ tiles }) {
  return {
    id: "tiles",
    type: "raster",
    source: "tiles",
    paint: {
      "raster-opacity": tiles.opacity,
      "raster-saturation": tiles.saturation,
      "raster-brightness-max": tiles.brightest,
    },
  };
}

// The coarse outline: a box of sea with land above it.
function groundLayers({ paper, sea, coast }) {
  const isLand = ["==", ["get", "kind"], "land"];
  return [
    { id: "sea", type: "fill", source: "ground", filter: ["!", isLand], paint: { "fill-color": sea } },
    {
      id: "land",
      type: "fill",
      source: "ground",
      filter: isLand,
      paint: { "fill-color": paper, "fill-outline-color": coast },
    },
  ];
}

function densityLayer({ glow }) {
  return {
    id: "density",
    type: "heatmap",
    source: "places",
    filter: [">", ["get", "heat"], 0],
    layout: { visibility: "none" }, // until the first picture is drawn
    paint: {
      "heatmap-weight": ["get", "heat"],
      "heatmap-radius": byZoom([8, 14], [11, 26], [14, 54], [17, 120]),
      "heatmap-intensity": byZoom([8, 0.12], [11, 0.2], [14, 0.45], [17, 0.8]),
      "heatmap-color": [
        "interpolate", ["linear"], ["heatmap-density"], 0, glow[0], 0.25, glow[1], 1, glow[2],
      ],
    },
  };
}

function placeLayers(palette) {
  const colour = ["match", ["get", "family"]];
  FAMILIES.forEach((_, family) => colour.push(family, palette.families[family]));
  colour.push(palette.other);
  return [
    {
      id: "places",
      type: "circle",
      source: "places",
      paint: {
        "circle-color": colour,
        "circle-radius": byZoom([8, 1.1], [11, 2], [13, 3.2], [15, 5], [18, 9]),
        "circle-opacity": byZoom([9, 0.5], [12, 0.62], [15, 0.85]),
      },
    },
    {
      id: "names",
      type: "symbol",
      source: "places",
      minzoom: 14.5,
      layout: {
        "text-field": ["get", "title"],
        "text-font": ["sans-serif"],
        "text-size": 11,
        "text-anchor": "left",
        "text-justify": "left",
        "text-offset": [0.8, 0],
        "text-max-width": 12,
        "text-optional": true,
      },
      paint: {
        "text-color": palette.ink,
        "text-opacity": 0.72,
        "text-halo-color": palette.halo,
        "text-halo-width": 1.4,
      },
    },
  ];
}

function reachLayers({ accent }) {
  return [
    {
      id: "reach-area",
      type: "fill",
      source: "reach",
      filter: ["==", ["geometry-type"], "Polygon"],
      paint: { "fill-color": accent, "fill-opacity": 0.05 },
    },
    {
      id: "reach-edge",
      type: "line",
      source: "reach",
      filter: ["==", ["geometry-type"], "Polygon"],
      paint: { "line-color": accent, "line-opacity": 0.6, "line-dasharray": [2, 3] },
    },
    {
      id: "reach-centre",
      type: "circle",
      source: "reach",
      filter: ["==", ["geometry-type"], "Point"],
      paint: {
        "circle-radius": 5,
        "circle-color": "#0000",
        "circle-stroke-color": accent,
        "circle-stroke-width": 2,
      },
    },
  ];
}

function trajectoryLayers({ ink, paper }) {
  return [
    {
      id: "trajectory",
      type: "line",
      source: "trajectory",
      layout: { "line-cap": "round", "line-join": "round" },
      paint: {
        "line-color": ink,
        "line-opacity": byAge(0.12, 0.8),
        "line-width": byAge(0.8, 2.4),
      },
    },
    {
      id: "visits",
      type: "circle",
      source: "visits",
      paint: {
        "circle-color": ink,
        "circle-radius": byAge(2.6, 5.5),
        "circle-opacity": byAge(0.3, 1),
        "circle-stroke-color": paper,
        "circle-stroke-width": 1.4,
        "circle-stroke-opacity": 1,
      },
    },
  ];
}

function reasonLayers({ accent, paper }) {
  return [
    {
      id: "explanation",
      type: "line",
      source: "explanation",
      layout: { "line-cap": "round" },
      paint: {
        "line-color": accent,
        "line-opacity": 0.78,
        "line-width": ["interpolate", ["linear"], ["get", "strength"], 0, 1, 1, 7.5],
      },
    },
    {
      id: "contributions",
      type: "circle",
      source: "contributions",
      paint: {
        "circle-color": paper,
        "circle-radius": 5,
        "circle-stroke-color": accent,
        "circle-stroke-width": 2.4,
      },
    },
  ];
}

// A place that was looked up, and the places of a kept list.
function otherLayers({ accent, other, paper, ink }) {
  return [
    {
      id: "marked",
      type: "circle",
      source: "marked",
      paint: {
        "circle-color": "#0000",
        "circle-radius": 13,
        "circle-stroke-color": accent,
        "circle-stroke-width": 3,
      },
    },
    {
      id: "kept",
      type: "circle",
      source: "kept",
      paint: {
        "circle-color": paper,
        "circle-radius": 9,
        "circle-stroke-color": other,
        "circle-stroke-width": 2,
      },
    },
    {
      id: "kept-ranks",
      type: "symbol",
      source: "kept",
      layout: {
        "text-field": ["get", "rank"],
        "text-font": ["sans-serif"],
        "text-size": 11,
        "text-allow-overlap": true,
      },
      paint: { "text-color": ink },
    },
  ];
}

function byZoom(...stops) {
  return ["interpolate", ["linear"], ["zoom"], ...stops.flat()];
}

// `recency` runs from 0, the oldest visit that is shown, to 1, the latest.
function byAge(oldest, latest) {
  return ["interpolate", ["exponential", 4], ["get", "recency"], 0, oldest, 1, latest];
}

// A parsed host has no markup; MapLibre inserts credits as HTML.
function creditOf(tiles) {
  const { host } = new URL(tiles, document.baseURI);
  return host.endsWith("openstreetmap.org") ? "© OpenStreetMap contributors" : `Tiles: ${host}`;
}
