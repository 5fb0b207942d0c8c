// Lines over numbers, and heat maps.

const SYMBOLS = [
  (x, y, fill) => shape("circle", { class: "mark", cx: x, cy: y, r: 4, fill }),
  (x, y, fill) => shape("rect", { class: "mark", x: x - 3.6, y: y - 3.6, width: 7.2, height: 7.2, fill }),
  (x, y, fill) => shape("path", { class: "mark", d: `M${x - 4.6} ${y + 3.6}h9.2l-4.6 -8z`, fill }),
  (x, y, fill) => shape("path", { class: "mark", d: `M${x} ${y - 5}l5 5l-5 5l-5 -5z`, fill }),
];

/** An axis: its ends `low` and `high`, its steps, and the position of a value as a share of the axis. */
function axisOf(values, isLog, fromZero, count) {
  let [low, high] = [Math.min(...values), Math.max(...values)];
  // A logarithmic axis cannot show zero.
  if (isLog && low > 0) {
    // A narrow range may contain no step. Then it is extended to the nearest steps.
    if (fromZero && logTicks(low, high).length < 3) {
      const around = [1, 2, 5, 10, 20, 50].map((one) => one * 10 ** Math.floor(Math.log10(low)));
      [low, high] = [around.findLast((step) => step <= low), around.find((step) => step >= high)];
    }
    const part = (value) => (high === low ? 0.5 : Math.log(value / low) / Math.log(high / low));
    return { part, steps: logTicks(low, high) };
  }
  if (fromZero && (low < 0 || low < high * 0.6)) low = Math.min(0, low);
  let steps = ticks(low, high, count);
  const step = steps.length > 1 ? steps[1] - steps[0] : 1;
  if (fromZero) {
    // The axis begins and ends at a step.
    const [first, last] = [Math.floor(low / step + 1e-9), Math.ceil(high / step - 1e-9)];
    steps = Array.from({ length: last - first + 1 }, (_, at) => (first + at) * step);
    [low, high] = [first * step, last * step];
  }
  return { part: (value) => (high === low ? 0.5 : (value - low) / (high - low)), steps };
}

/** Moves overlapping labels apart. `at` is the preferred position of each. */
function apart(wanted, least, low, high) {
  const order = wanted.map((at, index) => ({ at, index })).sort((a, b) => a.at - b.at);
  let free = low;
  for (const one of order) free = (one.at = Math.max(one.at, free)) + least;
  let limit = high;
  for (const one of order.reverse()) limit = (one.at = Math.min(one.at, limit)) - least;
  const places = [];
  for (const { at, index } of order) places[index] = at;
  return places;
}

/** The steps of the x axis whose labels do not touch. They include the last step, because readers look for the ends. */
function spread(steps, where, text) {
  const half = (step) => widthOf(text(step), SIZE.value) / 2;
  const last = steps.at(-1);
  let end = -Infinity;
  return steps.filter((step) => {
    const isBeforeLast = where(step) + half(step) + 8 < where(last) - half(last);
    const fits = step === last || (isBeforeLast && where(step) - half(step) > end + 8);
    if (fits) end = where(step) + half(step);
    return fits;
  });
}

/** Ordered, distinguishable colours of lines, from dark to bright. */
const ORDERED = {
  light: ["#1d2a6b", "#7a3fb0", "#c93a6b", "#c46f00"],
  dark: ["#8fa2f5", "#c58bea", "#f08aa8", "#f0b34a"],
};

/** The colour of line number `at` of `count`. */
function ordered(at, count, theme) {
  const hues = ORDERED[theme.name];
  const place = count < 2 ? 0 : (at / (count - 1)) * (hues.length - 1);
  const from = Math.min(Math.floor(place), hues.length - 2);
  return mixed(hues[from], hues[from + 1], place - from);
}

