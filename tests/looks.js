// The flaws of a page: texts and controls that overlap or are cut. Called by looks.py.
([roots, ignored]) => {
  const isShown = (each) =>
    each.checkVisibility({ opacityProperty: true, visibilityProperty: true }) && !each.closest(ignored);

  // The boxes of a control, or of an element's own text.
  const boxesOf = (each) => {
    if (each.matches("input, select, button, summary")) return [each.getBoundingClientRect()];
    const range = document.createRange();
    return [...each.childNodes]
      .filter((node) => node.nodeType === Node.TEXT_NODE && node.data.trim())
      .flatMap((node) => {
        range.selectNodeContents(node);
        return [...range.getClientRects()];
      });
  };

  const scrolls = (overflow) => overflow === "auto" || overflow === "scroll";

  // What can be seen of a box, and whether any of it is lost: hidden where nothing can be scrolled.
  const seen = (each, { left, top, right, bottom }) => {
    let isCut = left < -1 || right > innerWidth + 1;
    for (let around = each; around && around !== document.body; around = around.parentElement) {
      const { overflowX, overflowY } = getComputedStyle(around);
      if (overflowX === "visible") continue;
      const box = around.getBoundingClientRect();
      isCut = (isCut && !scrolls(overflowX))
        || (!scrolls(overflowX) && (left < box.left - 1 || right > box.right + 1))
        || (!scrolls(overflowY) && (top < box.top - 2 || bottom > box.bottom + 2));
      [left, right] = [Math.max(left, box.left), Math.min(right, box.right)];
      [top, bottom] = [Math.max(top, box.top), Math.min(bottom, box.bottom)];
    }
    return { each, left, top, right, bottom, isCut };
  };

  const nameOf = (each) => {
    const text = (each.textContent || each.id).trim().replace(/\s+/g, " ");
    return `${each.tagName.toLowerCase()} “${text.slice(0, 40)}”`;
  };

  const parts = [...document.querySelectorAll(roots)]
    .flatMap((root) => [...root.querySelectorAll("*")])
    .filter(isShown)
    .flatMap((each) => boxesOf(each).map((box) => seen(each, box)))
    .filter(({ left, right, top, bottom }) => right - left > 1 && bottom - top > 1)
    .sort((one, other) => one.top - other.top);
  const flaws = parts.filter(({ isCut }) => isCut).map(({ each }) => `cut: ${nameOf(each)}`);
  parts.forEach((one, index) => {
    for (const other of parts.slice(index + 1)) {
      if (other.top >= one.bottom - 2) break;
      if (one.each.contains(other.each) || other.each.contains(one.each)) continue;
      if (one.left < other.right - 1 && other.left < one.right - 1) {
        flaws.push(`overlap: ${nameOf(one.each)} and ${nameOf(other.each)}`);
      }
    }
  });
  return [...new Set(flaws)];
}
