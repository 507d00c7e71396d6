// Draws the tables of functions and cases from the data below them, filtered and sorted; the address keeps the choice.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const form = document.getElementById("filters");
const more = document.getElementById("more");
const PART = 200; // cases drawn at a time
const KINDS = data.tables.kind;
const TYPES = ["bool", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f16", "bf16", "f32", "f64", "c64", "c128"];

const cases = data.id.map((id, index) => {
  const [symbol, op, family] = data.tables.function[data.function[index]];
  const message = data.tables.message[data.message[index]];
  return {
    id, symbol, op, family, message,
    types: data.tables.elements[data.elements[index]],
    ways: data.tables.words[data.words[index]],
    kind: KINDS[data.kind[index]],
    verdict: data.tables.verdict[data.verdict[index]],
    error: data.error[index], ulp: data.ulp[index], ms: data.ms[index],
    text: `${id} ${symbol} ${message}`.toLowerCase(),
  };
});
const types = [...new Set(data.tables.elements.flat())].filter(Boolean)
  .sort((a, b) => TYPES.indexOf(a) - TYPES.indexOf(b) || a.localeCompare(b));

const amount = (value) => (typeof value === "string" ? Infinity : value ?? -1);
const shortest = (value) => (value === null ? "" : typeof value === "number" && (value >= 1e5 || (value && value < 1e-3)) ? value.toExponential(1) : String(value));
const quoted = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'"'"'`)}'`);

function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) if (value) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// -- what is shown -------------------------------------------------------------------------------------------------

function wanted() {
  const choice = Object.fromEntries(new FormData(form));
  const words = choice.text.toLowerCase().split(/\s+/).filter(Boolean);
  return cases.filter((entry) => (!choice.verdict || entry.verdict === choice.verdict || entry.kind === choice.verdict)
    && (!choice.family || entry.family === choice.family)
    && (!choice.type || entry.types.includes(choice.type))
    && (!choice.way || (choice.way === "plain" ? !entry.ways.length : entry.ways.includes(choice.way)))
    && words.every((word) => (word.startsWith("=") ? entry.symbol.toLowerCase() === word.slice(1) : entry.text.includes(word))));
}

const cell = () => ({ total: 0, pass: 0, bad: 0, lacks: 0, known: 0 });
const count = (sum, kind) => { sum.total += 1; sum[kind] += 1; };
const color = (sum) => (sum.bad ? "bad" : sum.known ? "known" : sum.lacks ? "lacks" : sum.pass ? "pass" : "");

function summed(entries) {
  const found = new Map();
  for (const entry of entries) {
    let row = found.get(entry.symbol);
    if (!row) {
      row = { symbol: entry.symbol, family: entry.family, all: cell(), types: new Map(), ulp: null, error: null };
      found.set(entry.symbol, row);
    }
    count(row.all, entry.kind);
    for (const type of new Set(entry.types)) {
      if (!row.types.has(type)) row.types.set(type, cell());
      count(row.types.get(type), entry.kind);
    }
    if (entry.kind !== "pass") continue;
    if (amount(entry.ulp) > amount(row.ulp)) row.ulp = entry.ulp;
    if (amount(entry.error) > amount(row.error)) row.error = entry.error;
  }
  return [...found.values()];
}

// -- the two tables ------------------------------------------------------------------------------------------------

const some = (name, key, number = true) => ({ name, key, number, show: (row) => String(key(row) || "") });
const typed = (type) => ({
  name: type,
  number: true,
  key: (row) => row.types.get(type)?.total ?? -1,
  draw(row) {
    const sum = row.types.get(type);
    if (!sum) return element("td", {});
    const text = sum.pass === sum.total ? `${sum.total}` : `${sum.pass}/${sum.total}`;
    const told = KINDS.filter((kind) => sum[kind]).map((kind) => `${sum[kind]} ${kind}`).join(", ");
    return element("td", { class: `number ${color(sum)}`, title: `${row.symbol} ${type}: ${told}` }, text);
  },
});
const figure = (name, key) => ({ name, number: true, key: (row) => amount(key(row)), show: (row) => shortest(key(row)) });
const word = (name, key) => ({ name, key, show: key });

const functions = {
  table: document.getElementById("functions"),
  sort: { column: 0, descending: false },
  columns: [
    {
      name: "function",
      key: (row) => row.symbol,
      draw(row) {
        const button = element("button", { type: "button", title: `Only cases of ${row.symbol}` }, row.symbol);
        button.addEventListener("click", () => { form.elements.text.value = `=${row.symbol}`; update(); });
        return element("th", { scope: "row" }, button);
      },
    },
    word("family", (row) => row.family),
    some("cases", (row) => row.all.total),
    some("pass", (row) => row.all.pass),
    some("bad", (row) => row.all.bad),
    some("lacks", (row) => row.all.lacks),
    some("known", (row) => row.all.known),
    figure("max ULP", (row) => row.ulp),
    figure("max error", (row) => row.error),
    ...types.map(typed),
  ],
};

