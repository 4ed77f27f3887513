// The two charts that are not over time: how long misses took, and the miss-ratio curve.

// Classes with their beginnings, without the empty ones at both ends: {from_ns, below_ns, count, height}. A class's height
// is its share of all misses for a doubling of time, as classes are not equally wide.
function latency_classes(latencies) {
  let before = 0;
  const classes = list_of(latencies?.classes).filter((each) => number_of(each?.below_ns) > 0).map((each) => {
    const octave = 2 ** Math.floor(Math.log2(each.below_ns - 1));
    const from_ns = each.below_ns <= 256 ? each.below_ns / 2 : Math.max(before, each.below_ns - octave / 8);
    before = each.below_ns;
    return { from_ns, below_ns: each.below_ns, count: number_of(each.count) ?? 0 };
  });
  while (classes.length && !classes[0].count) classes.shift();
  while (classes.length && !classes.at(-1).count) classes.pop();
  const total = classes.reduce((sum, each) => sum + each.count, 0);
  for (const each of classes) each.height = each.count / total / Math.log2(each.below_ns / each.from_ns) * 100;
  return { classes, total };
}

function latency_marks(latencies) {
  return [["p50", "p50_ns"], ["p99", "p99_ns"], ["p99.9", "p999_ns"]].map(([name, field]) => ({ name, at: number_of(latencies?.[field]) }))
    .filter((mark) => mark.at > 0);
}

// Round times on a logarithmic axis: 1, 2 and 5 of each ten where there is room, else the tens.
function log_time_ticks(axis) {
  const tens = Math.log10(axis.max / axis.min), wanted = Math.max(2, axis.width / 70);
  const factors = tens * 3 <= wanted ? [1, 2, 5] : tens * 2 <= wanted ? [1, 3] : [1];
  axis.ticks = [];
  for (let ten = 10 ** Math.floor(Math.log10(axis.min)); ten <= axis.max; ten *= 10)
    for (const factor of factors)
      if (factor * ten >= axis.min && factor * ten <= axis.max) axis.ticks.push({ value: factor * ten });
}

function draw_latencies(panel, latencies, classes, total) {
  const marks = latency_marks(latencies), state = {};
  const says = `Histogram of how long misses took: ${marks.map((mark) => `${mark.name} ${nanoseconds(mark.at)}`).join(", ")}.`;
  const frame = frame_of_chart("", [{ name: "", colour: "" }], 250, says);
  const toggle = make("button", { type: "button", class: "quiet", "aria-pressed": "false", title: "A logarithmic scale shows the rare slow ones" }, "Show the rare ones");
  frame.figure.firstChild.append(toggle);
  panel.append(frame.figure);
  const data = [];
  classes.forEach((each, index) => {
    const gap = index > 0 && classes[index - 1].below_ns < each.from_ns;
    if (gap) data.push({ x: classes[index - 1].below_ns, y: 0 });
    data.push({ x: each.from_ns, y: each.height });
  });
  data.push({ x: classes.at(-1).below_ns, y: 0 });
  data.unshift({ x: classes[0].from_ns, y: 0 });
  const ends = [classes[0].from_ns, classes.at(-1).below_ns, ...marks.map((mark) => mark.at)];
  const least = Math.min(...classes.filter((each) => each.height > 0).map((each) => each.height));
  const highest_class = Math.max(...classes.map((each) => each.height));
  const chart = chart_of(frame, [{ data, stepped: "before" }], () => [{ ...line_style("memory", { fill: 35 }), borderWidth: 1.5 }], {
    layout: { padding: { right: 12, top: 4 } },
    scales: {
      x: { type: "logarithmic", min: Math.min(...ends) / 1.15, max: Math.max(...ends) * 1.15, afterBuildTicks: log_time_ticks, grid: { drawTicks: true },
        ticks: { autoSkip: false, maxRotation: 0, callback: (value) => nanoseconds(value) } },
      y: { type: "linear", min: 0, max: highest_class * 1.3, title: { text: "of the misses, per doubling" }, ticks: { maxTicksLimit: 6, callback: (value) => `${digits(Number(value.toPrecision(2)))} %` }, afterFit: frame_width("y", 76) },
    },
  }, [marks_plugin(() => marks.map((mark) => ({ ...mark, text: `${mark.name} ${nanoseconds(mark.at)}`, colour: "mark", dashed: mark.name !== "p50" }))), cursor_plugin(state)]);
  toggle.addEventListener("click", () => {
    const logarithmic = chart.options.scales.y.type === "linear";
    Object.assign(chart.options.scales.y, logarithmic ? { type: "logarithmic", min: least / 2, max: highest_class * 10 } : { type: "linear", min: 0, max: highest_class * 1.3 });
    toggle.setAttribute("aria-pressed", String(logarithmic));
    toggle.textContent = logarithmic ? "Show the usual ones" : "Show the rare ones";
    chart.update("none");
  });
  const middle = (each) => Math.sqrt(each.from_ns * each.below_ns);
  read_off(frame, chart, state, classes.length, (x) => nearest(classes.map(middle), x), (index) => middle(classes[index]), (index) => {
    const each = index === null ? null : classes[index];
    const words = each ? `${nanoseconds(each.from_ns)} to ${nanoseconds(each.below_ns)}: ${count(each.count)} misses, ${share(each.count / total)}` : `${count(total)} misses`;
    frame.values[0].textContent = words;
    return words;
  });
}

