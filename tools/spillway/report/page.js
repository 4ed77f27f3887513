// From the data to the page: every text of the data goes in by textContent or title, never as HTML.

// make("p", {class: "x", title: "…"}, child, "text", …); null children are left out.
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

function section(id) {
  return document.getElementById(id);
}

function note(text) {
  return make("p", { class: "muted note" }, text);
}

// A name that may be long: cut by the style sheet, whole in its tooltip.
function name_of(text, kind = "") {
  const safe = shown(text);
  return make("span", { class: `name ${kind}`, title: safe }, safe);
}

// A sentence of the data: of several lines at most, whole in its tooltip.
function sentence_of(text) {
  const safe = shown(text);
  return make("span", { class: "sentence", title: safe.length > 200 ? safe : "" }, safe);
}

// Titles with their values: [title, value] each.
function facts_list(facts) {
  const one = ([title, value]) => make("div", {}, make("dt", {}, title), make("dd", {}, value));
  return make("dl", { class: "facts-list" }, ...facts.map(one));
}

function copied_command(words) {
  const line = words.map(shell_word).join(" ");
  const code = make("code", { class: "command", tabindex: "0" }, shown(line));
  const button = make("button", { type: "button", class: "quiet" }, "Copy");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(line);
      button.textContent = "Copied";
    } catch {
      // where a page from a file may not: it is marked, ready for Ctrl-C
      getSelection().selectAllChildren(code);
      button.textContent = "Marked: Ctrl-C";
    }
    setTimeout(() => {
      button.textContent = "Copy";
    }, 2000);
  });
  return make("div", { class: "copied" }, code, button);
}

// The words that run the program again with so much memory.
function run_again(data, memory_bytes) {
  const given = list_of(data.options).map(String);
  const options = given.filter(
    (word, index) => !word.startsWith("--memory=") && word !== "--memory" && given[index - 1] !== "--memory",
  );
  if (memory_bytes) options.unshift("--memory", size_option(memory_bytes));
  return ["spillway", "run", ...options, "--report", "report.html", "--", ...list_of(data.command)];
}

function show_head(data) {
  const command = list_of(data.command).map(shell_word).join(" ") || "An unnamed program";
  const title = section("command");
  title.replaceChildren(name_of(command));
  document.title = `${shown(command).slice(0, 80)} · Spillway report`;

  const facts = [];
  const code = number_of(data.ended?.code),
    signal = number_of(data.ended?.signal);
  if (signal)
    facts.push(
      make(
        "span",
        { class: "badge bad" },
        `✕ ended by signal ${signal}${signal_names[signal] ? ` (${signal_names[signal]})` : ""}`,
      ),
    );
  else if (code) facts.push(make("span", { class: "badge bad" }, `✕ ended with exit code ${code}`));
  else if (code === 0) facts.push(make("span", { class: "badge good" }, "✓ finished"));
  else facts.push(make("span", { class: "badge" }, "how it ended was not recorded"));
  const wall = number_of(data.wall_seconds);
  if (wall !== null) facts.push(make("span", {}, make("strong", {}, seconds(wall))));
  const started = new Date(data.started ?? NaN);
  if (!Number.isNaN(started.getTime())) {
    const time = make("time", { datetime: started.toISOString() });
    time.textContent = started.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
    facts.push(time);
  }
  const machine = data.machine ?? {};
  const parts = [
    machine.name ? `on ${shown(machine.name)}` : null,
    number_of(machine.processors) ? `${machine.processors} processor${machine.processors === 1 ? "" : "s"}` : null,
    number_of(machine.memory_bytes) ? `${bytes(machine.memory_bytes)} of memory` : null,
    machine.kernel ? `Linux ${shown(machine.kernel)}` : null,
  ].filter(Boolean);
  if (parts.length) facts.push(make("span", {}, parts.join(", ")));
  section("facts").append(...facts);
}

