// The miss-ratio curve: what other amounts of memory would do, where the run is, and what is enough.

// The ways to look at the curve, those that it has numbers for.
function curve_views(points) {
  const time_unit = (most) => {
    if (most >= 7200) return { divisor: 3600, name: "hours" };
    return most >= 120 ? { divisor: 60, name: "minutes" } : { divisor: 1, name: "seconds" };
  };
  return [
    {
      field: "seconds",
      name: "Run time",
      unit: time_unit,
      axis: (unit) => `run time, ${unit.name}`,
      show: (value) => `about ${seconds(value)}`,
    },
    {
      field: "reads",
      name: "Blocks read",
      unit: count_unit,
      axis: (unit) => `${unit.word} blocks read`.trim(),
      show: (value) => `${count(value)} blocks read`,
    },
  ].filter((view) => points.filter((point) => number_of(point[view.field]) !== null).length > 1);
}

class CurveChart {
  constructor(panel, points, here, enough) {
    this.points = points;
    this.views = curve_views(points);
    if (!this.views.length) return;
    this.unit = byte_unit(points.at(-1).memory_bytes);
    this.dots = [
      { memory: here, words: "you are here", colour: "waiting", shape: "circle" },
      { memory: enough, words: "enough", colour: "running", shape: "rectRot" },
    ].filter((dot) => dot.memory > 0);
    const ends = [points[0], points.at(-1)].map((point) => bytes(point.memory_bytes));
    const says = `Miss-ratio curve: what ${ends[0]} to ${ends[1]} of memory would do.`;
    this.frame = frame_of_chart("", [{ name: "" }], 250, says);
    this.toggle = make("button", { type: "button", class: "quiet" });
    if (this.views.length > 1) this.frame.figure.firstChild.append(this.toggle);
    panel.append(this.frame.figure);
    const state = {};
    this.chart = chart_of(this.frame, [{ data: [] }, { data: [] }], () => this.style(), this.axes(), [
      marks_plugin(() => this.marks()),
      cursor_plugin(state),
    ]);
    const places = points.map((point) => this.place(point.memory_bytes));
    this.refresh = read_off(this.frame, this.chart, state, places, (index) => this.words(index));
    this.toggle.addEventListener("click", () => this.look(this.other()));
    this.look(this.views[0]);
  }

  place(memory) {
    return memory / this.unit.divisor;
  }

  other() {
    return this.views.find((view) => view !== this.view);
  }

  axes() {
    const known = [...this.points.map((point) => point.memory_bytes), ...this.dots.map((dot) => dot.memory)];
    const least = this.place(Math.min(...known));
    const most = this.place(Math.max(...known));
    const wide = most / least > 20;
    return {
      x: {
        type: wide ? "logarithmic" : "linear",
        min: wide ? least : most / least > 2 ? 0 : Math.max(0, least - (most - least) * 0.4),
        max: most * (wide ? 1.1 : 1.02),
        title: { text: `memory, ${this.unit.name}` },
        ticks: { maxRotation: 0, includeBounds: false, callback: (value) => digits(value) },
      },
      y: {
        beginAtZero: true,
        grace: "12%",
        title: { text: "" },
        ticks: { maxTicksLimit: 6 },
        afterFit: frame_width("y", 76),
      },
    };
  }

  style() {
    const dots = {
      showLine: false,
      pointRadius: 7,
      pointStyle: this.dots.map((dot) => dot.shape),
      pointBackgroundColor: this.dots.map((dot) => colour(dot.colour)),
      pointBorderColor: colour("panel"),
      pointBorderWidth: 2,
    };
    return [
      { ...line_style("memory", { points: this.points.length <= 24 }), order: 1 },
      { ...dots, order: 0 },
    ];
  }

  marks() {
    return this.dots.map((dot) => ({
      at: this.place(dot.memory),
      text: `${dot.words}: ${bytes(dot.memory)}`,
      colour: dot.colour,
      dashed: dot.shape !== "circle",
    }));
  }

  words(index) {
    if (index === null) return this.view?.name ?? "";
    const point = this.points[index];
    const known = this.views.filter((view) => number_of(point[view.field]) !== null);
    return `${bytes(point.memory_bytes)}: ${known.map((view) => view.show(point[view.field])).join(", ")}`;
  }

  // Draws the curve of run time, or the one of blocks read.
  look(view) {
    this.view = view;
    const unit = view.unit(Math.max(...this.points.map((point) => number_of(point[view.field]) ?? 0)));
    const drawn = (memory, value) => ({ x: this.place(memory), y: value === null ? NaN : value / unit.divisor });
    const [line, dots] = this.chart.data.datasets;
    line.data = this.points.map((point) => drawn(point.memory_bytes, number_of(point[view.field])));
    dots.data = this.dots.map((dot) => drawn(dot.memory, on_curve(this.points, dot.memory, view.field)));
    this.chart.options.scales.y.title.text = view.axis(unit);
    this.toggle.textContent = `Show ${this.other()?.name.toLowerCase()}`;
    this.chart.update("none");
    this.refresh();
  }
}

function show_curve(data, drawn) {
  const panel = section("curve");
  const points = curve_points(data);
  const here = number_of(data.curve?.here_bytes);
  const enough = number_of(data.curve?.enough_bytes);
  if (points.length < 2) {
    const fits = "No curve: everything fit in memory, so more of it would do nothing.";
    const few =
      "No curve: the run was too short, or had too few misses, to tell what other amounts of memory would do.";
    panel.append(note(data.summary?.misses === 0 ? fits : few));
    return;
  }
  if (drawn) new CurveChart(panel, points, here, enough);
  const places = [
    ["here", here],
    ["enough", enough],
  ]
    .map(([title, memory]) => [title, memory, on_curve(points, memory, "seconds")])
    .filter(([, , takes]) => takes !== null)
    .map(([title, memory, takes]) => [`${title}, with ${bytes(memory)}`, `about ${seconds(takes)}`]);
  if (places.length) panel.append(facts_list(places));
  const columns = [
    number_column("Memory", "memory_bytes", bytes),
    number_column("Takes about", "seconds", seconds),
    number_column("Blocks read", "reads", count),
  ];
  const numbers = table("What more memory would do", columns, points);
  panel.append(make("details", drawn ? {} : { open: "" }, make("summary", {}, "In numbers"), numbers));
}
