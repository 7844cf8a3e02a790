// Opens HTML reports and pages of the console in headless Chromium and checks them as a reader with a small screen, a
// keyboard or a screen reader would. `cargo xtask full browser` runs it; NODE_PATH leads to playwright-core and axe-core.
//
//   node check.cjs CHROMIUM PICTURES PAGE...
//
// A page is a file, or NAME=ADDRESS with an address of the console, which may request other addresses of the console.
//
// Prints one line for each problem, and ends with exit code 1 if there is one.

const path = require("node:path");
const { pathToFileURL } = require("node:url");
const { chromium } = require("playwright-core");
const axe = require.resolve("axe-core/axe.min.js");

const SIZES = [{ width: 1280, height: 900 }, { width: 390, height: 844 }];
const SCHEMES = ["light", "dark"];
const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
// Smallest contrast of text and its background, from WCAG 2.2 (1.4.3).
const CONTRAST_MIN = 4.5;
// Longest wait for an element of a page, in milliseconds.
const TIMEOUT_MS = 30_000;
// Greatest height of a picture, in pixels.
const PICTURE_MAX = 4_000;

// A page of the console: its name and its address.
const CONSOLE = /^([a-z-]+)=(http:.*)$/;

// Elements that a keyboard has to reach, in order of the document.
const REACHABLE = "a[href], button, input, select, summary, textarea, [tabindex='0']";

