/* SPDX-License-Identifier: Apache-2.0 */
"use strict";

// Sorts a table by the column of a header's button: numbers by data-v, else text.
function sortBy(button) {
  const header = button.parentElement;
  const table = header.closest("table");
  const column = Array.prototype.indexOf.call(header.parentElement.children, header);
  const isNumber = header.classList.contains("n");
  const down = header.getAttribute("aria-sort") === "descending" ||
    (!isNumber && header.getAttribute("aria-sort") !== "ascending") ? "ascending" : "descending";
  const sign = down === "ascending" ? 1 : -1;
  const body = table.tBodies[0];
  const keyed = Array.from(body.rows, (row) => {
    const cell = row.cells[column];
    return [isNumber ? Number(cell.dataset.v || 0) : cell.textContent, row];
  });
  keyed.sort((a, b) => sign * (isNumber ? a[0] - b[0] : a[0].localeCompare(b[0])));
  for (const other of header.parentElement.children) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", down);
  body.append(...keyed.map((pair) => pair[1]));
}

// Scales the graph; 0: to the width of its frame.
function zoomGraph(factor) {
  const svg = document.querySelector(".graph");
  const natural = Number(svg.getAttribute("width"));
  const frame = svg.parentElement.clientWidth - 2;
  const now = svg.clientWidth || natural;
  const width = factor === 0 ? Math.min(frame, natural) : now * factor;
  svg.style.width = Math.max(50, width) + "px";
  svg.style.height = "auto";
}

// Marks the nodes whose title has the text, and scrolls to the first.
function findNode(text) {
  const wanted = text.trim().toLowerCase();
  let first = null;
  for (const node of document.querySelectorAll(".graph g")) {
    const title = node.querySelector("title").textContent.toLowerCase();
    const found = wanted !== "" && title.includes(wanted);
    node.classList.toggle("found", found);
    if (found && !first) first = node;
  }
  if (first) first.scrollIntoView({ block: "center", inline: "center" });
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.closest("th")) sortBy(button);
  if (button.dataset.zoom) zoomGraph(Number(button.dataset.zoom));
});
document.addEventListener("input", (event) => {
  if (event.target.id === "find") findNode(event.target.value);
  if (event.target.id === "stretch")
    document.getElementById("tracks").style.width = event.target.value + "%";
});
