"use strict";
// Shared by all plots: measuring text, formatting numbers, colours, the legend.

const SIZE = { name: 13, value: 12, head: 14 };
const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';
// Distinguishable with colour blindness, with a contrast of at least 3:1 to the page.
const PALETTES = {
  light: [
    "#0072b2",
    "#c46f00",
    "#00875f",
    "#c2406d",
    "#7a5cc0",
    "#7d6a00",
    "#2f8f9e",
    "#a34a28",
    "#2a35b5",
    "#5b7a2e",
    "#9b2d8f",
    "#d6402b",
  ],
  dark: [
    "#4aa3df",
    "#f0b34a",
    "#3fc79a",
    "#e887ab",
    "#a994e6",
    "#d6c94a",
    "#6fd0de",
    "#e59a78",
    "#6878f0",
    "#a9cc7a",
    "#e07fd6",
    "#ff7468",
  ],
};

const context = document.createElement("canvas").getContext("2d");

/** The width of a text in pixels. */
function widthOf(text, size, weight = 400) {
  context.font = `${weight} ${size}px ${FONT}`;
  return context.measureText(text).width;
}

/** Breaks a text into lines of at most `width`, between words, or else after signs within names. */
function wrapped(text, width, size, weight = 400) {
  const lines = [""];
  for (const word of text.split(/(?<=[ ,+:=])/)) {
    const longer = lines.at(-1) + word;
    if (lines.at(-1) !== "" && widthOf(longer.trimEnd(), size, weight) > width) lines.push(word);
    else lines[lines.length - 1] = longer;
  }
  return lines.map((line) => line.trimEnd());
}

/** An element of a drawing. */
function shape(name, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) {
    element.setAttribute(key, typeof value === "number" ? +value.toFixed(2) : value);
  }
  element.append(...children);
  return element;
}

/** A line of text whose baseline is at `y`. */
function label(x, y, text, style = {}) {
  const { size = SIZE.name, fill = "", anchor = "start", weight = 400 } = style;
  return shape("text", { x, y, fill, "font-size": size, "font-weight": weight, "text-anchor": anchor }, text);
}

/** Adds the tooltip of `element`. */
function told(element, text) {
  element.append(shape("title", {}, text));
  return element;
}

/** Formats a number of an axis with up to three digits and without trailing zeros. */
function onAxis(value, { times, plus, isSigned, units }) {
  const number = times * value + plus;
  // Steps are sums of fractions, so zero may have a rounding error.
  if (Math.abs(number) < 1e-12) return units.length === 1 ? "0" + units[0][2] : "0";
  const [, per, name] = units.find(([from]) => Math.abs(number) >= from) ?? units.at(-1);
  const size = Math.abs(number / per);
  const digits = size < 1000 ? Number(size.toPrecision(3)) : size.toFixed(0);
  return (number < 0 ? "−" : isSigned ? "+" : "") + digits + name;
}

const rgb = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
const mixed = (from, to, part) =>
  "#" +
  rgb(from)
    .map((one, at) =>
      Math.round(one + (rgb(to)[at] - one) * part)
        .toString(16)
        .padStart(2, "0"),
    )
    .join("");

const baseOf = (key) => (isNaN(Number(key)) ? key.split(":")[0] : "a number");

/** The names of a plot's places without their options. */
const placesOf = (plot) => [...new Set(plot.panels.flatMap(({ x }) => x.map(({ key }) => baseOf(key))))];