// Runs in the page. Returns the problems of layout, drawings and tables.
function inspect(contrastMin) {
  const problems = [];
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) {
    const isWide = (element) => element.getBoundingClientRect().right > root.clientWidth + 1;
    const widest = [...document.body.querySelectorAll("*")].filter(isWide).slice(0, 3).map((e) => e.tagName);
    problems.push(`the body is ${root.scrollWidth} wide on a screen of ${root.clientWidth}: ${widest}`);
  }
  for (const table of document.querySelectorAll("table")) {
    const name = table.caption?.textContent.trim();
    if (!name) problems.push("a table has no caption");
    const heads = [...table.querySelectorAll("th")];
    if (!heads.length) problems.push(`table "${name}" has no heads`);
    if (heads.some((head) => !["col", "row"].includes(head.scope))) problems.push(`table "${name}": a head has no scope`);
  }
  for (const svg of document.querySelectorAll("svg")) {
    const name = svg.getAttribute("aria-label") ?? document.getElementById(svg.getAttribute("aria-labelledby"))?.textContent;
    if (!name?.trim() && svg.getAttribute("aria-hidden") !== "true") problems.push("a drawing has no name");
    const lanes = svg.getAttribute("role") === "group" ? [...svg.querySelectorAll("line.lane")] : [];
    const labels = [...svg.querySelectorAll("text.label")];
    for (const [index, lane] of lanes.entries()) {
      const top = lane.y1.baseVal.value;
      const bottom = lanes[index + 1]?.y1.baseVal.value ?? Infinity;
      const isInLane = (label) => label.y.baseVal[0].value > top && label.y.baseVal[0].value < bottom;
      if (labels.filter(isInLane).every((label) => !label.textContent.trim())) problems.push(`lane ${index} has no label`);
    }
  }

  // axe compares `color` with the background; the text of a drawing has a `fill`.
  const rgb = (text) => text.match(/[\d.]+/g)?.slice(0, 3).map(Number);
  const luminance = (color) => {
    const [r, g, b] = color.map((c) => c / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => {
    const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
    return (high + 0.05) / (low + 0.05);
  };
  const fill = (shape) => {
    const value = getComputedStyle(shape).fill;
    return rgb(value.startsWith("url") ? getComputedStyle(document.querySelector("pattern rect")).fill : value);
  };
  const paper = rgb(getComputedStyle(document.body).backgroundColor);
  for (const text of document.querySelectorAll("svg text")) {
    text.scrollIntoView({ block: "center", inline: "center" });
    const box = text.getBoundingClientRect();
    const below = document.elementsFromPoint(box.x + box.width / 2, box.y + box.height / 2);
    const shape = below.find((element) => ["rect", "path", "circle"].includes(element.tagName));
    const ratio = contrast(fill(text), shape ? fill(shape) : paper);
    if (text.textContent && box.width && ratio < contrastMin) {
      problems.push(`text "${text.textContent}" of a drawing has the contrast ${ratio.toFixed(2)}`);
    }
  }
  scrollTo(0, 0);
  return problems;
}

// Presses Tab from the start of the page to its end. Returns the problems of the order.
async function walk(page) {
  const expected = await page.evaluate((selector) => {
    const isShown = (element) => element.getClientRects().length > 0 && element.checkVisibility();
    return [...document.querySelectorAll(selector)].filter(isShown).map((element, index) => {
      element.dataset.order = index;
      return element.textContent.trim().slice(0, 40) || element.tagName;
    });
  }, REACHABLE);
  const problems = [];
  for (const [index, name] of expected.entries()) {
    await page.keyboard.press("Tab");
    const { order, isSeen } = await page.evaluate(() => {
      const element = document.activeElement;
      const box = element.getBoundingClientRect();
      const { outlineStyle, outlineWidth, strokeWidth } = getComputedStyle(element);
      const isInView = box.width > 0 && box.right > 0 && box.left < innerWidth && box.bottom > 0 && box.top < innerHeight;
      const isMarked = (outlineStyle !== "none" && parseFloat(outlineWidth) > 0) || parseFloat(strokeWidth) > 1;
      return { order: Number(element.dataset.order ?? -1), isSeen: isInView && isMarked };
    });
    if (order !== index) return [...problems, `Tab ${index + 1} does not lead to "${name}" but to element ${order}`];
    if (!isSeen) problems.push(`the focus on "${name}" cannot be seen`);
    if (index === 0 && !name.startsWith("Skip")) problems.push(`the first element is no skip link but "${name}"`);
  }
  return problems;
}

// Uses the skip link, a marker and the filter of the events. Returns the problems.
async function use(page) {
  const problems = [];
  await page.locator("a.skip").first().focus();
  await page.keyboard.press("Enter");
  if ((await page.evaluate(() => document.activeElement.id)) !== "main") problems.push("the skip link does not lead to main");
  if (!(await page.locator("#words").count())) return problems;
  await page.locator("#words").fill("no event has these words");
  const shown = await page.locator("#shown").textContent();
  if (!shown.startsWith("0 of ")) problems.push(`the filter shows "${shown}"`);
  const marker = page.locator("svg a.mark").first();
  const row = (await marker.getAttribute("href")).slice(1);
  await marker.focus();
  await page.keyboard.press("Enter");
  await page.waitForFunction((id) => !document.getElementById(id).hidden, row, { timeout: TIMEOUT_MS }).catch(() => {
    problems.push(`the marker of row ${row} does not show the row that the filter hides`);
  });
  return problems;
}

async function audit(page) {
  await page.evaluate(() => document.querySelectorAll("details").forEach((block) => (block.open = true)));
  await page.addScriptTag({ path: axe });
  const { violations } = await page.evaluate((values) => axe.run({ runOnly: { type: "tag", values } }), RULES);
  return violations.map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.slice(0, 3).map((node) => node.html.slice(0, 90)).join("; ")}`);
}

async function check(browser, file, pictures, size, scheme) {
  const [, console, link] = file.match(CONSOLE) ?? [];
  const isFile = !link;
  const address = isFile ? pathToFileURL(file) : new URL(link);
  const name = isFile ? path.basename(file, ".html") : `${console}${address.pathname.replaceAll("/", "-")}`;
  const own = isFile ? "file:" : address.origin;
  // The page is opened once for each check, because a check leaves focus and filter behind.
  const open = async (problems, options = {}) => {
    const page = await browser.newPage({ viewport: size, colorScheme: scheme, ...options });
    page.setDefaultTimeout(TIMEOUT_MS);
    page.on("console", (message) => message.type() === "error" && problems.push(`console: ${message.text()}`));
    page.on("dialog", (dialog) => problems.push(`dialog: ${dialog.message()}`) && dialog.dismiss());
    page.on("pageerror", (error) => problems.push(`script: ${error.message}`));
    page.on("request", (request) => request.url().startsWith(own) || problems.push(`network: ${request.url()}`));
    await page.goto(address.href);
    return page;
  };
  const problems = [];
  let page = await open(problems);
  const height = Math.min(await page.evaluate(() => document.documentElement.scrollHeight), PICTURE_MAX);
  const picture = path.join(pictures, `${name}-${size.width}-${scheme}.png`);
  await page.screenshot({ path: picture, fullPage: true, clip: { x: 0, y: 0, width: size.width, height } });
  problems.push(...(await page.evaluate(inspect, CONTRAST_MIN)));
  for (const step of [walk, use, audit]) {
    await page.close();
    // The content security policy of the console has no room for the script of the audit.
    page = await open(problems, { bypassCSP: step === audit });
    problems.push(...(await step(page)));
  }
  problems.push(...(await page.evaluate(inspect, CONTRAST_MIN)).map((problem) => `with open details: ${problem}`));
  await page.close();
  return [...new Set(problems)].map((problem) => `${name}, ${size.width}x${size.height}, ${scheme}: ${problem}`);
}

async function main([executablePath, pictures, ...files]) {
  // The sandbox of Chromium does not start for root.
  const browser = await chromium.launch({ executablePath, chromiumSandbox: process.getuid?.() !== 0 });
  const found = [];
  try {
    for (const file of files.map((file) => (CONSOLE.test(file) ? file : path.resolve(file)))) {
      for (const size of SIZES) {
        for (const scheme of SCHEMES) found.push(...(await check(browser, file, pictures, size, scheme)));
      }
    }
  } finally {
    await browser.close();
  }
  found.forEach((problem) => console.log(problem));
  console.log(`${found.length} problems in ${files.length} pages, each in ${SIZES.length * SCHEMES.length} forms`);
  process.exitCode = found.length || !files.length ? 1 : 0;
}

main(process.argv.slice(2)).catch((error) => {
  console.error(`error: ${error.message}`);
  process.exitCode = 2;
});
