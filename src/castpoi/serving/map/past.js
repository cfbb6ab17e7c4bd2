// The visits of a request: those of a person, or a history made by clicking.

import { combobox } from "./combobox.js";
import { byId, element } from "./dom.js";
import { addVisit, usersLike, visitsOf } from "./service.js";
import { clock, counted, hourAfter, now, titleOf } from "./words.js";

const FIRST_SHOWN = 30;
const TOUCH = matchMedia("(pointer: coarse)");
const shown = byId("shown");
const SAMPLED = 4; // people whose last visit shows where the data end

/** The chosen person or history and its visits; calls `onChange` with the reason of a change. */
export class Past {
  mode = "user";
  user = null;
  visits = []; // of the user, oldest first
  history = []; // made here, oldest first
  #onChange;
  #onProblem;
  #chosen = 0; // counts choices: an answer to an earlier one is ignored

  constructor({ onChange, onShown, onProblem }) {
    this.#onChange = onChange;
    this.#onProblem = onProblem;
    for (const choice of document.getElementsByName("mode")) {
      choice.addEventListener("change", () => this.#enter(choice.value));
    }
    combobox(byId("user"), byId("user-options"), {
      find: findUsers,
      choose: (user) => this.choose(user),
      miss: (text) => this.choose(text), // shows that there is no such person
    });
    shown.addEventListener("input", () => {
      this.#show();
      onShown();
    });
    this.#show();
  }

  /** The user or history for a request; null while nobody is chosen. */
  get request() {
    if (this.mode === "user") return this.user === null ? null : { user: this.user };
    return { history: this.history.map(({ place, at }) => ({ place, at })) };
  }

  /** All visits, oldest first. */
  get all() {
    return this.mode === "user" ? this.visits : this.history;
  }

  /** The visits to draw, oldest first. */
  get drawn() {
    return this.all.slice(-Number(shown.value));
  }

  /** Chooses a person. */
  async choose(user) {
    const turn = (this.#chosen += 1);
    try {
      const visits = await visitsOf(user);
      if (turn !== this.#chosen) return;
      if (!visits.length) throw new Error(`Nobody with the id “${user}” has visits here.`);
      [this.user, this.visits] = [user, visits];
    } catch (problem) {
      this.#onProblem(problem, () => this.choose(user));
      return;
    }
    byId("user").value = user;
    if (TOUCH.matches) byId("user").blur(); // closes the keyboard of a phone
    this.#settle("chosen", FIRST_SHOWN);
  }

  /** Chooses a random person. */
  async chooseRandom() {
    try {
      const users = await usersLike("");
      const busy = users.filter((each) => each.visits >= FIRST_SHOWN);
      const some = busy.length ? busy : users;
      if (!some.length) throw new Error("The store has no visits yet. Make a history of your own.");
      await this.choose(some[Math.floor(Math.random() * some.length)].user);
    } catch (problem) {
      this.#onProblem(problem, null);
    }
  }

  /** Whether a visit can be added: to a history, or to a person. */
  get isOpen() {
    return this.mode === "history" || this.user !== null;
  }

  /** The time of the next visit: an hour after the last one, or where the data end. */
  async nextTime() {
    return this.all.length ? hourAfter(this.all.at(-1).at) : endOfData();
  }

  /** Adds a visit: stored for a person, only here for a history. */
  async add(place, at) {
    if (this.mode === "history") {
      this.history = inOrder([...this.history, { ...place, at }]);
      this.#settle("visit");
      return;
    }
    await addVisit({ user: this.user, place: place.place, at });
    this.visits = await visitsOf(this.user);
    this.#settle("visit", Number(shown.value) + 1);
  }

  /** Opens a history, such as that of a link. */
  open(history) {
    this.history = history;
    document.querySelector("input[value=history]").checked = true;
    this.#enter("history");
  }

  #enter(mode) {
    this.mode = mode;
    this.#settle("chosen", FIRST_SHOWN);
  }

  #settle(why, count = this.all.length) {
    shown.max = Math.max(this.all.length, 1);
    shown.value = count;
    this.#show();
    this.#onChange(why);
  }

  #show() {
    const isUser = this.mode === "user";
    byId("person").hidden = !isUser;
    byId("trajectory").hidden = !isUser || !this.visits.length;
    byId("history").hidden = isUser || !this.history.length;
    if (isUser && this.visits.length) this.#showTrajectory();
    if (!isUser) this.#showHistory();
  }

  #showTrajectory() {
    const last = this.visits.at(-1);
    byId("trajectory-summary").replaceChildren(
      `${counted(this.visits.length, "visit")}, the last `,
      element("strong", { textContent: clock(last.at) }),
      " at ",
      element("strong", { textContent: titleOf(last) }),
    );
    byId("shown-count").textContent = `the last ${this.drawn.length}`;
  }

  #showHistory() {
    const rows = this.history.map((visit, index) => {
      const at = element("input", {
        type: "datetime-local",
        value: visit.at,
        "aria-label": `When at ${titleOf(visit)}`,
      });
      at.addEventListener("change", () => at.value && this.#change(index, { ...visit, at: at.value }));
      const away = element("button", {
        type: "button",
        className: "icon",
        textContent: "×",
        "aria-label": `Take ${titleOf(visit)} out`,
      });
      away.addEventListener("click", () => this.#change(index, null));
      return element("li", {}, element("span", { textContent: titleOf(visit) }), at, away);
    });
    byId("history").replaceChildren(...rows.reverse());
  }

  #change(index, visit) {
    const changed = this.history.map((each, place) => (place === index ? visit : each));
    this.history = inOrder(changed.filter(Boolean));
    this.#settle("visit");
  }
}

async function findUsers(text) {
  const users = await usersLike(text);
  return users.map(({ user, visits }) => ({
    title: user,
    detail: counted(visits, "visit"),
    value: user,
  }));
}

const inOrder = (visits) => [...visits].sort((one, other) => one.at.localeCompare(other.at));

// The local time of the latest of some last visits: a history of 2012 must not begin today.
async function endOfData() {
  const users = await usersLike("");
  const last = await Promise.all(users.slice(0, SAMPLED).map(({ user }) => visitsOf(user, { limit: 1 })));
  const times = last.flat().map(({ at }) => at.slice(0, 16)).sort();
  return times.at(-1) ?? now();
}