/** The colours of a report: one for each name, and shades of it for the name with other options. */
function colouring(plots) {
  const hues = [];
  const variants = new Map();
  for (const plot of plots.filter(({ kind }) => kind === "bar" || kind === "line")) {
    const keys = plot.panels.flatMap(({ x, series }) => (plot.coloursPlaces ? x : series).map(({ key }) => key));
    const bases = [...new Set(keys.map(baseOf))].filter((base) => !hues.includes(base));
    // If there are more names than colours, all are grey, because each bar has its name beside it.
    if (hues.length + bases.length <= PALETTES.light.length) hues.push(...bases);
    // Places with the same base name have one colour, because each bar has its name beside it.
    for (const key of plot.coloursPlaces && placesOf(plot).length === 1 ? [] : keys) {
      const known = variants.get(baseOf(key)) ?? variants.set(baseOf(key), []).get(baseOf(key));
      if (!known.includes(key)) known.push(key);
    }
  }
  const colours = (key, theme) => {
    const base = baseOf(key);
    const hue = PALETTES[theme.name][hues.indexOf(base)] ?? theme.quiet;
    const known = variants.get(base) ?? [];
    // The plain name, or else the first variant, has the unchanged colour.
    const plain = known.includes(base) ? base : known[0];
    const others = known.filter((one) => one !== plain);
    const at = others.indexOf(key);
    if (at < 0) return hue;
    // The other variants are alternately lighter and darker.
    const far = (Math.floor(at / 2) + 1) / Math.ceil(others.length / 2);
    const part = at % 2 === 0 ? 0.45 * far : -0.6 * far;
    return part < 0 ? mixed(hue, theme.ink, -part) : mixed(hue, theme.paper, part * 0.75);
  };
  /** The colour of a place. If the palette has too few colours, all places are grey: some in colour would stand out. */
  colours.ofPlace = (plot, key, theme) => {
    const bases = placesOf(plot);
    if (!bases.every((base) => hues.includes(base))) return theme.quiet;
    return colours(bases.length === 1 ? bases[0] : key, theme);
  };
  return colours;
}

/** The steps of an axis: about `count` round numbers from `low` to `high`. */
function ticks(low, high, count) {
  const rough = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].find((one) => one * power >= rough * 0.999) * power;
  const found = [];
  for (let at = Math.ceil(low / step - 1e-9); at * step <= high * (1 + 1e-9) + 1e-12; at++) found.push(at * step);
  return found;
}

/** The steps of a logarithmic axis: powers of ten, with 2 and 5 between them if there is space. */
function logTicks(low, high) {
  const found = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) {
    for (const one of [1, 2, 5]) found.push(one * 10 ** power);
  }
  const inside = found.filter((tick) => tick >= low * 0.999 && tick <= high * 1.001);
  const tens = inside.filter((tick) => Math.abs(Math.log10(tick) % 1) < 1e-9);
  return tens.length >= 3 ? tens : inside;
}

/** Draws the legend in as many lines as necessary and returns its height. */
function legend(svg, entries, width, theme) {
  if (entries.length === 0) return 0;
  let [x, y] = [0, 14];
  for (const { name, mark } of entries) {
    const wide = 24 + widthOf(name, SIZE.value);
    if (x > 0 && x + wide > width) [x, y] = [0, y + 20];
    svg.append(mark(x, y - 4), label(x + 22, y, name, { size: SIZE.value, fill: theme.ink }));
    x += wide + 16;
  }
  return y + 14;
}

const swatch = (fill) => (x, y) => shape("rect", { x: x + 2, y: y - 5, width: 14, height: 10, rx: 2, fill });

/** Draws published values beside ours: a stroke, or a bracket for a range. */
function publishedMark(low, high, y, height, theme) {
  const group = shape("g", { class: "published" });
  const stroke = (x) => [
    shape("line", { x1: x, x2: x, y1: y, y2: y + height, stroke: theme.paper, "stroke-width": 6 }),
    shape("line", { x1: x, x2: x, y1: y, y2: y + height, stroke: theme.ink, "stroke-width": 3 }),
  ];
  group.append(...stroke(low));
  if (high !== low) {
    const middle = y + height / 2;
    group.append(
      ...stroke(high),
      shape("line", { x1: low, x2: high, y1: middle, y2: middle, stroke: theme.ink, "stroke-width": 1.5 }),
    );
  }
  return group;
}

/** The legend's entry for published values, if there are any. */
function publishedEntry(plot, theme) {
  const any = plot.panels.some(({ series }) => series.some(({ expected }) => expected?.some((one) => one !== null)));
  return any ? [{ name: plot.expectedIs, mark: (x, y) => publishedMark(x + 9, x + 9, y - 7, 14, theme) }] : [];
}