function show_outcome(data) {
  const line = data.summary?.closing_line;
  const outcome = section("outcome");
  const no_line =
    data.summary?.misses === 0
      ? "Everything fit in memory: nothing had to be spilled."
      : "The run left no closing line.";
  outcome.append(make("p", { class: "closing" }, line ? sentence_of(line) : no_line));
  if (data.summary?.without) outcome.append(make("p", { class: "without" }, sentence_of(data.summary.without)));
}

function show_advice(data) {
  const { verdict, title, lines, memory_bytes } = advice_of(data);
  const panel = section("advice");
  panel.classList.add(verdict);
  panel.append(make("p", { class: "verdict" }, title));
  for (const line of lines) panel.append(make("p", {}, line));
  if (memory_bytes) panel.append(copied_command(run_again(data, memory_bytes)));
}

// A card: what, a large number, a meter of a share or none, and a line below.
function card(what, number, below, filled = null, kind = "") {
  const element = make("div", { class: `card ${kind}` }, make("h3", {}, what), make("p", { class: "large" }, number));
  if (filled !== null) {
    const inner = make("span", {});
    inner.style.width = `${Math.min(1, Math.max(0, filled)) * 100}%`;
    element.append(make("div", { class: "meter", "aria-hidden": "true" }, inner));
  }
  if (below) element.append(make("p", { class: "muted" }, below));
  return element;
}

function show_figures(data) {
  const summary = data.summary ?? {},
    latencies = data.latencies ?? {};
  const of = (name) => number_of(summary[name]);
  const wall = number_of(data.wall_seconds);
  const a_second = (value, format) => (wall > 0 && value > 0 ? `${format(value / wall)} on average` : "");
  const rate = (value) => `${bytes(value)}/s`;
  const cards = [];
  const peak = of("peak_bytes"),
    cap = of("cap_bytes"),
    waiting = of("waiting_share"),
    misses = of("misses");
  if (peak !== null && cap)
    cards.push(
      card("Memory at its peak", bytes(peak), `${share(peak / cap)} of the cap of ${bytes(cap)}`, peak / cap, "memory"),
    );
  else if (peak !== null) cards.push(card("Memory at its peak", bytes(peak), "the cap was not recorded"));
  if (waiting !== null)
    cards.push(card("Time spent waiting", share(waiting), "of the threads' time, for misses", waiting, "waiting"));
  if (misses !== null)
    cards.push(
      card(
        "Misses",
        count(misses),
        a_second(misses, (value) => `${count(value)}/s`),
      ),
    );
  const written = of("spilled_bytes"),
    read = of("read_bytes");
  if (written !== null) cards.push(card("Spilled to the store", bytes(written), a_second(written, rate)));
  if (read !== null) cards.push(card("Read back", bytes(read), a_second(read, rate)));
  if (number_of(latencies.count) > 0) {
    const half = number_of(latencies.p50_ns),
      most = number_of(latencies.p99_ns);
    if (half !== null)
      cards.push(
        card("A miss takes", nanoseconds(half), most === null ? "" : `one in a hundred over ${nanoseconds(most)}`),
      );
  }
  section("figures").append(
    cards.length ? make("div", { class: "cards" }, ...cards) : note("The run recorded no totals."),
  );
}

// columns: {title, of: row -> number or text, show: row -> element or text, number: bool,
// rest: more of the title, or nothing; less: "wide" or "medium", the window that it needs}. A click on a title sorts.
const rows_at_first = 15;

function class_of(column) {
  return `${column.number ? "number" : ""} ${column.less ?? ""}`.trim();
}

