// Light or dark: the setting of the system, or the user's choice, which is all that this page stores.

import { byId } from "./dom.js";

const MEMORY = "castpoi-theme";
const night = matchMedia("(prefers-color-scheme: dark)");

/** Whether the page is dark now. */
export function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : night.matches;
}

/** Keeps the theme, its button and all listeners consistent. */
export function followTheme(onChange) {
  const remembered = recall();
  if (remembered) document.documentElement.dataset.theme = remembered;
  const settle = () => {
    document.documentElement.toggleAttribute("data-dark", isDark());
    byId("theme").setAttribute("aria-pressed", String(isDark()));
    onChange();
  };
  byId("theme").addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    remember(document.documentElement.dataset.theme);
    settle();
  });
  night.addEventListener("change", settle);
  settle();
}

// A browser may forbid storage; the theme is then lost with the page.
function recall() {
  try {
    const theme = localStorage.getItem(MEMORY);
    return theme === "dark" || theme === "light" ? theme : null;
  } catch {
    return null;
  }
}

function remember(theme) {
  try {
    localStorage.setItem(MEMORY, theme);
  } catch {
    /* not stored */
  }
}
