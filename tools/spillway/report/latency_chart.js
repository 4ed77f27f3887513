// How long misses took: the histogram, and the times that most of them stayed within.

// Classes with their beginnings, without the empty ones at both ends: {from_ns, below_ns, count, height}. A class's
// height is its share of all misses, in %, as if it were an eighth of a doubling wide: on the axis, classes are not
// equally wide.
function latency_classes(latencies) {
  let before = 0;
  const classes = list_of(latencies?.classes)
    .filter((each) => number_of(each?.below_ns) > 0)
    .map((each) => {
      const octave = 2 ** Math.floor(Math.log2(each.below_ns - 1));
      const from_ns = each.below_ns <= 256 ? each.below_ns / 2 : Math.max(before, each.below_ns - octave / 8);
      before = each.below_ns;
      return { from_ns, below_ns: each.below_ns, count: number_of(each.count) ?? 0 };
    });
  while (classes.length && !classes[0].count) classes.shift();
  while (classes.length && !classes.at(-1).count) classes.pop();
  const total = classes.reduce((sum, each) => sum + each.count, 0);
  for (const each of classes) each.height = (each.count / total / (8 * Math.log2(each.below_ns / each.from_ns))) * 100;
  return { classes, total };
}

const quantiles = [
  { name: "p50", field: "p50_ns", words: "half within" },
  { name: "p99", field: "p99_ns", words: "99 % within" },
  { name: "p99.9", field: "p999_ns", words: "99.9 % within" },
];

// Round times on a logarithmic axis: 1, 2 and 5 of each ten where there is room, else the tens.
function log_time_ticks(axis) {
  const tens = Math.log10(axis.max / axis.min);
  const wanted = Math.max(2, axis.width / 70);
  const factors = tens * 3 <= wanted ? [1, 2, 5] : tens * 2 <= wanted ? [1, 3] : [1];
  axis.ticks = [];
  for (let ten = 10 ** Math.floor(Math.log10(axis.min)); ten <= axis.max; ten *= 10)
    for (const factor of factors)
      if (factor * ten >= axis.min && factor * ten <= axis.max) axis.ticks.push({ value: factor * ten });
}

// The outline of the histogram: each class begins with a step to its height.
function outline_of(classes) {
  const points = [{ x: classes[0].from_ns, y: 0 }];
  classes.forEach((each, index) => {
    const before = classes[index - 1];
    if (before && before.below_ns < each.from_ns) points.push({ x: before.below_ns, y: 0 });
    points.push({ x: each.from_ns, y: each.height });
  });
  points.push({ x: classes.at(-1).below_ns, y: 0 });
  return points;
}

function latency_axes(classes, marks) {
  const ends = [classes[0].from_ns, classes.at(-1).below_ns, ...marks.map((mark) => mark.at)];
  return {
    x: {
      type: "logarithmic",
      min: Math.min(...ends) / 1.15,
      max: Math.max(...ends) * 1.15,
      afterBuildTicks: log_time_ticks,
      ticks: { autoSkip: false, maxRotation: 0, callback: (value) => nanoseconds(value) },
    },
    y: {
      ...usual_heights(classes),
      title: { text: "share of the misses" },
      ticks: { maxTicksLimit: 6, callback: (value) => `${digits(Number(value.toPrecision(2)))} %` },
      afterFit: frame_width("y", 76),
    },
  };
}

function usual_heights(classes) {
  return { type: "linear", min: 0, max: Math.max(...classes.map((each) => each.height)) * 1.3 };
}

// A logarithmic axis, on which those that took long are seen, however few.
function rare_heights(classes) {
  const heights = classes.map((each) => each.height).filter((height) => height > 0);
  return { type: "logarithmic", min: Math.min(...heights) / 2, max: Math.max(...heights) * 10 };
}

function draw_latencies(panel, latencies, classes, total) {
  const state = {};
  const marks = quantiles
    .map(({ name, field }) => ({ name, at: number_of(latencies[field]), colour: "mark", dashed: name !== "p50" }))
    .filter((mark) => mark.at > 0)
    .map((mark) => ({ ...mark, text: `${mark.name} ${nanoseconds(mark.at)}` }));
  const says = `Histogram of how long misses took: ${marks.map((mark) => mark.text).join(", ")}.`;
  const frame = frame_of_chart("", [{ name: "" }], 250, says);
  const toggle = make("button", { type: "button", class: "quiet", "aria-pressed": "false" }, "Show the rare ones");
  frame.figure.firstChild.append(toggle);
  panel.append(frame.figure);
  const chart = chart_of(
    frame,
    [{ data: outline_of(classes), stepped: "before" }],
    () => [{ ...line_style("memory", { fill: 35 }), borderWidth: 1.5 }],
    latency_axes(classes, marks),
    [marks_plugin(() => marks), cursor_plugin(state)],
  );
  toggle.addEventListener("click", () => {
    const rare = chart.options.scales.y.type === "linear";
    Object.assign(chart.options.scales.y, rare ? rare_heights(classes) : usual_heights(classes));
    toggle.setAttribute("aria-pressed", String(rare));
    chart.update("none");
  });
  const places = classes.map((each) => Math.sqrt(each.from_ns * each.below_ns));
  read_off(frame, chart, state, places, (index) => {
    if (index === null) return `${count(total)} misses`;
    const { from_ns, below_ns, count: misses } = classes[index];
    return `${nanoseconds(from_ns)} to ${nanoseconds(below_ns)}: ${count(misses)} misses, ${share(misses / total)}`;
  });
}

function show_latencies(data, drawn) {
  const panel = section("latency");
  const latencies = data.latencies ?? {};
  const { classes, total } = latency_classes(latencies);
  if (total && drawn) draw_latencies(panel, latencies, classes, total);
  const known = [...quantiles, { field: "worst_ns", words: "slowest" }].filter(
    ({ field }) => number_of(latencies[field]) > 0,
  );
  if (known.length) panel.append(facts_list(known.map(({ field, words }) => [words, nanoseconds(latencies[field])])));
  else if (!total)
    panel.append(note(data.summary?.misses === 0 ? "There was no miss." : "How long misses took was not recorded."));
}
