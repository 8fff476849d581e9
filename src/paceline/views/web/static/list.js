// The list of studies: their names, then a summary of each, then the figure of costs.
"use strict";

const items = new Map(); // the entry of each study
const summaries = new Map(); // version and summary of each study: asked for again only if its journal has changed
let latest = "";

function item(name) {
  if (items.has(name)) return items.get(name);
  const entry = element("li");
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
  return entry;
}

async function summaryOf(name, version) {
  if (summaries.get(name)?.version !== version) {
    summaries.set(name, { version, summary: await answerOf(`/summary/${encoded(name)}`) });
  }
  return summaries.get(name).summary;
}

async function fill(name, version) {
  const [title, status, settings, bar] = item(name).children;
  try {
    const summary = await summaryOf(name, version);
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

const refresh = oneAtATime(async () => {
  const { names, versions, compared, revision } = await answerOf("/studies.json");
  latest = revision;
  byId("none").hidden = names.length > 0;
  byId("studies").replaceChildren(...names.map(item));
  for (const name of names) await fill(name, versions[name]);
  if (names.length < 2) return;
  byId("costs-note").textContent = names.length > compared ? `The ${compared} studies that were written last.` : "";
  await draw(byId("costs"), await answerOf(`/costs.json?dark=${darkQuery.matches ? 1 : 0}`));
});

refresh().then(() => follow(`/events?since=${latest}`, refresh));
darkQuery.addEventListener("change", refresh);
