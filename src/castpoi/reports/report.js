/* A click on a heading sorts the lines of its table: numbers high to low first, words A to Z. */
"use strict";
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    head.firstElementChild.addEventListener("click", () => {
      const isNumber = head.classList.contains("number");
      const first = isNumber ? "descending" : "ascending";
      const other = isNumber ? "ascending" : "descending";
      const order = head.getAttribute("aria-sort") === first ? other : first;
      heads.forEach((each) => each.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", order);
      const sign = order === "ascending" ? 1 : -1;
      const lines = [...table.tBodies[0].rows];
      lines.sort((one, two) => sign * compare(one.cells[column], two.cells[column], sign));
      table.tBodies[0].append(...lines);
    });
  });
}

/* Cells without a number come last, whichever way the others are sorted. */
function compare(one, two, sign) {
  const [a, b] = [one.dataset.value, two.dataset.value];
  if (a !== undefined && b !== undefined) return Number(a) - Number(b);
  if (a !== undefined || b !== undefined) return a === undefined ? sign : -sign;
  return one.textContent.localeCompare(two.textContent);
}
