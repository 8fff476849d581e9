// The list of studies: all their names, a summary of each that can be seen, then the figure of costs.
"use strict";

const items = new Map(); // the entry of each study
const summaries = new Map(); // version and summary of each study: asked for again only if its journal has changed
const inView = new Set(); // names of the studies that can be seen, or nearly
let versions = {};
let latest = "";

const observer = new IntersectionObserver((changes) => {
  for (const change of changes) inView[change.isIntersecting ? "add" : "delete"](change.target.dataset.study);
  fillInView();
}, { rootMargin: "400px" });

function item(name) {
  if (items.has(name)) return items.get(name);
  const entry = element("li");
  entry.dataset.study = name;
  const title = element("div", undefined, "title");
  const link = element("a", name);
  link.href = `/study/${encoded(name)}`;
  const state = element("span", undefined, "state");
  state.hidden = true;
  title.append(link, state);
  const bar = element("div", undefined, "bar");
  bar.setAttribute("role", "progressbar");
  bar.setAttribute("aria-label", `Steps of ${name} done`);
  bar.append(element("div"));
  bar.hidden = true;
  entry.append(title, element("p"), element("p", undefined, "quiet"), bar);
  items.set(name, entry);
  observer.observe(entry);
  return entry;
}

async function summaryOf(name, version) {
  if (summaries.get(name)?.version !== version) {
    summaries.set(name, { version, summary: await answerOf(`/summary/${encoded(name)}`) });
  }
  return summaries.get(name).summary;
}

async function fill(name) {
  const [title, status, settings, bar] = item(name).children;
  try {
    const summary = await summaryOf(name, versions[name]);
    const state = title.querySelector(".state");
    state.hidden = false;
    state.textContent = stateText(summary);
    state.className = `state ${summary.state}`;
    status.textContent = summary.status;
    settings.textContent = summary.settings ?? "";
    showBar(bar, summary.state === "running" ? summary : {});
  } catch (error) {
    status.textContent = error.message;
  }
}

const fillInView = oneAtATime(async () => {
  await Promise.all([...inView].filter((name) => name in versions).map(fill));
  document.body.dataset.filled = String(Number(document.body.dataset.filled ?? 0) + 1);
  if (inView.size && !document.body.dataset.listed) { // for benchmarks.views
    performance.mark("summaries");
    document.body.dataset.listed = "1";
  }
});

function show(names) {
  byId("none").hidden = names.length > 0;
  byId("count").textContent = names.length > 1 ? `${names.length.toLocaleString("en")} studies, the one written last first.` : "";
  const list = byId("studies");
  for (const entry of [...list.children]) {
    const name = entry.dataset.study;
    if (name in versions) continue;
    observer.unobserve(entry);
    for (const known of [items, summaries, inView]) known.delete(name);
    entry.remove();
  }
  names.forEach((name, i) => {
    if (list.children[i] !== item(name)) list.insertBefore(item(name), list.children[i] ?? null);
  });
}

const refresh = oneAtATime(async () => {
  const answer = await answerOf("/studies.json");
  const { names, compared } = answer;
  versions = answer.versions;
  latest = answer.revision;
  show(names);
  await fillInView();
  if (names.length < 2) return;
  byId("costs-note").textContent = names.length > compared ? `The ${compared} studies that were written last.` : "";
  await draw(byId("costs"), await answerOf(`/costs.json?dark=${darkQuery.matches ? 1 : 0}`));
});

refresh().then(() => follow(() => `/events?since=${latest}`, refresh));
darkQuery.addEventListener("change", refresh);
