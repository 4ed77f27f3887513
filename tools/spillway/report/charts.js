// What the charts share: colours of the theme, axes, a cursor that reads values off, and printing.

const charts = []; // {chart, restyle}: of each, how it takes the theme's colours anew

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

function faint(name, strength) {
  return `color-mix(in srgb, ${colour(name)} ${strength}%, transparent)`;
}

// A panel's chart: a title, the legend with the values at the cursor, and the canvas. `says` is what a screen reader
// hears.
function frame_of_chart(title, keys, height, says) {
  const values = keys.map(() => make("b"));
  const legend = make(
    "span",
    { class: "legend" },
    ...keys.map((key, index) =>
      make(
        "span",
        { class: "key" },
        key.colour
          ? make("i", { class: `swatch ${key.colour} ${key.dashed ? "dashed" : ""}`, "aria-hidden": "true" })
          : null,
        `${key.name} `,
        values[index],
      ),
    ),
  );
  const canvas = make("canvas", { role: "img", "aria-label": says });
  const holder = make("div", { class: "holder" }, canvas);
  holder.style.height = `${height}px`;
  const figure = make(
    "div",
    { class: "chart" },
    make("div", { class: "chart-head" }, make("h3", {}, title), legend),
    holder,
  );
  return { figure, canvas, values, holder };
}

function axis_style() {
  return {
    grid: { color: colour("grid"), borderColor: colour("grid"), tickColor: colour("grid") },
    ticks: { color: colour("muted"), font: { family: "inherit", size: 12 } },
  };
}

// Upright lines with labels, {at, text, colour, dashed}, and flat ones, {level, text, colour}; asked for anew.
function marks_plugin(marks) {
  function upright(chart, mark, row) {
    const { ctx, chartArea: area, scales } = chart,
      x = scales.x.getPixelForValue(mark.at);
    if (!(x >= area.left - 1 && x <= area.right + 1)) return;
    ctx.beginPath();
    ctx.moveTo(x, area.top + row * 16 + 4);
    ctx.lineTo(x, area.bottom);
    ctx.stroke();
    const width = ctx.measureText(mark.text).width,
      left = x + 6 + width > area.right;
    label(ctx, mark, left ? x - 6 - width : x + 6, area.top + row * 16 + 14, width);
  }
  function label(ctx, mark, x, y, width) {
    ctx.fillStyle = faint("panel", 80);
    ctx.fillRect(x - 2, y - 11, width + 4, 15);
    ctx.fillStyle = colour(mark.colour);
    ctx.fillText(mark.text, x, y);
  }
  function flat(chart, mark) {
    const { ctx, chartArea: area, scales } = chart,
      y = scales.y.getPixelForValue(mark.level);
    if (!(y >= area.top - 1 && y <= area.bottom + 1)) return;
    ctx.beginPath();
    ctx.moveTo(area.left, y);
    ctx.lineTo(area.right, y);
    ctx.stroke();
    const width = ctx.measureText(mark.text).width;
    label(ctx, mark, area.right - width - 4, y > area.top + 16 ? y - 5 : y + 14, width);
  }
  return {
    id: "marks",
    afterDatasetsDraw(chart) {
      const { ctx } = chart;
      ctx.save();
      ctx.font = `600 12px ${getComputedStyle(document.body).fontFamily}`;
      ctx.lineWidth = 1.5;
      marks().forEach((mark, row) => {
        ctx.strokeStyle = colour(mark.colour);
        ctx.setLineDash(mark.dashed ? [5, 4] : []);
        if (mark.level !== undefined) flat(chart, mark);
        else upright(chart, mark, row);
      });
      ctx.restore();
    },
  };
}

// The cursor's line, and the selection while somebody drags: {cursor: x or null, from, to}.
function cursor_plugin(state) {
  return {
    id: "cursor",
    afterDraw(chart) {
      const { ctx, chartArea: area, scales } = chart;
      const place = (x) => Math.min(area.right, Math.max(area.left, scales.x.getPixelForValue(x)));
      ctx.save();
      if (state.from !== undefined) {
        ctx.fillStyle = faint("accent", 18);
        ctx.fillRect(
          place(Math.min(state.from, state.to)),
          area.top,
          Math.abs(place(state.to) - place(state.from)),
          area.bottom - area.top,
        );
      }
      if (state.cursor !== null && state.cursor !== undefined) {
        ctx.strokeStyle = colour("ink");
        ctx.lineWidth = 1;
        ctx.beginPath();
        ctx.moveTo(place(state.cursor), area.top);
        ctx.lineTo(place(state.cursor), area.bottom);
        ctx.stroke();
      }
      ctx.restore();
    },
  };
}

