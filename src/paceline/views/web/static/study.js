// One study: filled in when its journal says something new.
"use strict";

const study = document.body.dataset.study;
const figures = ["traces", "forecasts", "lineage", "calibration", "embedding"];
const beliefs = ["surface", "failure"];
const told = byId("told");
let chosen = null; // the decision whose beliefs are shown; null follows the latest
let decisionCount = 0;
let forksBefore = null;

const from = (what, query = {}) => {
  const words = new URLSearchParams(query).toString();
  return `/${what}/${encoded(study)}${words ? `?${words}` : ""}`;
};
const shade = () => (darkQuery.matches ? "1" : "0");

function showSummary(summary) {
  const state = byId("state");
  state.hidden = false;
  state.textContent = stateWords(summary);
  state.className = `state ${summary.state}`;
  if (byId("standing").textContent !== summary.standing) byId("standing").textContent = summary.standing;
  byId("asked").textContent = summary.asked ?? "";
  showBar(byId("bar"), summary.state === "running" ? summary : {});
  byId("facts").replaceChildren(...(summary.facts ?? []).map(([what, value]) => {
    const pair = element("div");
    pair.append(element("dt", what), element("dd", value));
    return pair;
  }));
  const hidden = (summary.forks ?? 0) - (summary.drawn ?? 0);
  byId("drawn").textContent = hidden > 0
    ? `${summary.drawn.toLocaleString("en")} of ${summary.forks.toLocaleString("en")} forks are drawn, from intervals evenly spaced along each.`
    : "";
  showExport(summary);
}

function showExport(summary) {
  const offered = summary.offered ?? [];
  byId("export").hidden = offered.length === 0;
  const whose = summary.state === "finished" ? "The schedule that was found" : "The schedule of the best so far";
  byId("export-note").textContent = `${whose}: as data, as a table of every step, or as a function that needs no Paceline.`;
  byId("schedule").textContent = summary.schedule ? `${summary.schedule[0].toUpperCase()}${summary.schedule.slice(1)}.` : "";
  const select = byId("task");
  byId("task-label").hidden = !offered.some((task) => task !== "");
  if ([...select.options].map((option) => option.value).join("\n") !== offered.join("\n")) {
    const kept = select.value;
    select.replaceChildren(...offered.map((task) => new Option(task, task)));
    if (offered.includes(kept)) select.value = kept;
  }
  linkExports();
}

function linkExports() {
  const task = byId("task").value;
  for (const format of ["json", "csv", "py"]) byId(`as-${format}`).href = from(`schedule/${format}`, task ? { task } : {});
}

function decisionEntry(row) {
  const entry = element("div");
  entry.setAttribute("role", "option");
  entry.tabIndex = -1;
  entry.dataset.at = row.at;
  const title = element("h3", `Decision ${row.round}, step ${row.step.toLocaleString("en")}`);
  title.append(element("span", `took ${row.ms} ms`));
  entry.append(title, ...row.sentences.map((sentence) => element("p", sentence)));
  entry.addEventListener("click", () => choose(row.at));
  return entry;
}

async function showDecisions() {
  const page = await asked(from("decisions"));
  decisionCount = page.count;
  byId("decisions").hidden = page.count === 0;
  const oldest = page.rows.at(-1)?.at ?? 0;
  const focused = told.contains(document.activeElement) ? document.activeElement.dataset.at : null;
  const kept = [...told.children].filter((entry) => Number(entry.dataset.at) < oldest);
  const top = told.scrollTop;
  told.replaceChildren(...page.rows.map(decisionEntry), ...kept);
  told.scrollTop = top;
  const last = told.lastElementChild;
  byId("more-decisions").hidden = !last || Number(last.dataset.at) === 0;
  markChosen();
  if (focused !== null) told.querySelector(`[data-at="${Number(focused)}"]`)?.focus({ preventScroll: true });
}

async function moreDecisions() {
  const page = await asked(from("decisions", { before: told.lastElementChild.dataset.at }));
  told.append(...page.rows.map(decisionEntry));
  byId("more-decisions").hidden = page.before === null;
  markChosen();
}

const current = () => chosen ?? decisionCount - 1;

function markChosen() {
  for (const entry of told.children) {
    const selected = Number(entry.dataset.at) === current();
    entry.setAttribute("aria-selected", String(selected));
    entry.tabIndex = selected ? 0 : -1;
  }
  byId("previous").disabled = current() <= 0;
  byId("next").disabled = current() >= decisionCount - 1;
}

