// Shapes of the map as GeoJSON. Our order is lat, lon; that of GeoJSON is lon, lat: only this file converts.

const KM_A_DEGREE = 111.195; // of latitude, on a sphere of 6371 km
const ARC_STEPS = 28;
const CIRCLE_STEPS = 90;

/** A collection of features. */
export const collection = (features) => ({ type: "FeatureCollection", features });

/** A point with its properties. */
export const point = (spot, properties) =>
  feature("Point", [spot.lon, spot.lat], properties);

/** A straight line between two points. */
export const line = (from, to, properties) =>
  feature("LineString", [[from.lon, from.lat], [to.lon, to.lat]], properties);

/** A slightly bent line between two points, so that lines to one point do not overlap. */
export function arc(from, to, properties, bend = 0.16) {
  const stretch = Math.cos((from.lat * Math.PI) / 180); // a degree of longitude is shorter
  const [across, up] = [(to.lon - from.lon) * stretch, to.lat - from.lat];
  const knee = {
    lon: (from.lon + to.lon) / 2 - (up * bend) / stretch,
    lat: (from.lat + to.lat) / 2 + across * bend,
  };
  const spots = Array.from({ length: ARC_STEPS + 1 }, (_, step) => {
    const t = step / ARC_STEPS;
    const mix = (a, b, c) => (1 - t) ** 2 * a + 2 * t * (1 - t) * b + t ** 2 * c;
    return [mix(from.lon, knee.lon, to.lon), mix(from.lat, knee.lat, to.lat)];
  });
  return feature("LineString", spots, properties);
}

/** The circle around a point. */
export function disc(centre, km) {
  const stretch = Math.max(Math.cos((centre.lat * Math.PI) / 180), 0.01);
  const ring = Array.from({ length: CIRCLE_STEPS + 1 }, (_, step) => {
    const angle = (2 * Math.PI * step) / CIRCLE_STEPS;
    return [
      centre.lon + ((km / KM_A_DEGREE) * Math.cos(angle)) / stretch,
      centre.lat + (km / KM_A_DEGREE) * Math.sin(angle),
    ];
  });
  return feature("Polygon", [ring], {});
}

/** The box around points as [[west, south], [east, north]]; a share of outliers may be left out. */
export function boxAround(spots, leftOut = 0) {
  const side = (name) => {
    const sorted = spots.map((spot) => spot[name]).sort((a, b) => a - b);
    const skip = Math.floor(sorted.length * leftOut);
    return [sorted[skip], sorted[sorted.length - 1 - skip]];
  };
  const [[west, east], [south, north]] = [side("lon"), side("lat")];
  return [[west, south], [east, north]];
}

/** A longitude from -180 to 180, however often the map was moved around the Earth. */
export const wrapped = (lon) => lon - 360 * Math.round(lon / 360);

/**
 * The visible area as the service expects it: south, west, north, east. West is above east where
 * the box crosses the date line.
 */
export function visibleBox([south, west, north, east]) {
  const [lowest, highest] = [Math.max(south, -90), Math.min(north, 90)];
  if (east - west >= 360) return [lowest, -180, highest, 180];
  return [lowest, wrapped(west), highest, wrapped(east)];
}

function feature(type, coordinates, properties) {
  return { type: "Feature", geometry: { type, coordinates }, properties };
}