function show_latencies(data, drawn) {
  const panel = section("latency"), latencies = data.latencies ?? {}, { classes, total } = latency_classes(latencies);
  if (!total) {
    panel.append(note(number_of(data.summary?.misses) === 0 ? "There was no miss." : "How long misses took was not recorded."));
  } else if (drawn) draw_latencies(panel, latencies, classes, total);
  const rows = [["half of them within", "p50_ns"], ["99 of 100 within", "p99_ns"], ["999 of 1,000 within", "p999_ns"], ["the slowest", "worst_ns"]]
    .map(([title, field]) => [title, number_of(latencies[field])]).filter(([, value]) => value > 0);
  if (rows.length) panel.append(make("dl", { class: "facts-list" }, ...rows.map(([title, value]) => make("div", {}, make("dt", {}, title), make("dd", {}, nanoseconds(value))))));
}

// The ways to look at the curve, those it has numbers for.
function curve_views(points) {
  return [{ field: "seconds", name: "Run time", unit: (most) => (most >= 7200 ? { divisor: 3600, name: "hours" } : most >= 120 ? { divisor: 60, name: "minutes" } : { divisor: 1, name: "seconds" }), show: (value) => `about ${seconds(value)}` },
    { field: "reads", name: "Blocks read", unit: count_unit, show: (value) => `${count(value)} blocks read` }]
    .filter((view) => points.filter((point) => number_of(point[view.field]) !== null).length > 1);
}

function draw_curve(panel, points, here, enough) {
  const views = curve_views(points), state = {}, unit = byte_unit(points.at(-1).memory_bytes);
  if (!views.length) return;
  let view = views[0], scale;
  const frame = frame_of_chart("", [{ name: "", colour: "" }], 250, `Miss-ratio curve: what ${bytes(points[0].memory_bytes)} to ${bytes(points.at(-1).memory_bytes)} of memory would do.`);
  const toggle = make("button", { type: "button", class: "quiet" });
  if (views.length > 1) frame.figure.firstChild.append(toggle);
  panel.append(frame.figure);
  const dots = [[here, "you are here", "waiting"], [enough, "enough", "running"]].filter(([memory]) => memory > 0 && !(memory === here && memory === enough && false));
  const at = (memory) => on_curve(points, memory, view.field);
  const wide = points.at(-1).memory_bytes / points[0].memory_bytes > 20;
  const ends = [points[0].memory_bytes, points.at(-1).memory_bytes, ...dots.map(([memory]) => memory)].map((memory) => memory / unit.divisor);
  const chart = chart_of(frame, [{ data: [] }, { data: [] }], () => [
    line_style("memory", { points: points.length <= 24 }),
    { showLine: false, pointRadius: 7, pointStyle: dots.map((dot) => (dot[2] === "waiting" ? "circle" : "rectRot")), pointBackgroundColor: dots.map((dot) => colour(dot[2])), pointBorderColor: colour("panel"), pointBorderWidth: 2 },
  ], {
    layout: { padding: { right: 12, top: 4 } },
    scales: {
      x: { type: wide ? "logarithmic" : "linear", min: wide ? ends[0] : 0, max: Math.max(...ends) * (wide ? 1.1 : 1.02), title: { text: `memory, ${unit.name}` }, ticks: { maxRotation: 0, callback: (value) => digits(value) } },
      y: { beginAtZero: true, grace: "12%", title: { text: "" }, ticks: { maxTicksLimit: 6 }, afterFit: frame_width("y", 76) },
    },
  }, [marks_plugin(() => dots.map(([memory, text, kind]) => ({ at: memory / unit.divisor, text: `${text}: ${bytes(memory)}`, colour: kind, dashed: kind !== "waiting" }))), cursor_plugin(state)]);
  const look = (next) => {
    view = next;
    scale = view.unit(Math.max(...points.map((point) => number_of(point[view.field]) ?? 0)));
    chart.data.datasets[0].data = points.map((point) => ({ x: point.memory_bytes / unit.divisor, y: number_of(point[view.field]) === null ? NaN : point[view.field] / scale.divisor }));
    chart.data.datasets[1].data = dots.map(([memory]) => ({ x: memory / unit.divisor, y: at(memory) === null ? NaN : at(memory) / scale.divisor }));
    chart.options.scales.y.title.text = view.field === "reads" ? `${scale.name} blocks read`.trim() : `run time, ${scale.name}`;
    toggle.textContent = `Show ${views.find((one) => one !== view)?.name.toLowerCase()}`;
    chart.update("none");
  };
  toggle.addEventListener("click", () => look(views.find((one) => one !== view)));
  look(view);
  const places = points.map((point) => point.memory_bytes / unit.divisor);
  read_off(frame, chart, state, points.length, (x) => nearest(places, x), (index) => places[index], (index) => {
    const point = index === null ? null : points[index];
    const words = point ? `${bytes(point.memory_bytes)}: ${views.filter((one) => number_of(point[one.field]) !== null).map((one) => one.show(point[one.field])).join(", ")}` : view.name;
    frame.values[0].textContent = words;
    return words;
  });
}

function show_curve(data, drawn) {
  const panel = section("curve"), points = curve_points(data);
  const here = number_of(data.curve?.here_bytes), enough = number_of(data.curve?.enough_bytes);
  if (points.length < 2) {
    panel.append(note(number_of(data.summary?.misses) === 0 ? "No curve: everything fit in memory, so more of it would do nothing."
      : "No curve: the run had too few misses, or was too short, to tell what other amounts of memory would do."));
    return;
  }
  if (drawn) draw_curve(panel, points, here, enough);
  const numbers = make("details", {}, make("summary", {}, "In numbers"), table("What more memory would do", [number_column("Memory", "memory_bytes", bytes),
    number_column("Takes about", "seconds", seconds), number_column("Blocks read", "reads", count)], points));
  numbers.open = !drawn;
  panel.append(numbers);
}