function drawLines(svg, plot, width, theme, ofNames) {
  const { x, series } = plot.panels[0];
  // Numbers, and one name with several options, are ordered, so they share a colour scale.
  const isOrdered = series.length > 2 && series.every(({ key }) => baseOf(key) === baseOf(series[0].key));
  const colours = isOrdered
    ? (key) =>
        ordered(
          series.findIndex((one) => one.key === key),
          series.length,
          theme,
        )
    : ofNames;
  const places = x.map(({ at }) => at);
  const drawn = series.map((one) =>
    one.values.map((value, at) => ({
      x: places[at],
      name: x[at].name,
      y: value,
      text: one.texts[at],
      expected: one.expected?.[at]?.[0] ?? null,
      expectedText: one.expectedTexts?.[at],
      band: one.band?.[at] ?? null,
    })),
  );
  const values = drawn
    .flat()
    .flatMap(({ y, expected, band }) => [y, expected, ...(band ?? [])])
    .filter((value) => value !== null);
  const yAxis = axisOf(values, plot.logY, true, 5);
  const xAxis = axisOf(places, plot.logX, false, width < 560 ? 4 : 8);
  // Names are at the ends of the lines, if there is space and the lines end together.
  const endTogether = drawn.every((points) => points.at(-1).y !== null);
  const isNamed = width >= 560 && series.length > 1 && places.length > 1 && endTogether;
  const dash = (one, at) => (x, y) =>
    shape(
      "g",
      {},
      shape("line", { x1: x, x2: x + 18, y1: y, y2: y, stroke: colours(one.key, theme), "stroke-width": 2 }),
      SYMBOLS[at % 4](x + 9, y, colours(one.key, theme)),
    );
  const hasExpected = series.some(({ expected }) => expected);
  const entries = isNamed
    ? []
    : series.length > 1
      ? series.map((one, at) => ({ name: one.name, mark: dash(one, at) }))
      : [];
  const isPublished = plot.expectedIs === "published";
  if (hasExpected && isPublished) entries.push({ name: plot.expectedIs, mark: (x, y) => ring(x + 9, y, theme.ink) });
  else if (hasExpected)
    entries.push({
      name: plot.expectedIs,
      mark: (x, y) =>
        shape("line", {
          x1: x,
          x2: x + 18,
          y1: y,
          y2: y,
          stroke: theme.ink,
          "stroke-width": 1.5,
          "stroke-dasharray": "5 3",
        }),
    });
  const top = legend(svg, entries, width, theme) + 10;
  const yText = (step) => onAxis(step, plot.yAxis);
  const left = Math.max(...yAxis.steps.map((step) => widthOf(yText(step), SIZE.value))) + 10;
  const names = series.map(({ name }) => wrapped(name, width * 0.24, SIZE.value));
  const right = isNamed
    ? Math.max(...names.flat().map((name) => widthOf(name, SIZE.value))) + 22
    : Math.max(14, widthOf(onAxis(Math.max(...places), plot.xAxis), SIZE.value) / 2 + 2);
  const [wide, high] = [width - left - right, width < 560 ? 230 : 300];
  const at = { x: (value) => left + wide * xAxis.part(value), y: (value) => top + high * (1 - yAxis.part(value)) };

  for (const step of yAxis.steps) {
    const isZero = step === 0;
    svg.append(
      shape("line", {
        x1: left,
        x2: left + wide,
        y1: at.y(step),
        y2: at.y(step),
        stroke: isZero ? theme.quiet : theme.line,
        "stroke-width": 1,
      }),
    );
    svg.append(label(left - 8, at.y(step) + 4, yText(step), { size: SIZE.value, fill: theme.ink, anchor: "end" }));
  }
  const xText = (step) => onAxis(step, plot.xAxis);
  const own = plot.logX && places.length <= 10 ? places : xAxis.steps;
  const isInside = (step) => at.x(step) + widthOf(xText(step), SIZE.value) / 2 <= width;
  for (const step of spread(own.filter(isInside), at.x, xText)) {
    svg.append(
      shape("line", {
        x1: at.x(step),
        x2: at.x(step),
        y1: top + high,
        y2: top + high + 5,
        stroke: theme.quiet,
        "stroke-width": 1,
      }),
    );
    svg.append(
      label(at.x(step), top + high + 19, xText(step), { size: SIZE.value, fill: theme.ink, anchor: "middle" }),
    );
  }
  svg.append(
    label(left + wide / 2, top + high + 40, plot.xLabel, { size: SIZE.value, fill: theme.quiet, anchor: "middle" }),
  );

  series.forEach((one, index) => drawLine(svg, plot, one, drawn[index], at, index, colours(one.key, theme)));
  if (isNamed) {
    const ends = drawn.map((points) => points.findLast(({ y }) => y !== null));
    const deep = Math.max(...names.map((lines) => lines.length)) * 15 + 1;
    // The height of the names is that of the name with the most lines.
    const texts = apart(
      ends.map(({ y }) => at.y(y)),
      deep,
      top + 4,
      top + high + 16,
    );
    ends.forEach((end, index) => {
      const [x, y] = [left + wide, at.y(end.y)];
      svg.append(
        shape("path", {
          d: `M${at.x(end.x) + 6} ${y}L${x + 8} ${y}L${x + 18} ${texts[index]}`,
          fill: "none",
          stroke: colours(series[index].key, theme),
          "stroke-width": 1,
        }),
      );
      names[index].forEach((line, row) =>
        svg.append(label(x + 21, texts[index] + 4 + row * 15, line, { size: SIZE.value, fill: theme.ink })),
      );
    });
  }
  return top + high + 50;
}

/** Draws a published value: an empty ring in the colour of its line. */
const ring = (cx, cy, stroke) =>
  shape("circle", { class: "published", cx, cy, r: 6, fill: "none", stroke, "stroke-width": 2.5 });

