// Follows a failover of an embedded federation in the console, without reading a page again. `cargo xtask full browser`
// runs it; NODE_PATH leads to playwright-core.
//
//   node live.cjs CHROMIUM PICTURES ADDRESS KUBECONFIG EXAMPLE PID
//
// ADDRESS is the console of the process PID, KUBECONFIG its control plane, and EXAMPLE a folder with manifests.
// Prints one line for each problem, and ends with exit code 1 if there is one.

const { execFileSync } = require("node:child_process");
const path = require("node:path");
const { chromium } = require("playwright-core");

const LOST = "member1";
const BINDING = "binding?kind=ResourceBinding&namespace=default&name=nginx-deployment";
const MANIFESTS = ["taint-policy.yaml", "policy.yaml", "nginx.yaml"];
// Longest wait for a step of the failover, in milliseconds.
const STEP_MS = 120_000;

async function main([executablePath, pictures, address, kubeconfig, example, pid]) {
  const kubectl = (...words) => execFileSync("kubectl", ["--kubeconfig", kubeconfig, ...words], { encoding: "utf8" });
  const problems = [];
  // The sandbox of Chromium does not start for root.
  const browser = await chromium.launch({ executablePath, chromiumSandbox: process.getuid?.() !== 0 });
  let isStopped = false;

  const open = async (target, scheme) => {
    const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, colorScheme: scheme });
    page.setDefaultTimeout(STEP_MS);
    const isProblem = (message) => message.type() === "error" && !isStopped;
    page.on("console", (message) => isProblem(message) && problems.push(`${target}: console: ${message.text()}`));
    page.on("pageerror", (error) => problems.push(`${target}: script: ${error.message}`));
    page.on("request", (request) => request.url().startsWith(address) || problems.push(`network: ${request.url()}`));
    await page.goto(address + target);
    // Lost with the document: shows that the page was not read again by the browser.
    await page.evaluate(() => (window.isSameDocument = true));
    return page;
  };
  // Filters have the names of all kinds of decisions, so only tables and clusters count.
  const shows = async (page, words, step) => {
    const isShown = (expected) => {
      const text = [...document.querySelectorAll("#main tbody, #main .cells")].map((part) => part.innerText).join(" ");
      return expected.every((part) => text.includes(part));
    };
    const wait = page.waitForFunction(isShown, words, { timeout: STEP_MS });
    await wait.catch(() => problems.push(`${step}: ${page.url()} does not show ${words.join(", ")}`));
    if (!(await page.evaluate(() => window.isSameDocument))) problems.push(`${step}: ${page.url()} was read again`);
  };
  const picture = (page, name) => page.screenshot({ path: path.join(pictures, `live-${name}.png`), fullPage: true });
  const placement = () => kubectl("get", "resourcebinding", "nginx-deployment", "-o", "jsonpath={.spec.clusters[*].name}");
  const until = async (holds, step) => {
    for (const end = Date.now() + STEP_MS; !holds(); await new Promise((wake) => setTimeout(wake, 500))) {
      if (Date.now() > end) throw new Error(`not within ${STEP_MS} ms: ${step}`);
    }
  };

  try {
    const map = await open("", "light");
    await shows(map, ["member1", "member2", "member3"], "the members join");
    kubectl("wait", "--for=condition=Ready", "cluster", "--all", "--timeout=60s");
    for (const file of MANIFESTS) kubectl("apply", "-f", path.join(example, file));
    await until(() => kubectl("get", "resourcebindings", "-o", "name").includes("nginx") && placement().includes(LOST), "placement");
    const timeline = await open("timeline", "dark");
    await shows(timeline, ["Scheduled"], "the workload is placed");
    await picture(map, "1-before");

    kubectl("annotate", "cluster", LOST, "simulation.bulkhead.dev/state=unreachable");
    await shows(map, ["cluster.karmada.io/not-ready:NoExecute"], "the cluster is lost");
    await picture(map, "2-lost");
    await shows(timeline, ["Evicted", "Tainted", LOST], "the workload leaves");
    await until(() => !placement().split(" ").includes(LOST), "eviction");
    await shows(timeline, ["Released"], "the old copy is let go");
    await picture(timeline, "3-timeline");

    // An element in use keeps the page as it is.
    const waiting = await open("timeline", "light");
    await waiting.locator("#main input, #main select").first().focus();
    kubectl("annotate", "cluster", LOST, "simulation.bulkhead.dev/state-");
    const hint = "There are new decisions";
    await waiting
      .waitForFunction((text) => document.getElementById("live").textContent.startsWith(text), hint)
      .catch(() => problems.push(`a page in use does not say "${hint}"`));

    const binding = await open(BINDING, "light");
    await shows(binding, ["Evicted", "Released"], "the page of the binding");
    await picture(binding, "4-binding");

    isStopped = true;
    process.kill(Number(pid), "SIGKILL");
    const silent = "The console does not answer";
    await map
      .waitForFunction((text) => document.getElementById("live").textContent.startsWith(text), silent)
      .catch(() => problems.push(`the map of a stopped process does not say "${silent}"`));
    await picture(map, "5-stopped");
  } finally {
    await browser.close();
  }
  problems.forEach((problem) => console.log(problem));
  console.log(`${problems.length} problems in a failover that the console followed`);
  process.exitCode = problems.length ? 1 : 0;
}

main(process.argv.slice(2)).catch((error) => {
  console.error(`error: ${error.message}`);
  process.exitCode = 2;
});
