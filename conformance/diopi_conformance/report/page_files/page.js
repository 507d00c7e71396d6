// The tables of functions and cases, drawn from the data above.
const data = JSON.parse(document.getElementById("data").textContent);
const more = document.getElementById("more");
const PART = 200; // cases drawn at a time
const KINDS = data.tables.kind;
const TYPES = ["bool", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f16", "bf16", "f32", "f64", "c64", "c128"];

const cases = data.id.map((id, index) => {
  const [symbol, op, family] = data.tables.function[data.function[index]];
  const message = data.tables.message[data.message[index]];
  const ways = data.tables.words[data.words[index]];
  return {
    id, symbol, op, family, message,
    exactly: symbol.toLowerCase(),
    type: data.tables.elements[data.elements[index]],
    way: ways.length ? ways : ["plain"],
    kind: KINDS[data.kind[index]],
    verdict: [data.tables.verdict[data.verdict[index]], KINDS[data.kind[index]]],
    error: data.error[index], ulp: data.ulp[index], ms: data.ms[index],
    text: `${id} ${symbol} ${message}`.toLowerCase(),
  };
});
const types = [...new Set(data.tables.elements.flat())].filter(Boolean)
  .sort((a, b) => TYPES.indexOf(a) - TYPES.indexOf(b) || a.localeCompare(b));

const amount = (value) => (typeof value === "string" ? Infinity : value ?? -1);
const shortest = (value) => (value === null ? "" : typeof value === "number" && (value >= 1e5 || (value && value < 1e-3)) ? value.toExponential(1) : String(value));
const quoted = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'"'"'`)}'`);

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
    for (const type of new Set(entry.type)) {
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
  name: "functions",
  rows: summed,
  draw: (row) => drawn(functions.columns, row),
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
  name: "cases",
  fill(shown, rows) {
    shown.table.tBodies[0].replaceChildren();
    queue = rows;
    drawPart(PART);
  },
  table: document.getElementById("cases"),
  sort: { column: 1, descending: false },
  columns: [
    { name: "case", key: (row) => row.id, draw: (row) => element("th", { scope: "row" }, row.id) },
    {
      name: "verdict",
      key: (row) => ["bad", "known", "lacks", "pass"].indexOf(row.kind),
      draw: (row) => element("td", { class: row.kind }, row.verdict[0]),
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

for (const shown of [functions, table]) {
  const heads = shown.columns.map(({ name, number }) => element("th", { scope: "col", class: number && "number" }, name));
  shown.table.tHead.append(element("tr", {}, ...heads));
}

const drawn = (columns, row) => element("tr", {}, ...columns.map((column) =>
  (column.draw ? column.draw(row) : element("td", { class: column.number && "number" }, column.show(row)))));

let queue = [];

function drawPart(length) {
  table.table.tBodies[0].append(...queue.splice(0, length).map((row) => drawn(table.columns, row)));
  more.hidden = !queue.length;
  more.textContent = `Show ${Math.min(5 * PART, queue.length)} more of ${queue.length}`;
}

function offered(name, words) {
  form.elements[name].append(...words.map((text) => element("option", { value: text }, text)));
}

offered("family", [...new Set(cases.map((entry) => entry.family))].filter(Boolean).sort());
offered("type", types);
offered("way", ["plain", ...[...new Set(data.tables.words.flat())].sort()]);
const found = new Set(cases.flatMap((entry) => entry.verdict));
offered("verdict", ["bad", ...data.tables.verdict.filter((verdict) => found.has(verdict)), ...(found.has("known") ? ["known"] : [])]);
more.addEventListener("click", () => drawPart(5 * PART));
start({
  rows: cases,
  tables: [functions, table],
  count: (rows) => `${rows.length} of ${cases.length} cases, ${summed(rows).length} functions`,
});
