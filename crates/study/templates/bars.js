// Horizontal bars, one place below the other, so that there is space for names. All panels have the same scale.

/**
 * The value at which outlying bars are cut off, so that the others remain visible; nothing if there are no outliers. A
 * value is an outlier if it exceeds the others by half and most bars would otherwise have less than a quarter of the
 * space. Bars that show a trend are not cut.
 */
function cutAt(values, isOrdered) {
  const sorted = values.map(Math.abs).sort((a, b) => b - a);
  if (sorted.length < 8) return null;
  const few = Math.ceil(sorted.length * 0.15);
  const isCrowded = !isOrdered && sorted[Math.floor(sorted.length / 2)] < sorted[0] / 4;
  for (let at = few - 1; at >= 0; at--) {
    if (sorted[at] > (isCrowded ? 1.5 : 2.5) * sorted[at + 1] && sorted[at + 1] > 0) return sorted[at + 1] * 1.15;
  }
  return null;
}

/** The rows of a panel with their bars. If the order of the places has no meaning, the best is first. */
function rowsOf(plot, panel, colours, theme) {
  const rows = panel.x.map(({ key, name }, at) => ({
    name,
    bars: panel.series.map((one) => ({
      value: one.values[at],
      text: one.texts[at],
      published: one.expected?.[at] ?? null,
      publishedText: one.expectedTexts?.[at],
      name: one.name,
      fill: plot.coloursPlaces ? colours.ofPlace(plot, key, theme) : colours(one.key, theme),
    })),
  }));
  if (plot.isOrdered) return rows;
  // Values with equal texts keep the order of the study, which is also the order of the other panels.
  const seen = (value) => (plot.isOfChanges ? Math.round(1000 * value) : Number(value.toPrecision(3)));
  const key = ({ bars }) => {
    const last = bars.at(-1)?.value ?? null;
    return last === null ? (plot.isLessBetter ? Infinity : -Infinity) : seen(last);
  };
  return rows.sort((a, b) => (plot.isLessBetter ? key(a) - key(b) : key(b) - key(a)) || 0);
}

/** Maps the values of a panel, from `low` to `high`, to positions over `span` pixels. */
function barScale(plot, panels) {
  const bars = panels.flatMap(({ rows }) => rows.flatMap(({ bars }) => bars));
  const own = bars.map(({ value }) => value).filter((value) => value !== null);
  const all = own.concat(bars.flatMap(({ published }) => published ?? []));
  const hasPublished = all.length > own.length;
  if (plot.logY) {
    const positive = all.filter((value) => value > 0);
    const [low, high] = [Math.min(...positive) / 1.6, Math.max(...positive)];
    return {
      cut: null,
      part: (value) => (Math.log(Math.max(value, low)) - Math.log(low)) / (Math.log(high) - Math.log(low) || 1),
      zero: 0,
      hasBelow: false,
    };
  }
  // The axis includes zero for changes, and all published values.
  const cut = plot.isOfChanges || hasPublished ? null : cutAt(own, plot.isOrdered);
  const within = (value) => (cut === null ? value : Math.max(-cut, Math.min(cut, value)));
  const [low, high] = [Math.min(0, ...all.map(within)), Math.max(0, ...all.map(within))];
  const part = (value) => (within(value) - low) / (high - low || 1);
  return { cut, part, zero: part(0), hasBelow: low < 0, hasPublished };
}

