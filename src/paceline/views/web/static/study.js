// One study: filled in again whenever its journal grows.
"use strict";

const study = document.body.dataset.study;
const figures = ["traces", "forecasts", "lineage", "calibration", "embedding"];
const modelFigures = ["surface", "failure"];
const decisionList = byId("decision-list");
let chosen = null; // the decision whose model is shown; null follows the latest
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
  state.textContent = stateText(summary);
  state.className = `state ${summary.state}`;
  if (byId("status").textContent !== summary.status) byId("status").textContent = summary.status;
  byId("settings").textContent = summary.settings ?? "";
  showBar(byId("bar"), summary.state === "running" ? summary : {});
  byId("highlights").replaceChildren(...(summary.highlights ?? []).map(([what, value]) => {
    const pair = element("div");
    pair.append(element("dt", what), element("dd", value));
    return pair;
  }));
  if ((summary.tasks ?? []).length > 0) nameRuns();
  const hidden = (summary.forks ?? 0) - (summary.shown_forks ?? 0);
  byId("shown-forks").textContent = hidden > 0
    ? `${summary.shown_forks.toLocaleString("en")} of ${summary.forks.toLocaleString("en")} forks are drawn, with a part of their intervals.`
    : "";
  showExport(summary);
}

// A family has runs of tasks, not forks of one run.
function nameRuns() {
  byId("forks-title").textContent = "Runs";
  byId("more-forks").textContent = "Earlier runs";
  byId("traces-note").textContent = "The value and the rate of every run, by step.";
  byId("lineage-note").textContent = "The runs of each task, and their rates.";
}

function showExport(summary) {
  const tasks = summary.schedule_tasks ?? [];
  byId("export").hidden = tasks.length === 0;
  const which = summary.state === "finished" ? "The best schedule" : "The best schedule so far";
  byId("export-note").textContent = `${which}, as data, as a table of every step, or as a Python function that does not need Paceline.`;
  byId("schedule").textContent = summary.schedule ? `${summary.schedule[0].toUpperCase()}${summary.schedule.slice(1)}.` : "";
  const select = byId("task");
  byId("task-label").hidden = !tasks.some((task) => task !== "");
  if ([...select.options].map((option) => option.value).join("\n") !== tasks.join("\n")) {
    const kept = select.value;
    select.replaceChildren(...tasks.map((task) => new Option(task, task)));
    if (tasks.includes(kept)) select.value = kept;
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
  title.append(element("span", `took ${row.took}`));
  entry.append(title, ...row.sentences.map((sentence) => element("p", sentence)));
  entry.addEventListener("click", () => choose(row.at));
  return entry;
}

async function showDecisions() {
  const page = await answerOf(from("decisions"));
  decisionCount = page.count;
  byId("decisions").hidden = page.count === 0;
  const oldest = page.rows.at(-1)?.at ?? 0;
  const focused = decisionList.contains(document.activeElement) ? document.activeElement.dataset.at : null;
  const kept = [...decisionList.children].filter((entry) => Number(entry.dataset.at) < oldest);
  const top = decisionList.scrollTop;
  decisionList.replaceChildren(...page.rows.map(decisionEntry), ...kept);
  decisionList.scrollTop = top;
  const last = decisionList.lastElementChild;
  byId("more-decisions").hidden = !last || Number(last.dataset.at) === 0;
  markChosen();
  if (focused !== null) decisionList.querySelector(`[data-at="${Number(focused)}"]`)?.focus({ preventScroll: true });
}

async function moreDecisions() {
  const page = await answerOf(from("decisions", { before: decisionList.lastElementChild.dataset.at }));
  decisionList.append(...page.rows.map(decisionEntry));
  byId("more-decisions").hidden = page.before === null;
  markChosen();
}

const current = () => chosen ?? decisionCount - 1;

function markChosen() {
  for (const entry of decisionList.children) {
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
  while (Number(decisionList.lastElementChild.dataset.at) > at) await moreDecisions();
  markChosen();
  const entry = decisionList.querySelector(`[data-at="${at}"]`);
  const top = entry.offsetTop - decisionList.offsetTop;
  if (top < decisionList.scrollTop || top + entry.offsetHeight > decisionList.scrollTop + decisionList.clientHeight) decisionList.scrollTop = top;
  if (focus) entry.focus({ preventScroll: true });
  await showModelFigures();
}

const showModelFigures = oneAtATime(async () => {
  let shown = false;
  for (const kind of modelFigures) {
    const url = from(`figure/${kind}`, { dark: shade(), ...(chosen === null ? {} : { decision: chosen }) });
    if (await draw(byId(kind), await answerOf(url))) shown = true;
  }
  const split = document.querySelector(".split");
  if (split.classList.contains("both") !== shown) {
    split.classList.toggle("both", shown);
    for (const kind of modelFigures) if (!byId(kind).hidden) Plotly.Plots.resize(byId(kind).querySelector(".plot"));
  }
});

function forkRow(columns, cells) {
  const row = element("tr", undefined, cells[columns.indexOf("state")].split(":")[0]);
  row.append(...cells.map((cell, i) => element("td", cell, isText(columns[i]) ? `words${columns[i] === "state" ? " long" : ""}` : "")));
  return row;
}

const isText = (column) => ["from", "task", "state", "forecast"].includes(column);

async function showForks() {
  const page = await answerOf(from("forks"));
  const [head, body] = byId("forks").querySelectorAll("thead, tbody");
  byId("forks").hidden = page.rows.length === 0;
  const titles = element("tr");
  titles.append(...page.columns.map((column) => {
    const title = element("th", column, isText(column) ? "words" : "");
    title.scope = "col";
    return title;
  }));
  head.replaceChildren(titles);
  body.replaceChildren(...page.rows.map((cells) => forkRow(page.columns, cells)));
  forksBefore = page.before;
  byId("more-forks").hidden = page.before === null;
}

async function moreForks() {
  const page = await answerOf(from("forks", { before: forksBefore }));
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
    const summary = await answerOf(from("summary"));
    document.body.dataset.latest = summary.revision;
    showSummary(summary);
    byId("traces").hidden = summary.state === "damaged" || summary.state === "empty";
    if (byId("traces").hidden) return;
    const { answer, revision } = await traces;
    if (revision !== summary.revision) document.body.dataset.latest = ""; // the journal grew in between
    await draw(byId("traces"), answer);
    document.body.dataset.revision = summary.revision;
    if (!performance.getEntriesByName("traces").length) performance.mark("traces"); // for benchmarks.views
    await showDecisions();
    await showForks();
    await showModelFigures();
    for (const kind of figures.slice(1)) await draw(byId(kind), await answerOf(from(`figure/${kind}`, query)));
    problem.hidden = true;
  } catch (error) {
    problem.textContent = error.message;
    problem.hidden = false;
  }
  document.body.dataset.filled = String(Number(document.body.dataset.filled ?? 0) + 1);
});

const KEYS = { ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1 }; // the latest is on top
decisionList.addEventListener("keydown", (event) => {
  const direction = KEYS[event.key];
  if (direction !== undefined) choose(current() + direction, true);
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
refresh().then(() => follow(() => from("events", { since: document.body.dataset.latest ?? "" }), refresh));
