// Follows new decisions: reads the page again when the server reports a change. Focus, open details and fields of the
// reader are kept: while one is in use, the page only says that there are new decisions.
const live = document.getElementById("live");
const main = document.getElementById("main");
let shown = live.dataset.version;
let reading = false;

function isInUse() {
  const focused = document.activeElement;
  return (main.contains(focused) && focused !== main) || main.querySelector("details[open]") !== null;
}

async function read(version) {
  if (reading || version === shown) return;
  if (isInUse()) {
    live.textContent = "There are new decisions. Leave the content or close the details to show them.";
    return;
  }
  reading = true;
  try {
    const response = await fetch(location.href);
    if (!response.ok) throw new Error(`status ${response.status}`);
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    main.replaceChildren(...page.getElementById("main").childNodes);
    shown = page.getElementById("live").dataset.version;
    live.textContent = `New decisions are shown, read at ${new Date().toLocaleTimeString()}.`;
  } catch (error) {
    live.textContent = `New decisions cannot be read: ${error.message}.`;
  } finally {
    reading = false;
  }
}

const events = new EventSource("/live");
events.addEventListener("version", (event) => read(event.data));
events.addEventListener("error", () => {
  live.textContent = "The console does not answer; this page may be out of date.";
});
