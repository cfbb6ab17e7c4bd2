// Colours of the map in both themes, and of the families of categories.

/** Families of categories, by words in their names; the first that fits. */
export const FAMILIES = [
  { title: "Homes", words: /home|resid|apartment|house(?!.*(coffee|steak|tea))|dorm|housing/i },
  { title: "Food and coffee", words: /restaurant|café|cafe|coffee|bakery|food|deli|diner|pizza|burger|joint|sandwich|steak|tea|dessert|ice cream|bagel|breakfast|lunch|snack|kitchen|bbq|donut|soup|salad/i },
  { title: "Nights and arts", words: /\bbar\b|pub|club|nightlife|brewery|lounge|theat|cinema|movie|music|stage|museum|gallery|art|concert|comedy|stadium|entertainment|performing/i },
  { title: "Work and study", words: /office|work|school|college|university|academic|library|building|factory|meeting|government|student/i },
  { title: "On the way", words: /station|train|subway|bus|airport|travel|ferry|road|bridge|terminal|hotel|transport|rail|taxi|parking/i },
  { title: "Shops", words: /shop|store|market|mall|grocery|boutique|salon|bank|pharmacy|laundry|service|bodega/i },
  { title: "Outdoors and sport", words: /park|outdoor|plaza|beach|trail|garden|gym|fitness|field|playground|sport|pool|river|scenic|harbor|neighborhood|athletic|yoga/i },
];

const OTHER = FAMILIES.length;

const DAY = {
  paper: "#f3f1ec",
  sea: "#dfe7ea",
  coast: "#c3d0d6",
  ink: "#1d2731",
  accent: "#c8431b",
  halo: "#f3f1ec",
  glow: ["#f3f1ec00", "#e9e3d7", "#ddd4c4"],
  families: ["#8a83c4", "#c79a3b", "#b26aa8", "#5a8fc0", "#45a09c", "#cc7d90", "#6ba368"],
  other: "#8f98a0",
  tiles: { opacity: 0.75, saturation: -0.6, brightest: 1 },
};

const NIGHT = {
  paper: "#12181e",
  sea: "#0a1018",
  coast: "#263544",
  ink: "#e9edf0",
  accent: "#ff8257",
  halo: "#0e1318",
  glow: ["#0e131800", "#172029", "#22303b"],
  families: ["#9d96dd", "#d8b05c", "#c98ac0", "#74a9da", "#5fbdb8", "#df97a9", "#88bf84"],
  other: "#7f8d98",
  tiles: { opacity: 0.55, saturation: -0.8, brightest: 0.45 },
};

/** The colours of the light or the dark theme. */
export const paletteOf = (isDark) => (isDark ? NIGHT : DAY);

/** The number of the family of a category; the last one without a match or a category. */
export function familyOf(category) {
  if (!category) return OTHER;
  const found = FAMILIES.findIndex((family) => family.words.test(category));
  return found < 0 ? OTHER : found;
}
