// Messages of the page: how to begin, problems, and changes.

import { byId, element } from "./dom.js";
import { sentenceCase } from "./words.js";

const TOAST_MS = 3500;
let toastTimer = 0;

/** Shows how to begin; `show` opens an example, if there is one. */
export function invite(mode, show = null) {
  const texts = {
    user: ["Where next?", "Choose a person to see their visits, their most likely next places, and why."],
    history: ["Where have you been?", "Click places on the map, in the order of your visits."],
  };
  const [title, text] = texts[mode];
  const parts = [element("h2", { textContent: title }), element("p", { textContent: text })];
  if (show) parts.push(action("Show an example", show));
  byId("notice").replaceChildren(...parts);
}

/** Shows a problem, with a button {text, act} that fixes it if there is one. */
export function showProblem(sentence, fix) {
  const problem = element("div", { className: "problem" }, sentence);
  if (fix) problem.append(action(fix.text, fix.act));
  byId("notice").replaceChildren(problem);
}

/** Shows the remarks of an answer. */
export function showRemarks(remarks) {
  byId("notice").replaceChildren(
    ...remarks.map((remark) => element("p", { textContent: sentenceCase(remark) })),
  );
}

/** Shows a text for a few seconds. */
export function toast(text) {
  const box = byId("toast");
  box.textContent = text;
  box.hidden = false;
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => (box.hidden = true), TOAST_MS);
}

/** Shows on the map what a click does, or why there is no map; null hides the hint. */
export function hint(text, { isBlank = false } = {}) {
  const box = byId("hint");
  box.textContent = text ?? "";
  box.hidden = text === null;
  box.classList.toggle("blank", isBlank);
}

function action(text, act) {
  const button = element("button", { type: "button", textContent: text });
  button.addEventListener("click", act);
  return button;
}
