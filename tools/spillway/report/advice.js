// What to do, said from the curve: {verdict: "good" | "act" | "unknown", title, lines, memory_bytes: to try, or null}.

// Seconds, and blocks read, at so much memory: linear between the curve's points, null outside of them.
function on_curve(points, memory_bytes, field) {
  const known = points.filter((point) => number_of(point[field]) !== null);
  for (let i = 0; i < known.length; ++i) {
    const [here, next] = [known[i], known[i + 1]];
    if (here.memory_bytes === memory_bytes) return here[field];
    if (!next || memory_bytes < here.memory_bytes || memory_bytes > next.memory_bytes) continue;
    const part = (memory_bytes - here.memory_bytes) / (next.memory_bytes - here.memory_bytes);
    return here[field] + part * (next[field] - here[field]);
  }
  return null;
}

// The points in order of memory, without what cannot be drawn.
function curve_points(data) {
  const points = list_of(data.curve?.points).filter((point) => number_of(point?.memory_bytes) > 0);
  return points.sort((one, other) => one.memory_bytes - other.memory_bytes);
}

function hottest_line(data) {
  const first = list_of(data.allocations).reduce(
    (most, one) => ((number_of(one.share) ?? 0) > (most?.share ?? 0) ? one : most),
    null,
  );
  if (!first || first.share < 0.3 || first.kind === "small") return null;
  const size = number_of(first.bytes) ? `, ${bytes(first.bytes)}` : "";
  return make(
    "span",
    {},
    `${share(first.share)} of the misses are in `,
    name_of(first.name, "code inline"),
    `${size}: the place to look for a better order of access.`,
  );
}

function more_memory(data, here, enough, points) {
  const now = number_of(data.wall_seconds),
    of_curve = on_curve(points, here, "seconds");
  const saved_by = (memory) => {
    // as the curve has it; its seconds are an estimate, and those of this run are not
    const then = on_curve(points, memory, "seconds");
    return of_curve > 0 && then !== null ? 1 - then / of_curve : null;
  };
  const saved = saved_by(enough);
  if (saved !== null && saved < 0.05)
    return {
      verdict: "good",
      title: "Nothing to do about memory.",
      lines: [`Even ${bytes(enough)} would save less than 5 % of the time.`],
      memory_bytes: null,
    };
  const lines = [];
  if (saved !== null && now)
    lines.push(
      `It would take about ${seconds(now * (1 - saved))} instead of ${seconds(now)}: ${share(saved)} less. ` +
        "Beyond that, more memory gains little.",
    );
  else lines.push("From there on, more memory gains little.");
  const machine = number_of(data.machine?.memory_bytes);
  if (machine && enough > machine) {
    const fits = points.filter((point) => point.memory_bytes <= machine * 0.9 && point.memory_bytes > here).at(-1);
    const saves = fits ? (saved_by(fits.memory_bytes) ?? 0) : 0;
    lines.push(
      `This machine has ${bytes(machine)}: that much asks for a larger one.` +
        (saves > 0.05 ? ` Here, ${bytes(fits.memory_bytes)} would save ${share(saves)}.` : ""),
    );
    return {
      verdict: "act",
      title: `Enough would be ${bytes(enough)}.`,
      lines,
      memory_bytes: saves > 0.05 ? round_size(fits.memory_bytes) : null,
    };
  }
  return { verdict: "act", title: `Give it ${bytes(enough)}.`, lines, memory_bytes: round_size(enough) };
}

function memory_advice(data) {
  const summary = data.summary ?? {},
    points = curve_points(data);
  const here = number_of(data.curve?.here_bytes) ?? number_of(summary.cap_bytes),
    enough = number_of(data.curve?.enough_bytes);
  const waiting = number_of(summary.waiting_share),
    misses = number_of(summary.misses);
  if (misses === 0)
    return {
      verdict: "good",
      title: "Nothing to do.",
      lines: ["Everything the program used stayed in memory."],
      memory_bytes: null,
    };
  if (here && enough && enough > here * 1.02) return more_memory(data, here, enough, points);
  if (here && enough && enough < here * 0.9) {
    const lines = [
      `It would take about as long with that, and the rest of the ${bytes(here)} would be free for other programs.`,
    ];
    return {
      verdict: "good",
      title: `Nothing to do. ${bytes(enough)} would be enough.`,
      lines,
      memory_bytes: round_size(enough),
    };
  }
  if (here && enough)
    return {
      verdict: "good",
      title: "Nothing to do about memory.",
      lines: ["It has about what it can use; more would gain little."],
      memory_bytes: null,
    };
  if (waiting !== null && waiting < 0.05)
    return {
      verdict: "good",
      title: "Nothing to do.",
      lines: [`The threads waited for data ${share(waiting)} of their time; more memory cannot save more than that.`],
      memory_bytes: null,
    };
  const reason = points.length
    ? "The curve shows no amount from which on more memory gains little."
    : "What more memory would do was not measured in this run.";
  const lines = [
    waiting === null
      ? reason
      : `${reason} The threads waited for data ${share(waiting)} of their time: no more than that can be saved.`,
  ];
  return { verdict: "unknown", title: "How much memory is enough is not known.", lines, memory_bytes: null };
}

function advice_of(data) {
  const advice = memory_advice(data);
  if (number_of(data.ended?.signal)) {
    advice.lines.unshift("A signal ended the run, so this is about the part that ran.");
    if (advice.verdict === "good") advice.verdict = "unknown";
  }
  const hottest = hottest_line(data);
  if (hottest && advice.verdict !== "good") advice.lines.push(hottest);
  return advice;
}
