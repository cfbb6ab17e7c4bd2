// What the page says in plain words: where to begin, what went wrong, what just happened.

import { byId, element } from "./dom.js";

const TOAST_MS = 3500;
let toastTimer = 0;

/** Says where to begin; `show` is what shows an example, if there is one. */
export function invite(mode, show = null) {
  const texts = {
    user: ["Where next?", "Choose a person to see where they have been, where they may go next, and why."],
    history: ["Where have you been?", "Click places on the map, in the order you were there."],
  };
  const [title, text] = texts[mode];
  const said = [element("h2", { textContent: title }), element("p", { textContent: text })];
  if (show) said.push(action("Show me anybody", show));
  byId("notice").replaceChildren(...said);
}

/** Tells what went wrong, and offers a way out of {text, act} if there is one. */
export function showProblem(sentence, wayOut) {
  const told = element("div", { className: "problem" }, sentence);
  if (wayOut) told.append(action(wayOut.text, wayOut.act));
  byId("notice").replaceChildren(told);
}

/** Passes on what the service remarked; says nothing if it did not. */
export function showRemarks(remarks) {
  byId("notice").replaceChildren(
    ...remarks.map((remark) => element("p", { textContent: sentenceCase(remark) })),
  );
}

/** Says something in passing. */
export function toast(text) {
  const told = byId("toast");
  told.textContent = text;
  told.hidden = false;
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => (told.hidden = true), TOAST_MS);
}

/** Says on the map what a click would do, or why there is no map; null says nothing. */
export function hint(text, { isBlank = false } = {}) {
  const told = byId("hint");
  told.textContent = text ?? "";
  told.hidden = text === null;
  told.classList.toggle("blank", isBlank);
}

function action(text, act) {
  const button = element("button", { type: "button", textContent: text });
  button.addEventListener("click", act);
  return button;
}

function sentenceCase(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
