// The visits of a request: those of a person, or a history made by clicking.

import { combobox } from "./combobox.js";
import { byId, element } from "./dom.js";
import { addVisit, findPlaces, usersLike, visitsOf } from "./service.js";
import { clock, counted, detailOf, hourAfter, now, titleOf } from "./words.js";

const FIRST_SHOWN = 30;
const TOUCH = matchMedia("(pointer: coarse)");
const shown = byId("shown");
const form = byId("visit");

/** The chosen person or history and its visits; calls `onChange` with the reason of a change. */
export class Past {
  mode = "user";
  user = null;
  visits = []; // of the user, oldest first
  history = []; // made here, oldest first
  #adding = null; // the place of the open form
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
    combobox(byId("place"), byId("place-options"), {
      find: findByName,
      choose: (place) => this.pick(place),
    });
    shown.addEventListener("input", () => {
      this.#show();
      onShown();
    });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#add();
    });
    byId("visit-cancel").addEventListener("click", () => this.closeForm());
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
    this.closeForm();
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

  /** Adds a visit to the history or, for a person, opens the form for its time. */
  pick(place) {
    byId("place").value = "";
    if (this.mode === "user" && this.user === null) return;
    if (this.mode === "history") {
      const last = this.history.at(-1);
      this.history = [...this.history, { ...place, at: last ? hourAfter(last.at) : now() }];
      this.#settle("visit");
      return;
    }
    this.#adding = place;
    byId("visit-title").textContent = titleOf(place);
    byId("visit-detail").textContent = detailOf(place);
    byId("visit-at").value = hourAfter(this.visits.at(-1).at);
    form.hidden = false;
    form.scrollIntoView({ block: "nearest" });
    byId("visit-at").focus({ preventScroll: true });
  }

  /** Closes the form of a visit; returns whether it was open. */
  closeForm() {
    const wasOpen = !form.hidden;
    form.hidden = true;
    this.#adding = null;
    return wasOpen;
  }

  async #add() {
    const visit = { user: this.user, place: this.#adding.place, at: byId("visit-at").value };
    try {
      await addVisit(visit);
      this.visits = await visitsOf(this.user);
    } catch (problem) {
      this.#onProblem(problem, () => this.#add());
      return;
    }
    this.closeForm();
    this.#settle("visit", Number(shown.value) + 1);
  }

  #enter(mode) {
    this.mode = mode;
    this.closeForm();
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
    byId("adding").hidden = isUser && this.user === null;
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
    this.history = this.history
      .map((each, place) => (place === index ? visit : each))
      .filter(Boolean)
      .sort((one, other) => one.at.localeCompare(other.at));
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

async function findByName(text) {
  const places = await findPlaces({ text, limit: 30 });
  return places.map((place) => ({ title: titleOf(place), detail: detailOf(place), value: place }));
}
