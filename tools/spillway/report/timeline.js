// Charts over time: one axis of time for all, one cursor, one zoom.

// [title, source of the missing-line, unit of the largest value, series: [name, column, colour, style]]
function timeline_charts(data) {
  const samples = data.samples ?? {},
    cap = number_of(data.summary?.cap_bytes);
  const per_second = (unit) => `${unit.word} a second`.trim();
  return [
    {
      title: "Memory",
      unit: byte_unit,
      name: (unit) => unit.name,
      show: bytes,
      height: 150,
      level: cap,
      series: [{ name: "in memory", column: "memory_bytes", colour: "memory" }],
    },
    {
      title: "Misses",
      unit: count_unit,
      name: per_second,
      show: (value) => `${count(value)}/s`,
      height: 130,
      series: [{ name: "misses", column: "misses_per_s", colour: "misses" }],
    },
    {
      title: "Traffic with the store",
      unit: byte_unit,
      name: (unit) => `${unit.name}/s`,
      show: (value) => `${bytes(value)}/s`,
      height: 130,
      series: [
        { name: "read", column: "read_bytes_per_s", colour: "read" },
        { name: "written", column: "write_bytes_per_s", colour: "write", dashed: true, fill: false },
      ],
    },
    {
      title: "Threads",
      unit: () => ({ divisor: 1, name: "" }),
      name: () => "threads",
      show: digits,
      height: 150,
      stacked: true,
      series: [
        { name: "running", column: "running_threads", colour: "running", fill: 22 },
        { name: "waiting for data", column: "waiting_threads", colour: "waiting", fill: 50, dashed: true },
      ],
    },
  ].map((one) => ({
    ...one,
    series: one.series
      .map((each) => ({ ...each, values: list_of(samples[each.column]).map(number_of) }))
      .filter((each) => each.values.some((value) => value !== null)),
  }));
}

// Ticks of a time axis at round times.
const time_steps = [
  0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200,
  14400, 21600, 43200, 86400,
];
function time_ticks(axis) {
  const wanted = Math.max(2, Math.floor(axis.width / 90)),
    range = axis.max - axis.min;
  const step = time_steps.find((one) => range / one <= wanted) ?? Math.ceil(range / wanted / 86400) * 86400;
  axis.step = step;
  axis.ticks = [];
  for (let at = Math.ceil(axis.min / step - 1e-9); at * step <= axis.max * (1 + 1e-9); ++at)
    axis.ticks.push({ value: at * step });
}

function nearest(times, time) {
  let low = 0,
    high = times.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] < time) low = middle + 1;
    else high = middle;
  }
  return low > 0 && time - times[low - 1] < times[low] - time ? low - 1 : low;
}

// What is known of a chart while nobody points at it: the highest value in sight.
function highest(series, times, view) {
  let most = null;
  series.values.forEach((value, index) => {
    if (value !== null && times[index] >= view.min && times[index] <= view.max && (most === null || value > most))
      most = value;
  });
  return most;
}

class Timeline {
  constructor(data, times, panel) {
    this.times = times;
    this.whole = { min: 0, max: Math.max(number_of(data.wall_seconds) ?? 0, times.at(-1)) || 1 };
    this.state = { cursor: null };
    this.view = { ...this.whole };
    this.parts = [];
    this.box = make("div", {
      class: "timeline",
      tabindex: "0",
      role: "group",
      "aria-label":
        "Charts over time. Left and right move the cursor, plus and minus zoom, Escape shows the whole run.",
    });
    this.shown_range = make("span", { class: "range" });
    panel.append(this.controls(), this.box);
    const given = timeline_charts(data),
      drawn = given.filter((one) => one.series.length);
    drawn.forEach((one, index) => this.add(one, index === drawn.length - 1));
    for (const one of given.filter((each) => !each.series.length))
      this.box.append(note(`${one.title}: not recorded in this run.`));
    this.listen();
    this.look(this.view);
  }

