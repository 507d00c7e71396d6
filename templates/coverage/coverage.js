// Filters and sorts the table of functions; the address keeps the choice, so a link shows the same rows.
"use strict";

const form = document.getElementById("filters");
const table = document.getElementById("functions");
const body = table.tBodies[0];
const headings = [...table.tHead.rows[0].cells];
const FIRST_TYPE = headings.findIndex((heading) => heading.dataset.dtype);
const types = headings.filter((heading) => heading.dataset.dtype).map((heading) => heading.dataset.dtype);

const rows = [...body.rows].map((element) => {
  const cells = [...element.cells];
  return {
    element,
    words: cells.map((cell) => cell.textContent.trim()),
    text: [element.dataset.op, cells[0].textContent, cells.at(-1).title].join(" ").toLowerCase(),
    topic: cells[1].textContent,
    header: cells[2].textContent,
    state: cells[3].className,
    cases: element.dataset.cases,
    types: new Map(types.map((type, index) => [type, cells[FIRST_TYPE + index].className])),
  };
});

function hasState(row, type, state) {
  if (type) {
    const found = row.types.get(type);
    return found !== "none" && (!state || found === state);
  }
  return !state || row.state === state || [...row.types.values()].includes(state);
}

function matches(row, choice) {
  return choice.text.toLowerCase().split(/\s+/).every((word) => row.text.includes(word))
    && (!choice.topic || row.topic === choice.topic)
    && (!choice.header || row.header === choice.header)
    && (!choice.cases || row.cases === choice.cases)
    && hasState(row, choice.dtype, choice.state);
}

function filter() {
  const choice = Object.fromEntries(new FormData(form));
  let shown = 0;
  for (const row of rows) {
    row.element.hidden = !matches(row, choice);
    shown += row.element.hidden ? 0 : 1;
  }
  document.getElementById("count").textContent = `${shown} of ${rows.length} functions`;
}

function sort(column, descending) {
  const numbers = headings.length - column <= 3; // cases, max ULP, ATen
  const key = (row) => (numbers ? parseFloat(row.words[column] || "-1") : row.words[column]);
  const order = (a, b) => (numbers ? a - b : a.localeCompare(b, "en"));
  const sorted = [...rows].sort((a, b) => (descending ? order(key(b), key(a)) : order(key(a), key(b))));
  body.append(...sorted.map((row) => row.element));
  headings.forEach((heading, index) => {
    const direction = descending ? "descending" : "ascending";
    heading.setAttribute("aria-sort", index === column ? direction : "none");
  });
}

function remember() {
  const choice = [...new FormData(form)].filter(([, value]) => value);
  const column = headings.findIndex((heading) => heading.getAttribute("aria-sort") !== "none");
  if (column >= 0) {
    const descending = headings[column].getAttribute("aria-sort") === "descending";
    choice.push(["sort", `${descending ? "-" : ""}${headings[column].textContent.trim()}`]);
  }
  history.replaceState(null, "", choice.length ? `#${new URLSearchParams(choice)}` : location.pathname);
}

function recall() {
  for (const [name, value] of new URLSearchParams(location.hash.slice(1))) {
    if (name === "sort") {
      const descending = value.startsWith("-");
      const column = headings.findIndex((heading) => heading.textContent.trim() === value.slice(descending ? 1 : 0));
      if (column >= 0) sort(column, descending);
    } else if (form.elements[name]) {
      form.elements[name].value = value;
    }
  }
  filter();
}

form.addEventListener("input", () => { filter(); remember(); });
form.addEventListener("reset", () => setTimeout(() => { filter(); remember(); }));
form.addEventListener("submit", (event) => event.preventDefault());
headings.forEach((heading, column) => heading.querySelector("button").addEventListener("click", () => {
  sort(column, heading.getAttribute("aria-sort") === "ascending");
  remember();
}));
document.addEventListener("keydown", (event) => {
  const typing = event.target.matches("input, select, textarea");
  if (event.key === "/" && !typing) {
    event.preventDefault();
    form.elements.text.focus();
  }
  if (event.key === "Escape" && event.target === form.elements.text) form.reset();
});
recall();
