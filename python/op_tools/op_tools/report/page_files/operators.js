// Sorts and filters the table of operators, and opens the part that a link leads to.
"use strict";

const table = document.getElementById("operators");
const body = table.tBodies[0];
const rows = [...body.rows];
const heads = [...table.tHead.rows[0].cells];
const box = document.querySelector("#filters input");

const amount = (cell) => (cell.dataset.key === "" ? -1 : Number(cell.dataset.key));

function sort(column) {
  const head = heads[column];
  const down = column > 0 ? head.getAttribute("aria-sort") !== "descending" : head.getAttribute("aria-sort") === "ascending";
  for (const other of heads) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const order = (a, b) => (column === 0 ? a.cells[0].textContent.localeCompare(b.cells[0].textContent)
    : amount(a.cells[column]) - amount(b.cells[column]) || 0);
  rows.sort((a, b) => (down ? order(b, a) : order(a, b)));
  body.append(...rows);
}

function filter() {
  const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const row of rows) {
    const text = row.cells[0].textContent.toLowerCase();
    row.hidden = !words.every((word) => text.includes(word));
    shown += row.hidden ? 0 : 1;
  }
  document.getElementById("count").textContent = `${shown} of ${rows.length} operators`;
}

function open() {
  const part = location.hash && document.getElementById(location.hash.slice(1));
  if (part instanceof HTMLDetailsElement) part.open = true;
}

heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => sort(column)));
box.addEventListener("input", filter);
document.getElementById("filters").addEventListener("submit", (event) => event.preventDefault());
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !(event.target instanceof HTMLInputElement)) { event.preventDefault(); box.focus(); }
});
window.addEventListener("hashchange", open);
filter();
open();