  controls() {
    const button = (text, title, act) => {
      const element = make("button", { type: "button", class: "quiet", title, "aria-label": title }, text);
      element.addEventListener("click", act);
      return element;
    };
    this.reset = button("Whole run", "Show the whole run (Escape)", () => this.look(this.whole));
    return make(
      "div",
      { class: "controls" },
      this.shown_range,
      button("−", "Zoom out (minus)", () => this.zoom(2)),
      button("+", "Zoom in (plus)", () => this.zoom(0.5)),
      button("◀", "Earlier", () => this.move(-0.5)),
      button("▶", "Later", () => this.move(0.5)),
      this.reset,
      make("span", { class: "muted hint" }, "Drag to zoom, double-click for the whole run; or arrow keys, + and −."),
    );
  }

  add(one, last) {
    const most = Math.max(one.level ?? 0, ...one.series.map((each) => highest(each, this.times, this.whole) ?? 0));
    const unit = one.unit(most);
    const peaks = one.series.map((each) => `${each.name} at most ${one.show(highest(each, this.times, this.whole))}`);
    const says = `${one.title} over time: ${peaks.join(", ")}.`;
    const frame = frame_of_chart(one.title, one.series, one.height + (last ? 22 : 0), says);
    this.box.append(frame.figure);
    const value_at = (each, index) => (each.values[index] === null ? NaN : each.values[index] / unit.divisor);
    const datasets = one.series.map((each) => ({
      data: this.times.map((x, index) => ({ x, y: value_at(each, index) })),
    }));
    const cap = { level: one.level / unit.divisor, text: `cap ${bytes(one.level ?? 0)}`, colour: "mark", dashed: true };
    const chart = chart_of(frame, datasets, () => this.style(one), this.axes(one, unit, most, last), [
      marks_plugin(() => (one.level ? [cap] : [])),
      cursor_plugin(this.state),
    ]);
    this.parts.push({ ...one, frame, chart });
  }

  style(one) {
    const few = this.times.length <= 60;
    return one.series.map((each, index) => ({
      ...line_style(each.colour, { points: few, ...each }),
      ...(one.stacked && index > 0 ? { fill: "-1" } : {}),
      borderWidth: this.times.length > 600 ? 1.25 : 2,
      order: one.stacked ? 0 : -index,
    }));
  }

  axes(one, unit, most, last) {
    return {
      x: {
        type: "linear",
        afterBuildTicks: time_ticks,
        ticks: {
          display: last,
          maxRotation: 0,
          autoSkip: false,
          callback(value) {
            return clock(value, this.step);
          },
        },
      },
      y: {
        beginAtZero: true,
        stacked: Boolean(one.stacked),
        max: one.level ? (most / unit.divisor) * 1.1 : undefined,
        title: { text: one.name(unit) },
        ticks: { maxTicksLimit: 5, includeBounds: false },
        afterFit: frame_width("y", 76),
      },
    };
  }

  // Shows a part of the run.
  look({ min, max }) {
    const least = Math.max(this.whole.max / 1e5, 1e-3),
      width = Math.min(Math.max(max - min, least), this.whole.max);
    const from = Math.min(Math.max(min, 0), this.whole.max - width);
    this.view = { min: from, max: from + width };
    const zoomed = width < this.whole.max * 0.9999;
    this.shown_range.textContent = zoomed
      ? `${this.moment(this.view.min)} to ${this.moment(this.view.max)} of ${seconds(this.whole.max)}`
      : `All of ${seconds(this.whole.max)}`;
    this.reset.disabled = !zoomed;
    for (const { chart } of this.parts) {
      Object.assign(chart.options.scales.x, this.view);
      chart.update("none");
    }
    this.read(null);
  }

  moment(time) {
    return moment(time, this.whole.max);
  }

  zoom(factor) {
    const middle = this.state.cursor ?? (this.view.min + this.view.max) / 2,
      width = (this.view.max - this.view.min) * factor;
    const part = (middle - this.view.min) / (this.view.max - this.view.min);
    this.look({ min: middle - width * part, max: middle + width * (1 - part) });
  }

  move(part) {
    const by = (this.view.max - this.view.min) * part;
    this.look({ min: this.view.min + by, max: this.view.max + by });
  }

