// The page: draws the plots, saves them as files, sorts the table.
(() => {
  const plots = JSON.parse(document.getElementById("plots").textContent);
  const colours = colouring(plots);
  const root = document.documentElement;

  /** The current colours of the page, to be stored in a drawing. */
  const themeNow = () => {
    const style = getComputedStyle(root);
    const named = ["paper", "ink", "quiet", "line", "tint"].map((name) => [
      name,
      style.getPropertyValue("--" + name).trim(),
    ]);
    return { name: root.dataset.theme, ...Object.fromEntries(named) };
  };

  /** Draws a plot with this width. */
  function drawn(plot, width, theme) {
    const svg = shape("svg", { xmlns: "http://www.w3.org/2000/svg", width, "font-family": FONT });
    const height =
      plot.kind === "bar"
        ? drawBars(svg, plot, width, theme, colours)
        : plot.kind === "stack"
          ? drawStacks(svg, plot, width, theme)
          : plot.kind === "line"
            ? drawLines(svg, plot, width, theme, colours)
            : drawHeat(svg, plot, width, theme);
    svg.setAttribute("height", Math.ceil(height));
    svg.setAttribute("viewBox", `0 0 ${width} ${Math.ceil(height)}`);
    return svg;
  }

  const figures = [...document.querySelectorAll("figure")];
  const draw = () => {
    const theme = themeNow();
    let ready = 0;
    figures.forEach((figure, at) => {
      const place = figure.querySelector(".plot");
      place.replaceChildren(drawn(plots[at], Math.floor(place.clientWidth), theme));
      ready += 1;
    });
    document.body.dataset.ready = String(ready);
  };

  /** A plot as the content of a file, with its title, its origin and a background. */
  function alone(at) {
    const [width, margin, theme] = [960, 24, themeNow()];
    const inner = drawn(plots[at], width - 2 * margin, theme);
    const svg = shape("svg", { xmlns: "http://www.w3.org/2000/svg", width, "font-family": FONT });
    const paper = shape("rect", { width, fill: theme.paper });
    svg.append(paper);
    let y = margin;
    const write = (text, style, deep) => {
      for (const line of wrapped(text, width - 2 * margin, style.size, style.weight))
        svg.append(label(margin, (y += deep), line, style));
    };
    write(plots[at].title, { size: 19, weight: 600, fill: theme.ink }, 24);
    write(figures[at].querySelector(".measure").textContent, { size: 14, fill: theme.quiet }, 20);
    inner.setAttribute("x", margin);
    inner.setAttribute("y", y + 14);
    svg.append(inner);
    y += 14 + Number(inner.getAttribute("height"));
    write("Fulgurite: " + document.title, { size: SIZE.value, fill: theme.quiet }, 22);
    svg.setAttribute("height", y + 16);
    paper.setAttribute("height", y + 16);
    return svg;
  }

  function save(content, name) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(content);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  }

  const text = (svg) => new XMLSerializer().serializeToString(svg);
  const fileName = (at, kind) => {
    const words = plots[at].title
      .toLowerCase()
      .replace(/[^a-z0-9]+/g, "-")
      .replace(/^-|-$/g, "");
    return `${words.slice(0, 60)}.${kind}`;
  };

  /** Renders a picture with two dots per pixel of the page. */
  function savePng(at) {
    const svg = alone(at);
    const image = new Image();
    image.onload = () => {
      const canvas = document.createElement("canvas");
      [canvas.width, canvas.height] = ["width", "height"].map((side) => 2 * Number(svg.getAttribute(side)));
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      const bytes = atob(canvas.toDataURL("image/png").split(",")[1]);
      save(
        new Blob([Uint8Array.from(bytes, (one) => one.charCodeAt(0))], { type: "image/png" }),
        fileName(at, "png"),
      );
    };
    image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(text(svg));
  }

  figures.forEach((figure, at) => {
    const [svg, png] = figure.querySelectorAll(".save button");
    svg.addEventListener("click", () =>
      save(new Blob([text(alone(at))], { type: "image/svg+xml" }), fileName(at, "svg")),
    );
    png.addEventListener("click", () => savePng(at));
    figure.querySelector(".save").hidden = false;
  });

  const button = document.getElementById("theme");
  const wanted = matchMedia("(prefers-color-scheme: dark)");
  const show = (theme) => {
    root.dataset.theme = theme;
    button.textContent = theme === "dark" ? "Light" : "Dark";
    draw();
  };
  show(wanted.matches ? "dark" : "light");
  button.hidden = false;
  button.addEventListener("click", () => show(root.dataset.theme === "dark" ? "light" : "dark"));
  wanted.addEventListener("change", ({ matches }) => show(matches ? "dark" : "light"));
  addEventListener("resize", draw);
})();
