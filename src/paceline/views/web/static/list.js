// The list of studies: names first, then what each has to say, then what they cost.
"use strict";

const items = new Map();
let known = "";

function item(name) {
  if (items.has(name)) return items.get(name);
  const made = element("li");
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
  made.append(title, element("p"), element("p", undefined, "quiet"), bar);
  items.set(name, made);
  return made;
}

async function fill(name) {
  const made = item(name);
  const [title, standing, words, bar] = made.children;
  try {
    const summary = await asked(`/summary/${encoded(name)}`);
    const state = title.querySelector(".state");
    state.hidden = false;
    state.textContent = stateWords(summary);
    state.className = `state ${summary.state}`;
    standing.textContent = summary.standing;
    words.textContent = summary.asked ?? "";
    showBar(bar, summary.state === "running" ? summary : {});
  } catch (error) {
    standing.textContent = error.message;
  }
}

const refresh = oneAtATime(async () => {
  const { names, compared, revision } = await asked("/studies.json");
  known = revision;
  byId("none").hidden = names.length > 0;
  byId("studies").replaceChildren(...names.map(item));
  for (const name of names) await fill(name);
  if (names.length < 2) return;
  byId("costs-note").textContent = names.length > compared ? `The ${compared} written last.` : "";
  await draw(byId("costs"), await asked(`/costs.json?dark=${darkQuery.matches ? 1 : 0}`));
});

refresh().then(() => follow(`/events?since=${known}`, refresh));
darkQuery.addEventListener("change", refresh);