/** Draws one bar with its value and the published value. */
function drawBar(svg, plot, bar, row, scale, at, theme) {
  const { x, y, height, span } = at;
  const where = (value) => x + span * scale.part(value);
  const middle = y + height / 2 + 4;
  if (bar.value === null) {
    svg.append(label(where(0) + 4, middle, "no value", { size: SIZE.value, fill: theme.quiet }));
    return;
  }
  const [from, to] = [x + span * scale.zero, where(bar.value)];
  // The label of a zero change is on the same side as the other labels.
  const isBelow = bar.value < 0 || (bar.value === 0 && scale.hasBelow && scale.zero === 1);
  const isCut = scale.cut !== null && Math.abs(bar.value) > scale.cut;
  const { text } = bar;
  const published = bar.published ? ` (${plot.expectedIs}: ${bar.publishedText})` : "";
  const hint = [row.name, bar.name].filter(Boolean).join(", ") + `: ${text}${published}`;
  const mark = plot.logY
    ? shape("circle", { class: "mark", cx: to, cy: y + height / 2, r: 5, fill: bar.fill })
    : shape("rect", {
        class: "mark",
        x: Math.min(from, to),
        y,
        width: Math.max(1, Math.abs(to - from)),
        height,
        rx: 1.5,
        fill: bar.fill,
      });
  if (!plot.logY) svg.append(told(mark, hint));
  if (isCut) {
    for (const shift of [14, 20]) {
      const edge = to - (isBelow ? -shift : shift);
      svg.append(
        shape("line", {
          class: "cut",
          x1: edge - 3,
          x2: edge + 3,
          y1: y + height,
          y2: y,
          stroke: theme.paper,
          "stroke-width": 2.5,
        }),
      );
    }
  }
  let end = plot.logY ? to + (isBelow ? -5 : 5) : to;
  if (bar.published) {
    const [low, high] = [where(Math.min(...bar.published)), where(Math.max(...bar.published))];
    svg.append(told(publishedMark(low, high, y - 2, height + 4, theme), hint));
    // The label is beyond the published mark, unless it fits between the bar and the mark.
    const needed = widthOf(text, SIZE.value, 700) + 12;
    const isFar = isBelow ? end - high > needed : low - end > needed;
    if (!isFar) end = isBelow ? Math.min(end, low - 2) : Math.max(end, high + 2);
  }
  if (at.valuesAtZero) end = from;
  const isLeft = isBelow !== Boolean(at.valuesAtZero);
  if (plot.logY) svg.append(told(mark, hint));
  svg.append(
    label(end + (isLeft ? -5 : 5), middle, text, {
      size: SIZE.value,
      fill: theme.ink,
      anchor: isLeft ? "end" : "start",
      weight: isCut ? 700 : 400,
    }),
  );
}

/** The number of panels that fit side by side. Bars on both sides of zero need more space. */
function columnsOf(count, width, hasBothSides = false) {
  const most = width < 560 ? 1 : width < 880 || hasBothSides ? 2 : 3;
  // Four panels are two rows of two.
  return count === 4 && most === 3 ? 2 : Math.min(count, most);
}

/** The widths that are equal in all panels. */
function barLayout(plot, panels, width, scale) {
  const columns = columnsOf(panels.length, width, scale.zero > 0 && scale.zero < 1);
  const wide = (width - 28 * (columns - 1)) / columns;
  const rows = panels.flatMap(({ rows }) => rows);
  const names = Math.min(
    Math.max(...rows.map(({ name }) => widthOf(name, SIZE.name))),
    wide * (plot.panels.length > 1 ? 0.42 : 0.38),
  );
  const texts = rows.flatMap(({ bars }) => bars.map(({ text }) => text ?? ""));
  const room = Math.max(...texts.map((text) => widthOf(text, SIZE.value, 700))) + 12;
  const isAbove = scale.zero < 1 || !scale.hasBelow;
  // Next to a published mark a number could be mistaken for the mark's, so it is on the other side of zero if that is
  // free.
  const valuesAtZero = scale.hasPublished && !plot.logY && (scale.zero === 0 || scale.zero === 1);
  const [before, after] = valuesAtZero
    ? isAbove
      ? [room, 6]
      : [6, room]
    : [scale.hasBelow ? room : 0, isAbove ? room : 6];
  return { columns, wide, names: names + 10, before, valuesAtZero, span: wide - names - 10 - before - after };
}

/** Draws all panels below `top` and returns the total height. */
function drawBars(svg, plot, width, theme, colours) {
  const panels = plot.panels.map((panel) => ({ title: panel.title, rows: rowsOf(plot, panel, colours, theme) }));
  const scale = barScale(plot, panels);
  const layout = barLayout(plot, panels, width, scale);
  const several = plot.panels[0].series.length > 1;
  const entries = several
    ? plot.panels[0].series.map(({ name, key }) => ({ name, mark: swatch(colours(key, theme)) }))
    : [];
  const published = publishedEntry(plot, theme);
  if (!several && published.length > 0) {
    const { name, key } = plot.panels[0].series[0];
    const [what, fill] = plot.coloursPlaces ? ["here", theme.quiet] : [`${name} here`, colours(key, theme)];
    entries.push({ name: what, mark: swatch(fill) });
  }
  entries.push(...published);
  if (scale.cut !== null)
    entries.push({
      name: "bar cut: its value stands beside it",
      mark: (x, y) => {
        const group = shape("g", {}, swatch(theme.quiet)(x, y));
        for (const at of [6, 11])
          group.append(
            shape("line", {
              x1: x + at - 2,
              x2: x + at + 2,
              y1: y + 5,
              y2: y - 5,
              stroke: theme.paper,
              "stroke-width": 2,
            }),
          );
        return group;
      },
    });
  let top = legend(svg, entries, width, theme);
  for (let first = 0; first < panels.length; first += layout.columns) {
    const line = panels.slice(first, first + layout.columns);
    const heights = line.map((panel, at) =>
      drawPanel(svg, plot, panel, at * (layout.wide + 28), top, layout, scale, theme),
    );
    top += Math.max(...heights) + 18;
  }
  return top - 10;
}

