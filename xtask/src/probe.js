// Checks a report as a reader sees it, and sends the problems to the enclosing page. `browser.rs` appends this script
// to a copy of the report and shows the copy in a frame of a given width.
(async () => {
  const problems = new Set();
  const complain = (what) => void problems.add(what);
  const parsed = (colour) => colour.match(/[\d.]+/g).map(Number);
  const short = (text) => text.trim().slice(0, 40);

  /** The contrast ratio of two colours as defined in WCAG 2. */
  function contrast(one, other) {
    const luminance = (colour) => {
      const [r, g, b] = parsed(colour)
        .slice(0, 3)
        .map((part) => {
          const share = part / 255;
          return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
        });
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  }

  // The page of a served drive draws its plots from other data, some of which arrives later.
  const plots = JSON.parse(document.getElementById("plots")?.textContent ?? "[]");
  while (document.body.dataset.ready === undefined) await new Promise((resolve) => setTimeout(resolve, 50));
  if (plots.length === 0) await new Promise((resolve) => setTimeout(resolve, 8_000));
  const rgbOf = (hex) => "rgb(" + [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)).join(",") + ")";

  function background(element) {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if ((parsed(colour)[3] ?? 1) > 0) return colour;
    }
    return "rgb(255, 255, 255)";
  }

  /** Whether two boxes overlap by more than a pixel. The box of a text is higher than its letters, hence `slack`. */
  const meet = (a, b, slack) =>
    a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - slack && b.top < a.bottom - slack;

  /** Checks that nothing in a drawing is cut off and that no text overlaps a text or a bar. */
  function drawing(svg, where) {
    const frame = svg.getBoundingClientRect();
    const texts = [...svg.querySelectorAll("text")].map((text) => ({ text, box: text.getBoundingClientRect() }));
    for (const { text, box } of texts) {
      const isOut =
        box.left < frame.left - 1 ||
        box.right > frame.right + 1 ||
        box.top < frame.top - 2 ||
        box.bottom > frame.bottom + 2;
      if (isOut) complain(`${where}: "${short(text.textContent)}" is clipped`);
      const on = text.dataset.on ? rgbOf(text.dataset.on) : background(svg.parentElement);
      const ratio = contrast(getComputedStyle(text).fill, on);
      if (ratio < 4.5) complain(`${where}: "${short(text.textContent)}" has a contrast of ${ratio.toFixed(1)}`);
    }
    texts.forEach((one, at) => {
      const other = texts.slice(at + 1).find(({ box }) => meet(one.box, box, 3));
      if (other) complain(`${where}: "${short(one.text.textContent)}" overlaps "${short(other.text.textContent)}"`);
    });
    const bars = [...svg.querySelectorAll("rect.mark, g.published")].map((bar) => bar.getBoundingClientRect());
    for (const { text, box } of texts.filter(({ text }) => !text.dataset.on)) {
      if (bars.some((bar) => meet(box, bar, 3))) complain(`${where}: "${short(text.textContent)}" overlaps a bar`);
    }
  }

  /** The perceived distance of two colours (CIE 1976). From 15 on they can be distinguished anywhere in a plot. */
  function distance(one, other) {
    const lab = (colour) => {
      const [r, g, b] = colour.map((part) =>
        part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4,
      );
      const [x, y, z] = [
        (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505,
        0.2126 * r + 0.7152 * g + 0.0722 * b,
        (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089,
      ].map((part) => (part > 0.008856 ? Math.cbrt(part) : 7.787 * part + 16 / 116));
      return [116 * y, 500 * (x - y), 200 * (y - z)];
    };
    const [from, to] = [lab(one), lab(other)];
    return Math.hypot(...from.map((part, at) => part - to[at]));
  }

  /** The coloured names of a plot, each with the colour of its marks; `null` for a mark without one of these names. */
  function coloured(svg, plot) {
    const [places, { series }] = [plot.panels.flatMap(({ x }) => x), plot.panels[0]];
    const names = (plot.coloursPlaces ? places : series).map(({ name }) => name);
    // The tooltip of a mark begins with the place, or ends with the series and the value.
    const parts = (hint) =>
      plot.kind === "line"
        ? [hint.slice(0, hint.lastIndexOf(`, ${plot.xLabel} `))]
        : plot.coloursPlaces
          ? [hint.slice(0, hint.indexOf(": ")), hint.slice(0, hint.lastIndexOf(`, ${series[0].name}: `))]
          : places.map(({ name }) => hint.slice(name === "" ? 0 : name.length + 2, hint.indexOf(": ", name.length)));
    const found = new Map();
    for (const mark of svg.querySelectorAll(":has(> title):not(.published)")) {
      const hint = mark.querySelector("title").textContent;
      const name = parts(hint).find((part) => names.includes(part)) ?? null;
      found.set(name, mark.getAttribute("fill"));
    }
    return found;
  }

  /**
   * Checks that no two things in a plot have similar colours. The only exception are places without a legend, which
   * may all have the same colour.
   */
  function colours(svg, plot, where) {
    if (!plot || (plot.kind !== "bar" && plot.kind !== "line")) return;
    const found = [...coloured(svg, plot)];
    if (found.some(([name]) => name === null)) complain(`${where}: a mark has no name of the plot`);
    if (plot.coloursPlaces && new Set(found.map(([, colour]) => colour)).size === 1) return;
    found.forEach(([name, colour], at) => {
      const alike = found
        .slice(at + 1)
        .find(([, other]) => distance(parsed(rgbOf(colour)), parsed(rgbOf(other))) < 15);
      if (alike) complain(`${where}: "${short(name)}" and "${short(alike[0])}" have colours that look alike`);
    });
  }

  /** Checks the contrast of text outside the drawings, and that the page is not wider than its window. */
  function prose(where) {
    for (const element of document.querySelectorAll("body *:not(script, style, svg, svg *, tr:nth-child(n + 3) *)")) {
      // Only the first two rows of a table are checked.
      const hasText = [...element.childNodes].some(
        (node) => node.nodeType === Node.TEXT_NODE && node.textContent.trim() !== "",
      );
      if (!hasText || element.getClientRects().length === 0) continue;
      const ratio = contrast(getComputedStyle(element).color, background(element));
      if (ratio < 4.5) complain(`${where}: "${short(element.textContent)}" has a contrast of ${ratio.toFixed(1)}`);
    }
    const { scrollWidth, clientWidth } = document.documentElement;
    if (scrollWidth > clientWidth)
      complain(`${where}: the page is ${scrollWidth} pixels wide in a window of ${clientWidth}`);
  }

  function everything(where) {
    document.querySelectorAll(".plot").forEach((plot, at) => {
      const svg = plot.querySelector("svg");
      if (!svg || svg.querySelectorAll(".mark").length === 0) return complain(`${where}: a plot is empty: ${at}`);
      drawing(svg, `${where}, plot ${at}`);
      colours(svg, plots[at], `${where}, plot ${at}`);
    });
    prose(where);
  }

  /** The name and the content of the file that a click on `button` saves. */
  function saved(button) {
    return new Promise((resolve) => {
      const [create, click, Whole] = [URL.createObjectURL, HTMLAnchorElement.prototype.click, Blob];
      let content;
      // Reading a blob needs another process, for which a browser that dumps its page does not wait. So the parts are
      // kept.
      Blob = function (parts, options) {
        return Object.assign(new Whole(parts, options), { first: parts[0] });
      };
      URL.createObjectURL = (blob) => ((content = blob), "blob:checked");
      HTMLAnchorElement.prototype.click = function () {
        [URL.createObjectURL, HTMLAnchorElement.prototype.click, Blob] = [create, click, Whole];
        resolve({ content: content.first, name: this.download });
      };
      button.click();
    });
  }

  const hex = (bytes) => [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");

  /** Decodes a picture. */
  const decoded = (bytes) =>
    new Promise((resolve, reject) => {
      const picture = new Image();
      [picture.onload, picture.onerror] = [() => resolve(picture), () => reject(new Error("the PNG cannot be read"))];
      let text = "";
      bytes.forEach((byte) => (text += String.fromCharCode(byte)));
      picture.src = "data:image/png;base64," + btoa(text);
    });

  /** Checks the files that the buttons under a plot save. */
  async function files(figure, at) {
    const [svgButton, pngButton] = figure.querySelectorAll(".save button");
    const svg = await saved(svgButton);
    const read = new DOMParser().parseFromString(svg.content, "image/svg+xml");
    const marks = read.querySelectorAll(".mark").length;
    if (read.querySelector("parsererror") || marks === 0 || !svg.name.endsWith(".svg"))
      return complain(`plot ${at}: the SVG is broken`);
    const root = document.importNode(read.documentElement, true);
    document.body.append(root);
    drawing(root, `plot ${at}, its SVG`);
    root.remove();
    // Rendering every picture takes long, so only two are checked.
    if (at > 1) return null;
    const png = await saved(pngButton);
    if (
      png.content[0] !== 0x89 ||
      String.fromCharCode(...png.content.slice(1, 4)) !== "PNG" ||
      !png.name.endsWith(".png")
    )
      return complain(`plot ${at}: the PNG is invalid`);
    const picture = await decoded(png.content);
    if (picture.width !== 1920) complain(`plot ${at}: the PNG is ${picture.width} pixels wide`);
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [picture.width, picture.height];
    const context = canvas.getContext("2d");
    context.drawImage(picture, 0, 0);
    const pixels = new Uint32Array(context.getImageData(0, 0, picture.width, picture.height).data.buffer);
    if (new Set(pixels.filter((_, at) => at % 7 === 0)).size < 3) complain(`plot ${at}: the PNG shows nothing`);
    return { svg: hex(new TextEncoder().encode(svg.content)), png: hex(png.content) };
  }

  // Collapsed sections are opened and checked too.
  document.querySelectorAll("details").forEach((details) => (details.open = true));
  const button = document.getElementById("theme");
  const preferred = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  const first = document.documentElement.dataset.theme ?? preferred;
  for (const theme of button ? ["light", "dark"] : [first]) {
    if (button && document.documentElement.dataset.theme !== theme) button.click();
    everything(`${innerWidth} pixels, ${theme}`);
  }
  const made = [];
  if (innerWidth === FILES_AT) {
    for (const [at, figure] of [...document.querySelectorAll("figure")].entries()) made.push(await files(figure, at));
  }
  const { plots: count, ready } = document.body.dataset;
  parent.postMessage({ plots: count, ready, first, problems: [...problems], made: made.find(Boolean) ?? null }, "*");
})();
