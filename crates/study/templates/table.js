// The table: a click on a heading sorts it; buttons show further columns and rows.
(() => {
  const table = document.getElementById("table");
  table.classList.add("sortable", "short");
  const more = document.getElementById("columns");
  more.hidden = !table.querySelector(".more");
  more.addEventListener("click", () => {
    const short = table.classList.toggle("short");
    more.textContent = short ? "Show every column" : "Show fewer columns";
  });
  // A long table would push the rest of the page far down.
  const count = table.tBodies[0].rows.length;
  const rows = document.getElementById("rows");
  rows.hidden = count <= 40;
  const showRows = (few) => {
    table.classList.toggle("few", few);
    rows.textContent = few ? `Show all ${count} rows` : "Show 20 rows";
  };
  if (!rows.hidden) showRows(true);
  rows.addEventListener("click", () => showRows(!table.classList.contains("few")));
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, at) =>
    head.addEventListener("click", () => {
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
    }),
  );
})();
