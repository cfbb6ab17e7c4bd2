// Problems: a sentence with a button that fixes it, and the dialog for a missing key.

import { byId } from "./dom.js";
import { clearFilters, isFiltered } from "./filters.js";
import { showProblem } from "./notice.js";
import { useKey } from "./service.js";

let begin = () => {};

/** Starts the button for a key; `readCity` is tried with it, `begin` removes the problem. */
export function startTrouble({ readCity, begin: clear }) {
  begin = clear;
  byId("key-button").addEventListener("click", () => requestKey(readCity));
}

/** Shows a problem in the panel and how to fix it; opens the dialog for a missing key. */
export function reportProblem(problem, retry) {
  showProblem(problem.message, fixFor(problem, retry));
  if (problem.wantsKey) requestKey(retry);
}

function fixFor({ status }, retry) {
  if (status === 422 && isFiltered()) return { text: "Clear the filters", act: clearFilters };
  const isFinal = status === undefined || status === 422; // another request gives the same answer
  return isFinal || !retry ? null : { text: "Try again", act: retry };
}

function requestKey(retry) {
  const dialog = byId("key-dialog");
  byId("key-button").hidden = false;
  if (dialog.open) return;
  byId("key").value = "";
  dialog.returnValue = "";
  dialog.showModal();
  dialog.addEventListener(
    "close",
    () => {
      if (dialog.returnValue !== "open") return;
      useKey(byId("key").value);
      byId("key").value = "";
      begin();
      retry();
    },
    { once: true },
  );
}