  // Puts the cursor on a sample, or takes it away, and writes the values into the legends.
  read(index) {
    this.index = index;
    this.state.cursor = index === null ? null : this.times[index];
    const heard = [];
    for (const { frame, series, show, chart } of this.parts) {
      series.forEach((each, place) => {
        const value = index === null ? highest(each, this.times, this.view) : each.values[index];
        frame.values[place].textContent = value === null ? "–" : `${index === null ? "up to " : ""}${show(value)}`;
        if (value !== null) heard.push(`${each.name} ${show(value)}`);
      });
      chart.draw();
    }
    if (index !== null) this.shown_range.textContent = `At ${this.moment(this.times[index])}`;
    return index === null ? "" : `At ${this.moment(this.times[index])}: ${heard.join(", ")}`;
  }

  step(by) {
    const inside = this.index ?? nearest(this.times, by > 0 ? this.view.min : this.view.max) - by;
    const index = Math.min(this.times.length - 1, Math.max(0, inside + by)),
      time = this.times[index];
    if (time < this.view.min || time > this.view.max)
      this.move((time - (this.view.min + this.view.max) / 2) / (this.view.max - this.view.min));
    section("spoken").textContent = this.read(index);
  }

  listen() {
    const jump = Math.max(1, Math.round(this.times.length / 50));
    const keys = {
      ArrowLeft: () => this.step(-1),
      ArrowRight: () => this.step(1),
      PageUp: () => this.step(-jump),
      PageDown: () => this.step(jump),
      "+": () => this.zoom(0.5),
      "=": () => this.zoom(0.5),
      "-": () => this.zoom(2),
      Escape: () => this.look(this.whole),
      0: () => this.look(this.whole),
    };
    this.box.addEventListener("keydown", (event) => {
      if (!(event.key in keys) || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      keys[event.key]();
    });
    for (const part of this.parts) this.follow(part);
  }

  // The pointer on one of the charts.
  follow({ frame: { canvas }, chart }) {
    const time_at = (event) =>
      Math.min(this.view.max, Math.max(this.view.min, chart.scales.x.getValueForPixel(event.offsetX)));
    const redraw = () => this.parts.forEach((part) => part.chart.draw());
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || event.pointerType === "touch") return;
      canvas.setPointerCapture(event.pointerId);
      this.state.from = this.state.to = time_at(event);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (this.state.from !== undefined) this.state.to = time_at(event);
      this.read(nearest(this.times, time_at(event)));
    });
    canvas.addEventListener("pointerup", (event) => {
      const { from } = this.state,
        to = time_at(event);
      if (from === undefined) return;
      delete this.state.from;
      if (Math.abs(chart.scales.x.getPixelForValue(from) - event.offsetX) > 5)
        this.look({ min: Math.min(from, to), max: Math.max(from, to) });
      else redraw();
    });
    canvas.addEventListener("pointercancel", () => {
      delete this.state.from;
      redraw();
    });
    canvas.addEventListener("pointerleave", () => this.look(this.view));
    canvas.addEventListener("dblclick", () => this.look(this.whole));
  }
}

// A dozen moments of the run, for those who read numbers and for a page without charts.
function moments(data, times) {
  const step = Math.max(1, Math.ceil(times.length / 12)),
    given = timeline_charts(data).flatMap((one) => one.series.map((each) => ({ ...each, show: one.show })));
  const rows = times
    .map((time, index) => ({ time, index }))
    .filter(({ index }) => index % step === 0 || index === times.length - 1);
  const of = (values) => (row) => values[row.index] ?? null;
  return make(
    "details",
    {},
    make(
      "summary",
      {},
      rows.length < times.length
        ? `In numbers (${rows.length} of ${times.length.toLocaleString("en")} samples)`
        : "In numbers",
    ),
    table(
      "The run over time",
      [
        { title: "At", number: true, of: (row) => row.time, show: (row) => moment(row.time, times.at(-1)) },
        ...given.map((each) => ({
          title: each.name,
          number: true,
          of: of(each.values),
          show: (row) => (of(each.values)(row) === null ? "–" : each.show(of(each.values)(row))),
        })),
      ],
      rows,
    ),
  );
}

function show_timeline(data, drawn) {
  const panel = section("timeline"),
    times = list_of(data.samples?.seconds)
      .map(number_of)
      .filter((time) => time !== null);
  if (!times.length) {
    panel.append(note("Nothing to draw: the run was over before the first sample was taken."));
    return;
  }
  if (drawn) new Timeline(data, times, panel);
  panel.append(moments(data, times));
  if (!drawn) panel.querySelector("details").open = true;
}
