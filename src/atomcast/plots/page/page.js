
"use strict";
for (const section of document.querySelectorAll("section.table")) {
  const body = section.querySelector("tbody");
  const rows = [...body.rows];
  const shown = () => rows.filter((row) => !row.hidden);
  const output = section.querySelector("output");
  section.querySelector("input").addEventListener("input", (event) => {
    const wanted = event.target.value.toLowerCase();
    for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
    const all = rows.length.toLocaleString("en");
    output.textContent = wanted ? `${shown().length.toLocaleString("en")} of ${all} rows` : `${all} rows`;
  });
  const heads = [...section.querySelectorAll("thead th")];
  heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
    const up = head.getAttribute("aria-sort") !== "ascending";
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const key = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent;
    const compare = (a, b) => {
      const [x, y] = [key(a), key(b)];
      const numbers = row => row.cells[column].dataset.value !== undefined;
      return numbers(a) && numbers(b) ? Number(x) - Number(y) : x.localeCompare(y);
    };
    body.append(...rows.sort((a, b) => (up ? compare(a, b) : compare(b, a))));
  }));
  section.querySelector("button[data-file]").addEventListener("click", (event) => {
    // A cell that a spreadsheet would take for a formula gets an apostrophe in front.
    const quoted = (text) => `"${text.replace(/^(?=[=+\-@\t\r])/, "'").replaceAll('"', '""')}"`;
    const cell = (c) => (c.dataset.value !== undefined ? c.dataset.value : quoted(c.textContent));
    const lines = [heads.map((head) => quoted(head.textContent)).join(",")];
    for (const row of shown()) lines.push([...row.cells].map(cell).join(","));
    const link = document.createElement("a");
    link.href = `data:text/csv;charset=utf-8,${encodeURIComponent(lines.join("\r\n"))}`;
    link.download = event.target.dataset.file;
    link.click();
  });
}