/** Draws one line with its points. */
function drawLine(svg, plot, one, points, at, index, stroke) {
  const path = (key) => {
    let isOpen = false;
    return points
      .map((point) => {
        if (point[key] === null) return ((isOpen &&= plot.joinsGaps), "");
        const command = isOpen ? "L" : "M";
        isOpen = true;
        return `${command}${at.x(point.x).toFixed(1)} ${at.y(point[key]).toFixed(1)}`;
      })
      .join("");
  };
  const banded = points.filter(({ band }) => band !== null);
  if (banded.length > 1) {
    const edge = (side) => ({ x, band }) => `${at.x(x).toFixed(1)} ${at.y(band[side]).toFixed(1)}`;
    const outline = [...banded.map(edge(0)), ...banded.map(edge(1)).reverse()];
    svg.append(shape("path", { class: "band", d: `M${outline.join("L")}Z`, fill: stroke, "fill-opacity": 0.15 }));
  }
  const isPublished = plot.expectedIs === "published";
  for (const { x, expected, expectedText } of isPublished ? points.filter(({ expected }) => expected !== null) : []) {
    svg.append(told(ring(at.x(x), at.y(expected), stroke), `${one.name}, ${plot.expectedIs}: ${expectedText}`));
  }
  if (one.expected && !isPublished)
    svg.append(
      shape("path", { d: path("expected"), fill: "none", stroke, "stroke-width": 1.5, "stroke-dasharray": "5 3" }),
    );
  // If expected values are drawn as lines, measured values are drawn as marks only.
  else
    svg.append(
      shape("path", {
        class: "mark",
        d: path("y"),
        fill: "none",
        stroke,
        "stroke-width": 2,
        "stroke-linejoin": "round",
      }),
    );
  const measured = points.filter(({ y }) => y !== null);
  // With many points, only a few get the mark that the legend shows.
  const every = Math.ceil(measured.length / 40) * (points.length > 40 ? 8 : 1);
  for (const { x, name, y, text } of measured.filter(
    (_, at) => (at + index * 2) % every === 0 || at === measured.length - 1,
  )) {
    svg.append(told(SYMBOLS[index % 4](at.x(x), at.y(y), stroke), `${one.name}, ${plot.xLabel} ${name}: ${text}`));
  }
}

/** Draws a heat map: one row per series, values as colours. */
function drawHeat(svg, plot, width, theme) {
  const { x } = plot.panels[0];
  const mean = ({ values }) => values.reduce((sum, value) => sum + (value ?? 0), 0) / values.length;
  const series = [...plot.panels[0].series];
  // Numbers are sorted.
  if (series.some(({ key }) => isNaN(Number(key))))
    series.sort((a, b) => (plot.isLessBetter ? mean(a) - mean(b) : mean(b) - mean(a)));
  const values = series.flatMap(({ values }) => values).filter((value) => value !== null);
  let [low, high] = [Math.min(...values), Math.max(...values)];
  // A larger change is darker, even if all changes are negative.
  if (plot.isOfChanges && high <= 0) [low, high] = [high, low];
  const shades = theme.name === "dark" ? ["#17222c", "#2f5878"] : ["#f3f7fb", "#85b8dd"];
  const names = Math.max(...series.map(({ name }) => widthOf(name, SIZE.name))) + 12;
  const [wide, deep] = [(width - names) / x.length, 34];
  series.forEach(({ name, values, texts }, row) => {
    svg.append(label(names - 10, 4 + row * deep + deep / 2 + 4, name, { fill: theme.ink, anchor: "end" }));
    values.forEach((value, column) => {
      const fill = value === null ? theme.tint : mixed(shades[0], shades[1], (value - low) / (high - low || 1));
      const place = { x: names + column * wide, y: 4 + row * deep, width: wide - 2, height: deep - 2, rx: 2 };
      const text = texts[column] ?? "–";
      svg.append(
        told(shape("rect", { class: "mark", ...place, fill }), `${plot.yLabel}, ${name}, ${x[column].name}: ${text}`),
      );
      const size = widthOf(text, SIZE.value) > wide - 6 ? SIZE.value - 2 : SIZE.value;
      // The background colour is stored, so that a test can check the contrast of the text.
      const inside = label(place.x + wide / 2 - 1, place.y + deep / 2 + 3, text, {
        size,
        fill: theme.ink,
        anchor: "middle",
      });
      inside.dataset.on = fill;
      svg.append(inside);
    });
  });
  const bottom = 4 + series.length * deep;
  const heads = x.map(({ name }) => wrapped(name, wide - 6, SIZE.value));
  heads.forEach((lines, column) =>
    lines.forEach((line, at) =>
      svg.append(
        label(names + (column + 0.5) * wide - 1, bottom + 16 + 16 * at, line, {
          size: SIZE.value,
          fill: theme.ink,
          anchor: "middle",
        }),
      ),
    ),
  );
  let y = bottom + 20 + 16 * Math.max(...heads.map((lines) => lines.length));
  for (const line of wrapped(plot.xLabel, width - names, SIZE.value)) {
    svg.append(
      label(names + (width - names) / 2, y, line, { size: SIZE.value, fill: theme.quiet, anchor: "middle" }),
    );
    y += 16;
  }
  return y - 6;
}
