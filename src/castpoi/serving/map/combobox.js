// A search field with suggestions, by pointer and by keyboard (the ARIA combobox pattern).

import { calmly, element } from "./dom.js";

const CALM_MS = 140;

/**
 * Ties a field to its list: `find` gives options of {title, detail, value}, `choose` takes one;
 * `miss` is called with a text for which Enter found none.
 */
export function combobox(field, list, { find, choose, miss = () => {} }) {
  let options = [];
  let active = -1;
  let requested = 0;

  const close = () => {
    requested += 1; // a pending answer comes too late
    openCalmly.stop();
    list.hidden = true;
    field.setAttribute("aria-expanded", "false");
    field.removeAttribute("aria-activedescendant");
    active = -1;
  };

  const mark = (index) => {
    active = index;
    [...list.children].forEach((item, place) => {
      item.setAttribute("aria-selected", String(place === index));
      if (place === index) item.scrollIntoView({ block: "nearest" });
    });
    field.setAttribute("aria-activedescendant", index < 0 ? "" : list.children[index].id);
  };

  const take = (option) => {
    close();
    choose(option.value);
  };

  const look = () => find(field.value.trim()).catch(() => []);

  const open = async () => {
    const turn = (requested += 1);
    const found = await look();
    if (turn !== requested) return;
    options = found;
    list.replaceChildren(...options.map((option, index) => itemOf(option, `${list.id}-${index}`)));
    list.hidden = options.length === 0;
    field.setAttribute("aria-expanded", String(!list.hidden));
    list.scrollIntoView({ block: "nearest" });
    active = -1;
  };

  const openCalmly = calmly(open, CALM_MS);

  const itemOf = (option, id) => {
    const item = element("li", { id, role: "option", "aria-selected": "false" });
    item.append(element("span", { textContent: option.title }));
    item.append(element("small", { textContent: option.detail ?? "" }));
    item.addEventListener("pointerdown", (event) => {
      event.preventDefault(); // keeps the focus in the field
      take(option);
    });
    return item;
  };

  const keys = {
    ArrowDown: () => (list.hidden ? open() : mark((active + 1) % options.length)),
    ArrowUp: () => !list.hidden && mark((active <= 0 ? options.length : active) - 1),
    Enter: async () => {
      const option = active < 0 ? (await look())[0] : options[active];
      if (option) take(option);
      else if (field.value.trim()) miss(field.value.trim());
    },
  };

  field.addEventListener("input", () => {
    close(); // suggestions for the former text
    openCalmly();
  });
  field.addEventListener("focus", open);
  field.addEventListener("blur", close);
  field.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !list.hidden) {
      event.stopPropagation(); // Escape closes one thing at a time
      close();
    }
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
}
