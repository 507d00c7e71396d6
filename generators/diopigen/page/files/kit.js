// Tables that sort, one form that filters them, and the address that keeps the choice, so a link shows the same rows.
"use strict";

const form = document.getElementById("filters");

// What a page shows; a page that draws its rows from data gives its own parts to start().
const page = { rows: [], tables: [], choice: (choice) => choice, count: (rows) => `${rows.length} of ${page.rows.length}` };

function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) if (value) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// -- rows ----------------------------------------------------------------------------------------------------------

// Each `data-<field>` of a line has the words that the field of the form may ask for; `data-text` what the text finds.
function rowOf(line) {
  const words = Object.entries(line.dataset).map(([name, value]) => [name, value.split(" ")]);
  return { ...Object.fromEntries(words), line, text: (line.dataset.text ?? line.textContent).toLowerCase() };
}

function written(table) {
  const numbers = [...table.tHead.rows[0].cells].map((head) => head.classList.contains("number"));
  page.rows = [...table.tBodies[0].rows].map(rowOf);
  const key = (index, number) => ({ line }) => {
    const text = line.cells[index].dataset.key ?? line.cells[index].textContent.trim();
    return number ? Number.parseFloat(text || "-1") : text.toLowerCase();
  };
  const columns = numbers.map((number, index) => ({ key: key(index, number), number }));
  return { name: "sort", table, columns, sort: { column: -1, descending: false }, draw: (row) => row.line };
}

function matches(row, choice) {
  const words = choice.text.toLowerCase().split(/\s+/).filter(Boolean);
  return words.every((word) => (word.startsWith("=") ? row.exactly === word.slice(1) : row.text.includes(word)))
    && Object.entries(choice).every(([name, value]) => name === "text" || !value || row[name].includes(value));
}

function sorted({ heads, columns, sort }, rows) {
  heads.forEach((head, index) => {
    head.setAttribute("aria-sort", index !== sort.column ? "none" : sort.descending ? "descending" : "ascending");
  });
  if (sort.column < 0) return rows;
  const order = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
  const keyed = rows.map((row) => [columns[sort.column].key(row), row]);
  return keyed.sort(([a], [b]) => (sort.descending ? order(b, a) : order(a, b))).map(([, row]) => row);
}

function update() {
  const choice = page.choice(Object.fromEntries(new FormData(form)));
  const rows = page.rows.filter((row) => matches(row, choice));
  const fill = ({ table, draw }, lines) => table.tBodies[0].replaceChildren(...lines.map(draw));
  for (const shown of page.tables) (shown.fill ?? fill)(shown, sorted(shown, shown.rows?.(rows) ?? rows));
  document.getElementById("count").textContent = page.count(rows);
  remember();
}

// -- the address ---------------------------------------------------------------------------------------------------

function remember() {
  const choice = [...new FormData(form)].filter(([, value]) => value);
  for (const { name, names, sort, standard } of page.tables) {
    if (sort.column !== standard.column || sort.descending !== standard.descending) {
      choice.push([name, `${sort.descending ? "-" : ""}${names[sort.column]}`]);
    }
  }
  const address = choice.length ? `#${new URLSearchParams(choice)}` : location.pathname + location.search;
  try {
    history.replaceState(null, "", address);
  } catch {
    // A page that was opened without an address of its own cannot keep anything in it.
  }
}

function recall() {
  for (const [name, value] of new URLSearchParams(location.hash.slice(1))) {
    const shown = page.tables.find((table) => table.name === name && !form.elements[name]);
    const descending = value.startsWith("-");
    const column = shown?.names.indexOf(value.slice(descending ? 1 : 0)) ?? -1;
    if (column >= 0) shown.sort = { column, descending };
    if (form.elements[name]) form.elements[name].value = value;
  }
  update();
}

function go() {
  const part = document.getElementById(location.hash.slice(1));
  if (!part && location.hash.includes("=")) {
    form.reset();
    recall();
  }
  if (part instanceof HTMLDetailsElement) part.open = true;
}

// -- the start -----------------------------------------------------------------------------------------------------

function headed(shown) {
  shown.heads = [...shown.table.tHead.rows[0].cells];
  shown.names = shown.heads.map((head) => head.textContent.trim());
  shown.standard = shown.sort;
  shown.heads.forEach((head, column) => {
    const button = element("button", { type: "button" }, ...head.childNodes);
    button.addEventListener("click", () => {
      const again = shown.sort.column === column;
      shown.sort = { column, descending: again ? !shown.sort.descending : Boolean(shown.columns[column].number) };
      update();
    });
    head.append(button);
  });
}

function start(parts) {
  page.tables = parts.tables ?? [...document.querySelectorAll("table.sortable")].map(written);
  Object.assign(page, parts);
  page.tables.forEach(headed);
  let timer = 0;
  form.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(update, 60); });
  form.addEventListener("reset", () => setTimeout(update));
  form.addEventListener("submit", (event) => event.preventDefault());
  addEventListener("hashchange", go);
  document.addEventListener("keydown", (event) => {
    const typing = event.target.matches("input, select, textarea");
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      form.elements.text.focus();
    }
    if (event.key === "Escape" && event.target === form.elements.text) form.reset();
  });
  go();
  recall();
}