/** Draws one panel and returns its height. */
function drawPanel(svg, plot, panel, left, top, layout, scale, theme) {
  const thick = panel.rows[0]?.bars.length > 1 ? 15 : 17;
  let y = top;
  for (const line of panel.title === null ? [] : wrapped(panel.title, layout.wide, SIZE.head, 600)) {
    svg.append(label(left, y + 14, line, { size: SIZE.head, fill: theme.ink, weight: 600 }));
    y += 20;
  }
  y += 4;
  const x = left + layout.names + layout.before;
  const from = y;
  const marks = shape("g");
  for (const row of panel.rows) {
    const names = wrapped(row.name, layout.names - 8, SIZE.name);
    // A place without any value has a single label.
    const bars = row.bars.every(({ value }) => value === null) ? row.bars.slice(0, 1) : row.bars;
    const high = Math.max(bars.length * (thick + 2), names.length * 17);
    const middle = y + high / 2 - (names.length - 1) * 8.5 + 4.5;
    names.forEach((line, at) =>
      marks.append(label(left + layout.names - 8, middle + at * 17, line, { fill: theme.ink, anchor: "end" })),
    );
    const first = y + (high - bars.length * (thick + 2)) / 2 + 1;
    bars.forEach((bar, at) =>
      drawBar(
        marks,
        plot,
        bar,
        row,
        scale,
        { x, y: first + at * (thick + 2), height: thick, span: layout.span, valuesAtZero: layout.valuesAtZero },
        theme,
      ),
    );
    y += high + (row.bars.length > 1 ? 9 : 5);
  }
  const zero = x + layout.span * scale.zero;
  svg.append(
    marks,
    shape("line", { x1: zero, x2: zero, y1: from - 3, y2: y - 2, stroke: theme.quiet, "stroke-width": 1 }),
  );
  return y - top;
}

/** Draws stacked bars. */
function drawStacks(svg, plot, width, theme) {
  const every = plot.panels.flatMap(({ series }) => series);
  // A panel has only layers with values.
  const layers = every.filter(({ key }, at) => every.findIndex((other) => other.key === key) === at);
  layers.sort((a, b) => (a.key < b.key ? -1 : 1));
  const fills = ramp(theme, layers.length);
  let top = legend(
    svg,
    layers.map(({ name }, at) => ({ name, mark: swatch(fills[at]) })),
    width,
    theme,
  );
  const columns = columnsOf(plot.panels.length, width);
  const wide = (width - 28 * (columns - 1)) / columns;
  const names =
    Math.min(wide * 0.3, Math.max(...plot.panels.flatMap(({ x }) => x.map(({ name }) => widthOf(name, SIZE.name))))) +
    10;
  for (let first = 0; first < plot.panels.length; first += columns) {
    const heights = plot.panels.slice(first, first + columns).map((panel, column) => {
      const left = column * (wide + 28);
      if (panel.title !== null)
        svg.append(label(left, top + 14, panel.title, { size: SIZE.head, fill: theme.ink, weight: 600 }));
      panel.x.forEach(({ name }, row) => {
        const y = top + 24 + row * 21;
        svg.append(label(left + names - 8, y + 13, name, { fill: theme.ink, anchor: "end" }));
        let from = left + names;
        panel.series.forEach((layer, at) => {
          const long = (layer.values[row] ?? 0) * (wide - names);
          if (long <= 0) return;
          const bar = shape("rect", {
            class: "mark",
            x: from,
            y,
            width: Math.max(long - 1, 0.5),
            height: 17,
            fill: fills[layers.findIndex(({ key }) => key === layer.key)],
          });
          svg.append(told(bar, `${panel.title ?? ""} ${name}, ${layer.name}: ${layer.texts[row]}`));
          from += long;
        });
      });
      return 24 + panel.x.length * 21;
    });
    top += Math.max(...heights) + 16;
  }
  return top - 8;
}

/** Colours for ordered values, from the accent colour to the page colour. */
function ramp(theme, count) {
  const hue = PALETTES[theme.name][0];
  const part = (at) => (count < 2 ? 0 : at / (count - 1));
  return Array.from({ length: count }, (_, at) =>
    part(at) < 0.5 ? mixed(theme.ink, hue, part(at) * 2) : mixed(hue, theme.paper, (part(at) - 0.5) * 1.6),
  );
}
