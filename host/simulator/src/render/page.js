const cluster = document.getElementById("cluster");
const words = document.getElementById("words");
const shown = document.getElementById("shown");
const rows = [...document.querySelectorAll("#events tbody tr")];
function filter() {
  const wanted = words.value.toLowerCase();
  for (const row of rows) {
    const right = !cluster.value || row.dataset.cluster === cluster.value;
    row.hidden = !(right && row.textContent.toLowerCase().includes(wanted));
  }
  const count = rows.filter((row) => !row.hidden).length;
  shown.textContent = `${count} of ${rows.length} events are shown.`;
}
// A marker of the drawing leads to its row, also if the filter hides it.
function reveal() {
  const row = rows.find((row) => "#" + row.id === location.hash);
  if (row && row.hidden) {
    cluster.value = "";
    words.value = "";
    filter();
    row.scrollIntoView();
    row.focus();
  }
}
cluster.addEventListener("input", filter);
words.addEventListener("input", filter);
addEventListener("hashchange", reveal);
