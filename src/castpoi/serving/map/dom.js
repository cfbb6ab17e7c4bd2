// Helpers that make and find elements. Text is always set as text, never as markup.

/** The element with an id. */
export const byId = (id) => document.getElementById(id);

/** A new element with properties, attributes (aria-…, role, data-…) and children. */
export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in made) made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

/** Calls a function once nothing has happened for a while; `stop` cancels a pending call. */
export function calmly(action, milliseconds) {
  let timer = 0;
  const later = (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...given), milliseconds);
  };
  later.stop = () => clearTimeout(timer);
  return later;
}

const PATIENCE_MS = 5000; // a hidden tab paints nothing

/** Waits until what is on the page now can be seen. */
export async function painted() {
  const seen = new Promise((done) => new PerformanceObserver(done).observe({ type: "paint", buffered: true }));
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  await Promise.race([
    seen.then(frame).then(frame),
    new Promise((done) => setTimeout(done, PATIENCE_MS)),
  ]);
}