async function choose(at, focus = false) {
  if (at < 0 || at >= decisionCount) return;
  chosen = at === decisionCount - 1 ? null : at;
  while (Number(told.lastElementChild.dataset.at) > at) await moreDecisions();
  markChosen();
  const entry = told.querySelector(`[data-at="${at}"]`);
  const top = entry.offsetTop - told.offsetTop;
  if (top < told.scrollTop || top + entry.offsetHeight > told.scrollTop + told.clientHeight) told.scrollTop = top;
  if (focus) entry.focus({ preventScroll: true });
  await showBeliefs();
}

const showBeliefs = oneAtATime(async () => {
  let shown = false;
  for (const kind of beliefs) {
    const url = from(`figure/${kind}`, { dark: shade(), ...(chosen === null ? {} : { decision: chosen }) });
    if (await draw(byId(kind), await asked(url))) shown = true;
  }
  const split = document.querySelector(".split");
  if (split.classList.contains("both") !== shown) {
    split.classList.toggle("both", shown);
    for (const kind of beliefs) if (!byId(kind).hidden) Plotly.Plots.resize(byId(kind).querySelector(".plot"));
  }
});

function forkRow(columns, cells) {
  const row = element("tr", undefined, cells[columns.indexOf("state")].split(":")[0]);
  row.append(...cells.map((cell, i) => element("td", cell, isWords(columns[i]) ? `words${columns[i] === "state" ? " long" : ""}` : "")));
  return row;
}

const isWords = (column) => ["from", "task", "state", "forecast"].includes(column);

async function showForks() {
  const page = await asked(from("forks"));
  const [head, body] = byId("forks").querySelectorAll("thead, tbody");
  byId("forks").hidden = page.rows.length === 0;
  const titles = element("tr");
  titles.append(...page.columns.map((column) => {
    const title = element("th", column, isWords(column) ? "words" : "");
    title.scope = "col";
    return title;
  }));
  head.replaceChildren(titles);
  body.replaceChildren(...page.rows.map((cells) => forkRow(page.columns, cells)));
  forksBefore = page.before;
  byId("more-forks").hidden = page.before === null;
}

async function moreForks() {
  const page = await asked(from("forks", { before: forksBefore }));
  const body = byId("forks").querySelector("tbody");
  body.append(...page.rows.map((cells) => forkRow(page.columns, cells)));
  forksBefore = page.before;
  byId("more-forks").hidden = page.before === null;
}

const refresh = oneAtATime(async () => {
  const problem = byId("problem");
  const query = { dark: shade() };
  const traces = fetched(from("figure/traces", query)); // at once: reading plotly's script will keep the browser busy
  traces.catch(() => null); // a study without traces says why in its summary
  try {
    const summary = await asked(from("summary"));
    document.body.dataset.known = summary.revision;
    showSummary(summary);
    byId("traces").hidden = summary.state === "damaged" || summary.state === "empty";
    if (byId("traces").hidden) return;
    const { answer, revision } = await traces;
    if (revision !== summary.revision) document.body.dataset.known = ""; // the journal grew in between
    await draw(byId("traces"), answer);
    document.body.dataset.revision = summary.revision;
    if (!performance.getEntriesByName("traces").length) performance.mark("traces"); // for benchmarks.views
    await showDecisions();
    await showForks();
    await showBeliefs();
    for (const kind of figures.slice(1)) await draw(byId(kind), await asked(from(`figure/${kind}`, query)));
    problem.hidden = true;
  } catch (error) {
    problem.textContent = error.message;
    problem.hidden = false;
  }
  document.body.dataset.filled = String(Number(document.body.dataset.filled ?? 0) + 1);
});

const KEYS = { ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1 }; // the latest is on top
told.addEventListener("keydown", (event) => {
  const way = KEYS[event.key];
  if (way !== undefined) choose(current() + way, true);
  else if (event.key === "Home") choose(decisionCount - 1, true);
  else if (event.key === "End") choose(0, true);
  else return;
  event.preventDefault();
});
byId("previous").addEventListener("click", () => choose(current() - 1));
byId("next").addEventListener("click", () => choose(current() + 1));
byId("more-decisions").addEventListener("click", moreDecisions);
byId("more-forks").addEventListener("click", moreForks);
byId("task").addEventListener("change", linkExports);
darkQuery.addEventListener("change", refresh);
narrowQuery.addEventListener("change", refresh);
refresh().then(() => follow(from("events", { since: document.body.dataset.known ?? "" }), refresh));