function line_style(name, { dashed = false, fill = true, points = false } = {}) {
  return {
    borderColor: colour(name),
    backgroundColor: faint(name, fill === true ? 18 : fill || 0),
    fill: Boolean(fill),
    borderWidth: 2,
    borderDash: dashed ? [6, 4] : [],
    pointRadius: points ? 3 : 0,
    pointHoverRadius: points ? 3 : 0,
    pointBackgroundColor: colour(name),
    pointBorderWidth: 0,
  };
}

// A chart that keeps to the theme. `style()` gives the looks of the datasets, in order; `scales` are Chart.js's.
function chart_of(frame, datasets, style, scales, plugins) {
  const restyle = (chart) => {
    style().forEach((look, index) => Object.assign(chart.data.datasets[index], look));
    for (const scale of Object.values(chart.options.scales)) {
      Object.assign(scale.grid, axis_style().grid);
      Object.assign(scale.ticks, { color: colour("muted") });
      if (scale.title) scale.title.color = colour("muted");
    }
  };
  for (const scale of Object.values(scales)) {
    scale.grid = { ...axis_style().grid, ...scale.grid };
    scale.ticks = { ...axis_style().ticks, ...scale.ticks, font: { size: 12 } };
    if (scale.title) scale.title = { display: true, font: { size: 12 }, color: colour("muted"), ...scale.title };
  }
  style().forEach((look, index) => Object.assign(datasets[index], look));
  const chart = new Chart(frame.canvas, {
    type: "line",
    data: { datasets },
    plugins,
    options: {
      animation: false,
      responsive: true,
      maintainAspectRatio: false,
      parsing: false,
      normalized: true,
      events: [],
      layout: { padding: { right: 12, top: 4 } },
      scales,
      plugins: { legend: { display: false }, tooltip: { enabled: false }, filler: { propagate: false } },
    },
  });
  charts.push({ chart, restyle });
  return chart;
}

function frame_width(id, width) {
  return (scale) => {
    if (scale.id === id) scale.width = width;
  };
}

// Reading values off a chart of things at these places, which rise: by the pointer, and by the arrow keys once it has
// the focus. `words(index)` tells of one of them, and with null of the whole. Returns what writes the words anew.
function read_off(frame, chart, state, places, words) {
  const last = places.length - 1;
  let index = null;
  const show = (to) => {
    index = to === null ? null : Math.min(last, Math.max(0, to));
    state.cursor = index === null ? null : places[index];
    frame.values[0].textContent = words(index);
    chart.draw();
  };
  frame.canvas.addEventListener("pointermove", (event) =>
    show(nearest(places, chart.scales.x.getValueForPixel(event.offsetX))),
  );
  frame.canvas.addEventListener("pointerleave", () => show(null));
  frame.figure.addEventListener("keydown", (event) => {
    const moves = {
      ArrowLeft: () => (index ?? last + 1) - 1,
      ArrowRight: () => (index ?? -1) + 1,
      Home: () => 0,
      End: () => last,
      Escape: () => null,
    };
    if (!(event.key in moves) || event.target.tagName === "BUTTON") return;
    event.preventDefault();
    show(moves[event.key]());
    section("spoken").textContent = words(index);
  });
  frame.figure.setAttribute("tabindex", "0");
  frame.figure.setAttribute("role", "group");
  frame.figure.setAttribute("aria-label", `${frame.canvas.getAttribute("aria-label")} Arrow keys read values.`);
  show(null);
  return () => show(null);
}

function restyle_charts() {
  for (const { chart, restyle } of charts) {
    restyle(chart);
    chart.update("none");
  }
}

// On paper, charts have the width of the paper.
const paper_width = 660;
const paper_width_of_half = 310;
function print_charts() {
  addEventListener("beforeprint", () => {
    for (const { chart } of charts)
      chart.resize(chart.canvas.closest(".pair") ? paper_width_of_half : paper_width, chart.height);
  });
  addEventListener("afterprint", () => {
    for (const { chart } of charts) chart.resize();
  });
}

// All of them. Without the library, which a build may lack, the numbers remain.
function show_charts(data) {
  const drawn = typeof Chart !== "undefined";
  const why = "Charts were left out of this build of Spillway: the plotting library was not there when it was built.";
  if (!drawn) section("figures").append(make("p", { class: "panel warn", id: "no-charts" }, why));
  show_timeline(data, drawn);
  show_latencies(data, drawn);
  show_curve(data, drawn);
  if (!drawn) return;
  document.addEventListener("theme", restyle_charts);
  print_charts();
}