function table(caption, columns, rows, sorted = null) {
  const body = make("tbody");
  let order = sorted,
    descending = true,
    all = rows.length <= rows_at_first + 3;
  const more = make("button", { type: "button", class: "quiet more" }, `Show all ${rows.length}`);
  const heads = columns.map((column) => {
    const button = make("button", { type: "button", class: "sort" }, column.title, column.rest);
    button.addEventListener("click", () => {
      descending = order === column ? !descending : Boolean(column.number);
      order = column;
      fill();
    });
    return make("th", { scope: "col", class: class_of(column) }, button);
  });
  function compare(left, right) {
    const one = order.of(left),
      other = order.of(right);
    if (one === null || other === null) return (one === null) - (other === null); // what is not known comes last
    const result = typeof one === "number" ? one - other : String(one).localeCompare(String(other));
    return descending ? -result : result;
  }
  function fill() {
    const ordered = order ? [...rows].sort(compare) : rows;
    body.replaceChildren(
      ...(all ? ordered : ordered.slice(0, rows_at_first)).map((row) =>
        make(
          "tr",
          {},
          ...columns.map((column) =>
            make("td", { class: class_of(column) }, column.show ? column.show(row) : shown(column.of(row) ?? "–")),
          ),
        ),
      ),
    );
    heads.forEach((head, index) => {
      if (columns[index] === order) head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    more.hidden = all;
  }
  more.addEventListener("click", () => {
    all = true;
    fill();
  });
  if (sorted && !columns.includes(sorted)) throw new Error("a table is sorted by one of its columns");
  fill();
  return make(
    "div",
    { class: "scrolled", tabindex: "0", role: "region", "aria-label": caption },
    make(
      "table",
      {},
      make("caption", { class: "only-heard" }, caption),
      make("thead", {}, make("tr", {}, ...heads)),
      body,
    ),
    more,
  );
}

function number_column(title, field, format) {
  const of = (row) => number_of(row[field]);
  return { title, number: true, of, show: (row) => (of(row) === null ? "–" : format(of(row))) };
}

function text_column(title, field, kind = "") {
  const of = (row) => (row[field] ? String(row[field]) : null);
  return { title, of, show: (row) => (of(row) === null ? "–" : name_of(of(row), kind)) };
}

// A share with its bar, drawn relative to the largest of the rows.
function bar_column(rows, kind) {
  const column = number_column("Share", "share", share);
  column.rest = make("span", { class: "medium" }, " of misses");
  const most = Math.max(...rows.map((row) => column.of(row) ?? 0), 0);
  column.show = (row) => {
    if (column.of(row) === null) return "–";
    const bar = make("span", { class: `bar ${kind}`, "aria-hidden": "true" });
    bar.style.width = `${most > 0 ? (column.of(row) / most) * 100 : 0}%`;
    return make(
      "span",
      { class: "barred" },
      make("span", { class: "track" }, bar),
      make("span", {}, share(column.of(row))),
    );
  };
  return column;
}

const kinds = { allocation: "allocation", file: "mapped file", small: "small allocations" };

function show_hottest(data) {
  const allocations = list_of(data.allocations),
    functions = list_of(data.functions);
  const no_misses = number_of(data.summary?.misses) === 0;
  if (allocations.length) {
    const misses = { ...number_column("Misses", "misses", count), less: "medium" };
    const kind = { title: "Kind", less: "wide", of: (row) => kinds[row.kind] ?? shown(row.kind ?? "–") };
    section("allocations").append(
      table(
        "Hottest allocations",
        [
          text_column("Allocated by", "name", "code"),
          kind,
          { ...number_column("Size", "bytes", bytes), less: "wide" },
          misses,
          bar_column(allocations, "memory"),
        ],
        allocations,
        misses,
      ),
    );
  } else
    section("allocations").append(
      note(
        no_misses
          ? "No allocation missed: all of them stayed in memory."
          : "Which allocations missed was not recorded.",
      ),
    );
  if (functions.length) {
    const misses = { ...number_column("Misses", "misses", count), less: "medium" };
    section("functions").append(
      table(
        "Hottest functions",
        [
          text_column("Function", "name", "code"),
          text_column("Source", "source", "code"),
          { ...text_column("In", "library"), less: "wide" },
          misses,
          bar_column(functions, "waiting"),
        ],
        functions,
        misses,
      ),
    );
  } else
    section("functions").append(
      note(
        no_misses
          ? "No function waited for data."
          : "Which functions missed was not recorded, or their names were not to be found.",
      ),
    );
}

function show_rest(data) {
  const chosen = list_of(data.chosen),
    processes = list_of(data.processes),
    notices = list_of(data.notices);
  section("chosen").append(
    chosen.length
      ? table(
          "What was chosen, and why",
          [
            text_column("What", "what"),
            text_column("Value", "value", "code"),
            { title: "Why", of: (row) => row.why ?? null, show: (row) => (row.why ? sentence_of(row.why) : "–") },
          ],
          chosen,
        )
      : note("The run recorded no choices."),
  );
  if (processes.length > 1) {
    const peak = number_column("Peak memory", "peak_bytes", bytes);
    section("processes").append(
      table(
        "Processes",
        [
          { title: "Process", of: (row) => number_of(row.process) },
          text_column("Program", "program", "code"),
          peak,
          { ...number_column("Misses", "misses", count), less: "medium" },
          number_column("Ran for", "seconds", seconds),
        ],
        processes,
        peak,
      ),
    );
    section("processes").hidden = false;
  }
  if (notices.length) {
    section("notices").append(make("ul", {}, ...notices.map((line) => make("li", {}, sentence_of(line)))));
    section("notices").hidden = false;
  }
  const reproduce = section("reproduce");
  if (list_of(data.command).length)
    reproduce.append(copied_command(run_again(data, number_of(data.summary?.cap_bytes))));
  else reproduce.append(note("The command was not recorded."));
  const save = make("button", { type: "button", class: "quiet" }, "Save the numbers as JSON");
  save.addEventListener("click", () => {
    const address = URL.createObjectURL(new Blob([JSON.stringify(data, null, 1)], { type: "application/json" }));
    make("a", { href: address, download: "spillway-report.json" }).click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
  });
  reproduce.append(make("p", { class: "muted" }, "Everything this page shows is inside it. ", save));
  section("made").textContent = `Made by Spillway ${shown(data.version ?? "(version not recorded)")}.`;
}

const themes = ["system", "light", "dark"];
let chosen_theme = "system";

// The charts follow by the event.
function apply_theme(theme = chosen_theme) {
  const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  document.documentElement.dataset.theme = theme === "system" ? system : theme;
  document.dispatchEvent(new Event("theme"));
}

function offer_themes() {
  const button = section("theme");
  button.addEventListener("click", () => {
    chosen_theme = themes[(themes.indexOf(chosen_theme) + 1) % themes.length];
    button.textContent = `Theme: ${chosen_theme}`;
    apply_theme();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => apply_theme());
  addEventListener("beforeprint", () => apply_theme("light"));
  addEventListener("afterprint", () => apply_theme());
  apply_theme();
}

function refuse_to_show(why) {
  section("broken").textContent = why;
  section("broken").hidden = false;
  for (const panel of document.querySelectorAll("main > section, main > .pair")) panel.hidden = true;
}

// The page's one entry: the text of the data.
function show_report(text) {
  offer_themes();
  section("licence").hidden = section("licence-text").textContent.trim() === "";
  let data;
  try {
    data = JSON.parse(text);
  } catch (error) {
    return refuse_to_show(
      `The data inside this page cannot be read (${error.message}). Was the file cut short? Run the program again.`,
    );
  }
  if (data?.schema !== 1)
    return refuse_to_show(
      `The data inside this page is of schema ${shown(data?.schema)}, and this version of the page reads 1.`,
    );
  show_head(data);
  show_outcome(data);
  show_advice(data);
  show_figures(data);
  show_hottest(data);
  show_rest(data);
  show_charts(data);
}
