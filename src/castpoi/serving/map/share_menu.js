// The menu that shares a view: a link, the list as a file, the map as a picture.

import { byId } from "./dom.js";
import { toast } from "./notice.js";
import { csvOf, geojsonOf, linkOf, save } from "./share.js";

/** Starts the menu; `view` gives parameters of a link, `list` the places, `picture` a PNG. */
export function startShare({ view, list, picture }) {
  const menu = byId("share");
  const act = (id, action) =>
    byId(id).addEventListener("click", async () => {
      await action();
      menu.open = false;
      menu.querySelector("summary").focus();
    });
  act("copy-link", async () => {
    const link = linkOf(view({ withIds: byId("with-ids").checked }));
    const isCopied = await navigator.clipboard?.writeText(link).then(() => true, () => false);
    toast(isCopied ? "The link is copied." : link);
  });
  act("save-csv", () => save(csvOf(list()), "castpoi.csv", "text/csv"));
  act("save-geojson", () => save(geojsonOf(list()), "castpoi.geojson", "application/geo+json"));
  act("save-png", async () => {
    const image = await picture();
    if (image) save(image, "castpoi.png", "image/png");
    else toast("This browser draws no map.");
  });
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !menu.open) return;
    event.stopPropagation(); // Escape closes one thing at a time
    menu.open = false;
    menu.querySelector("summary").focus();
  });
}