const table = {
  table: document.getElementById("cases"),
  sort: { column: 1, descending: false },
  columns: [
    { name: "case", key: (row) => row.id, draw: (row) => element("th", { scope: "row" }, row.id) },
    {
      name: "verdict",
      key: (row) => ["bad", "known", "lacks", "pass"].indexOf(row.kind),
      draw: (row) => element("td", { class: row.kind }, row.verdict),
    },
    figure("max ULP", (row) => row.ulp),
    figure("max error", (row) => row.error),
    figure("ms", (row) => row.ms),
    {
      name: "message",
      key: (row) => row.message,
      draw(row) {
        const made = element("td", { class: "text" }, row.message);
        const command = ["diopi-conformance repro", quoted(row.id), "--vendor", quoted(data.vendor), ...data.options].join(" ");
        if (row.kind === "bad") made.append(element("code", {}, command));
        return made;
      },
    },
  ],
};

function headed(shown) {
  const row = element("tr", {}, ...shown.columns.map((column, index) => {
    const button = element("button", { type: "button" }, column.name);
    button.addEventListener("click", () => {
      const descending = shown.sort.column === index ? !shown.sort.descending : Boolean(column.number);
      shown.sort = { column: index, descending };
      update();
    });
    return element("th", { scope: "col", class: column.number && "number", "aria-sort": "none" }, button);
  }));
  shown.table.tHead.append(row);
}

function sorted(shown, rows) {
  const { column, descending } = shown.sort;
  const { key, number } = shown.columns[column];
  const order = number || typeof key(rows[0] ?? cases[0]) === "number" ? (a, b) => a - b : (a, b) => (a < b ? -1 : a > b ? 1 : 0);
  [...shown.table.tHead.rows[0].cells].forEach((heading, index) => {
    heading.setAttribute("aria-sort", index !== column ? "none" : descending ? "descending" : "ascending");
  });
  const found = rows.map((row) => [key(row), row]).sort(([a], [b]) => (descending ? order(b, a) : order(a, b)));
  return found.map(([, row]) => row);
}

const drawn = (shown, row) => element("tr", {}, ...shown.columns.map((column) =>
  (column.draw ? column.draw(row) : element("td", { class: column.number && "number" }, column.show(row)))));

let queue = [];

function drawPart(length) {
  const part = queue.splice(0, length);
  table.table.tBodies[0].append(...part.map((row) => drawn(table, row)));
  more.hidden = !queue.length;
  more.textContent = `Show ${Math.min(5 * PART, queue.length)} more of ${queue.length}`;
}

function update() {
  const entries = wanted();
  const rows = summed(entries);
  functions.table.tBodies[0].replaceChildren(...sorted(functions, rows).map((row) => drawn(functions, row)));
  table.table.tBodies[0].replaceChildren();
  queue = sorted(table, entries);
  drawPart(PART);
  document.getElementById("count").textContent =
    `${entries.length} of ${cases.length} cases, ${rows.length} functions`;
  remember();
}

// -- the address ---------------------------------------------------------------------------------------------------

const orders = { functions: { shown: functions, column: 0 }, cases: { shown: table, column: 1 } };

function remember() {
  const choice = [...new FormData(form)].filter(([, value]) => value);
  for (const [name, { shown, column }] of Object.entries(orders)) {
    const { sort } = shown;
    if (sort.column !== column || sort.descending) {
      choice.push([name, `${sort.descending ? "-" : ""}${shown.columns[sort.column].name}`]);
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
    if (orders[name]) {
      const descending = value.startsWith("-");
      const { shown } = orders[name];
      const column = shown.columns.findIndex((entry) => entry.name === value.slice(descending ? 1 : 0));
      if (column >= 0) shown.sort = { column, descending };
    } else if (form.elements[name]) {
      form.elements[name].value = value;
    }
  }
}

function offered(name, words) {
  form.elements[name].append(...words.map((text) => element("option", { value: text }, text)));
}

offered("family", [...new Set(cases.map((entry) => entry.family))].filter(Boolean).sort());
offered("type", types);
offered("way", ["plain", ...[...new Set(data.tables.words.flat())].sort()]);
offered("verdict", ["bad", ...data.tables.verdict.filter((verdict) => cases.some((entry) => entry.verdict === verdict)), ...(cases.some((entry) => entry.kind === "known") ? ["known"] : [])]);
headed(functions);
headed(table);
recall();
update();

let timer = 0;
form.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(update, 60); });
form.addEventListener("reset", () => setTimeout(update));
form.addEventListener("submit", (event) => event.preventDefault());
more.addEventListener("click", () => drawPart(5 * PART));
document.addEventListener("keydown", (event) => {
  const typing = event.target.matches("input, select, textarea");
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    form.elements.text.focus();
  }
  if (event.key === "Escape" && event.target === form.elements.text) form.reset();
});
