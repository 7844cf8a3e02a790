const cluster = document.getElementById("cluster");
const words = document.getElementById("words");
function filter() {
  const wanted = words.value.toLowerCase();
  for (const row of document.querySelectorAll("#timeline tbody tr")) {
    const right = !cluster.value || row.dataset.cluster === cluster.value;
    row.hidden = !(right && row.textContent.toLowerCase().includes(wanted));
  }
}
cluster.addEventListener("input", filter);
words.addEventListener("input", filter);
