"use strict";
(() => {
  const plots = JSON.parse(document.getElementById("plots").textContent);
  // Wong's palette, told apart by people who see colours differently; lighter where the page is dark.
  const palettes = {
    light: ["#0072b2", "#e08a00", "#009e73", "#cc4c79", "#7a5cc0", "#56a0d0", "#8c6d31", "#6b7280", "#a3a500"],
    dark: ["#4aa3df", "#f0b34a", "#3fc79a", "#e887ab", "#a994e6", "#8fcdf2", "#c9ad6b", "#b8c0ca", "#d6d45a"],
  };
  const symbols = ["circle", "rect", "triangle", "diamond", "emptyCircle", "emptyRect", "emptyTriangle"];
  const steps = {
    number: [[1e9, " G"], [1e6, " M"], [1e4, " K", 1e3], [1, ""]],
    nanoseconds: [[1e9, " s"], [1e6, " ms"], [1e3, " µs"], [1, " ns"]],
    bytesPerSecond: [[1e9, " GB/s"], [1e6, " MB/s"], [1e3, " kB/s"], [1, " B/s"]],
    bytes: [[2 ** 30, " GiB"], [2 ** 20, " MiB"], [2 ** 10, " KiB"], [1, " B"]],
  };

  /** A value to three significant digits, with its unit. */
  const readable = (value, unit) => {
    if (value === 0) return "0";
    const found = steps[unit].find(([from]) => Math.abs(value) >= from) ?? steps[unit].at(-1);
    const scaled = value / (found[2] ?? found[0]);
    const digits = Math.max(0, Math.min(4, 2 - Math.floor(Math.log10(Math.abs(scaled)))));
    return scaled.toFixed(digits) + found[1];
  };

  const trimmed = (text) => text.replace(/(\.\d*?)0+(?=\D|$)/, "$1").replace(/\.(?=\D|$)/, "");

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  /** Names without the words that all of them have. */
  const shortened = (names) => {
    const words = names.map((name) => String(name).split(/[:,]/));
    if (words.length < 2) return names.map(String);
    const common = new Set(words[0].filter((word) => words.every((others) => others.includes(word))));
    return words.map((own, at) => own.filter((word) => !common.has(word)).join(",") || String(names[at]));
  };

  /** How far to push each line's name up or down so that no two names at the right edge collide. */
  function endOffsets(plot, height) {
    const scale = plot.logY ? Math.log : (y) => y;
    const values = plot.series.flatMap(({ values }) => values).filter((y) => y !== null).map(scale);
    const low = plot.logY || plot.reference === null ? Math.min(...values) : Math.min(0, ...values);
    const pixel = height / (Math.max(...values) - low || 1);
    const ends = plot.series.map(({ values }, at) => ({ at, y: -pixel * scale(values.findLast((y) => y !== null) ?? 0) }));
    ends.sort((a, b) => a.y - b.y);
    const offsets = [];
    let free = -Infinity;
    for (const { at, y } of ends) {
      free = Math.max(free, y);
      offsets[at] = free - y;
      free += 14;
    }
    return offsets;
  }

  /** Series one below the other, the values as colours. */
  function heatMap(plot, theme, narrow) {
    const [ink, quiet, line, paper] = ["--ink", "--quiet", "--line", "--paper"].map(colour);
    const rows = shortened(plot.series.map(({ name }) => name));
    const data = plot.series.flatMap(({ values }, y) => values.map((value, x) => [x, y, value ?? "-"]));
    const values = data.map(([, , value]) => value).filter((value) => value !== "-");
    const [low, high] = [Math.min(...values), Math.max(...values)];
    const shades = theme === "dark" ? ["#17222c", "#2b4f6e", "#3f7cab"] : ["#f3f7fb", "#b5d3ea", "#74aed9"];
    const axis = { type: "category", axisLine: { lineStyle: { color: quiet } }, axisTick: { show: false },
      axisLabel: { color: ink }, nameTextStyle: { color: quiet } };
    return {
      backgroundColor: "transparent",
      textStyle: { fontFamily: getComputedStyle(document.body).fontFamily },
      aria: { enabled: true },
      tooltip: { backgroundColor: paper, borderColor: line, textStyle: { color: ink },
        formatter: ({ value: [x, y, value] }) => `${rows[y]}, ${plot.xLabel} ${plot.x[x]}: ${readable(value, plot.unit)}` },
      grid: { left: 16, right: 16, top: 24, bottom: 76, containLabel: true },
      xAxis: { ...axis, data: shortened(plot.x), name: plot.xLabel, nameLocation: "middle", nameGap: 28 },
      yAxis: { ...axis, data: rows, inverse: true },
      visualMap: { min: low, max: high, calculable: false, orient: "horizontal", left: "center", bottom: 0,
        text: [`${plot.yLabel} ${readable(high, plot.unit)}`, readable(low, plot.unit)], textStyle: { color: ink },
        inRange: { color: shades } },
      series: [{ type: "heatmap", data, animation: false, itemStyle: { borderColor: paper, borderWidth: 2 },
        label: { show: !narrow, color: ink,
          formatter: ({ value: [, , value] }) => (value === "-" ? "" : readable(value, plot.unit)) } }],
    };
  }

  function option(plot, theme, narrow) {
    if (plot.kind === "heatmap") return heatMap(plot, theme, narrow);
    const [ink, quiet, line, paper] = ["--ink", "--quiet", "--line", "--paper"].map(colour);
    const palette = palettes[theme];
    const names = shortened(plot.series.map(({ name }) => name));
    const places = shortened(plot.x);
    const crowded = places.join("").length > 90;
    const numeric = plot.kind === "line";
    const bars = plot.x.length * plot.series.length;
    const points = plot.x.length;
    const label = { show: numeric ? points * plot.series.length <= 16 : bars <= (narrow ? 0 : 28), position: "top", fontSize: 11,
      color: ink, textBorderColor: paper, textBorderWidth: 2, formatter: ({ value }) => {
        const y = Array.isArray(value) ? value[1] : value;
        return y === null || y === undefined ? "" : readable(y, plot.unit);
      } };
    const offsets = numeric ? endOffsets(plot, 260) : [];
    const series = plot.series.flatMap((one, at) => {
      const values = numeric ? one.values.map((y, i) => [plot.x[i], y]) : one.values;
      const common = { name: names[at], color: palette[at % palette.length], animation: false };
      const main = numeric
        ? { ...common, type: "line", data: values, symbol: symbols[at % symbols.length], symbolSize: 8, label,
            // Beside what is expected, the measured values are marks alone: lines would hide each other.
            lineStyle: { width: one.expected ? 0 : 2 }, labelLayout: { hideOverlap: label.show },
            endLabel: { show: !narrow && !one.expected && names.length > 1, color: ink, distance: 8, offset: [0, offsets[at]],
              formatter: ({ value }) => `${names[at]} ${readable(value[1], plot.unit)}` } }
        : { ...common, type: "bar", data: values, label, barMaxWidth: 64, barGap: "8%", itemStyle: { borderRadius: [2, 2, 0, 0] },
            ...(plot.kind === "stack" ? { stack: "all", label: { show: false }, itemStyle: { borderColor: paper, borderWidth: 1 } } : {}) };
      if (at === 0 && plot.reference !== null) {
        main.markLine = { silent: true, symbol: "none", animation: false, label: { show: false },
          lineStyle: { color: quiet, type: "dashed" }, data: [{ yAxis: plot.reference }] };
      }
      if (!one.expected) return [main];
      const name = `${names[at]}, ${plot.expectedIs}`;
      if (!numeric) {
        // A stroke over each bar; laid out as bars are, so that it lies over its own.
        const stroke = { ...common, name, type: "pictorialBar", symbol: "rect", symbolSize: ["100%", 3], symbolPosition: "end",
          barMaxWidth: 64, barGap: "8%", z: 3, color: ink, itemStyle: { color: ink, borderColor: paper, borderWidth: 1 },
          data: plot.x.map((_, i) => one.expected[i]) };
        return [main, stroke];
      }
      const expected = { ...common, name, type: "line", symbol: "none",
        lineStyle: { width: 1.5 }, data: one.expected.map((y, i) => [plot.x[i], y]) };
      return [main, expected];
    });
    const axis = { axisLine: { lineStyle: { color: quiet } }, axisLabel: { color: ink }, nameTextStyle: { color: quiet },
      splitLine: { lineStyle: { color: line } } };
    return {
      backgroundColor: "transparent",
      textStyle: { fontFamily: getComputedStyle(document.body).fontFamily },
      aria: { enabled: true },
      tooltip: { trigger: "axis", backgroundColor: paper, borderColor: line, textStyle: { color: ink },
        axisPointer: { type: numeric ? "line" : "shadow" },
        valueFormatter: (y) => (y === null || y === undefined ? "–" : readable(Array.isArray(y) ? y[1] : y, plot.unit)) },
      legend: { type: "scroll", top: 0, left: 0, textStyle: { color: ink }, data: series.filter(({ type }) => type !== "pictorialBar").map(({ name }) => name) },
      grid: { left: 16, right: numeric && !narrow ? 130 : 16, top: 68, bottom: 34, containLabel: true },
      xAxis: { ...axis, type: numeric ? (plot.logX ? "log" : "value") : "category", logBase: 2,
        data: numeric ? undefined : places, scale: true, name: numeric ? plot.xLabel : "", nameLocation: "middle", nameGap: 30,
        splitLine: { show: false },
        axisLabel: { color: ink, interval: 0, rotate: !numeric && (narrow || crowded) ? 30 : 0,
          formatter: numeric ? (x) => trimmed(readable(x, plot.xUnit)) : undefined } },
      yAxis: { ...axis, type: plot.logY ? "log" : "value", name: plot.yLabel, nameLocation: "end",
        nameTextStyle: { color: quiet, align: "left", padding: [0, 0, 4, 0] },
        scale: numeric && !plot.logY && plot.reference === null,
        axisLabel: { color: ink, formatter: (y) => trimmed(readable(y, plot.unit)) } },
      series,
    };
  }

  const charts = plots.map((_, at) =>
    echarts.init(document.getElementById("plot-" + at), null, { renderer: "svg" }));
  const drawn = new Set();
  const draw = () => charts.forEach((chart, at) => {
    const narrow = chart.getWidth() < 560;
    chart.setOption(option(plots[at], document.documentElement.dataset.theme, narrow), true);
  });
  const ready = () => { document.body.dataset.ready = String(drawn.size); };

  const button = document.getElementById("theme");
  const wanted = matchMedia("(prefers-color-scheme: dark)");
  const show = (theme) => {
    document.documentElement.dataset.theme = theme;
    button.textContent = theme === "dark" ? "Light" : "Dark";
    draw();
  };
  charts.forEach((chart, at) => chart.on("finished", () => { drawn.add(at); ready(); }));
  ready();
  show(wanted.matches ? "dark" : "light");
  button.hidden = false;
  button.addEventListener("click", () => show(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
  wanted.addEventListener("change", ({ matches }) => show(matches ? "dark" : "light"));
  addEventListener("resize", () => { charts.forEach((chart) => chart.resize()); draw(); });

  // The table: sorted by a click, its further columns shown on request.
  const table = document.getElementById("table");
  table.classList.add("sortable", "short");
  const more = document.getElementById("columns");
  more.hidden = !table.querySelector(".more");
  more.addEventListener("click", () => {
    const short = table.classList.toggle("short");
    more.textContent = short ? "Show every column" : "Show fewer columns";
  });
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, at) => head.addEventListener("click", () => {
    const down = head.getAttribute("aria-sort") === "ascending";
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const number = head.classList.contains("number");
    const key = (row) => {
      const text = row.cells[at].dataset.value;
      return number ? (text === "" ? Infinity : Number(text)) : text;
    };
    const order = (a, b) => (key(a) > key(b)) - (key(a) < key(b));
    const body = table.tBodies[0];
    [...body.rows].sort((a, b) => (down ? -order(a, b) : order(a, b))).forEach((row) => body.append(row));
  }));
})();
