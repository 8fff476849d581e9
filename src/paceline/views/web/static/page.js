// Shared by both pages: requests, figures, the stream of revisions. Text goes in as text, never as HTML.
"use strict";

const darkQuery = matchMedia("(prefers-color-scheme: dark)");
const narrowQuery = matchMedia("(max-width: 40rem)");
const byId = (id) => document.getElementById(id);
const encoded = (name) => name.split("/").map(encodeURIComponent).join("/");

const plotlyLoaded = new Promise((resolve, reject) => {
  if (window.Plotly) { resolve(); return; }
  byId("plotly").addEventListener("load", () => resolve());
  byId("plotly").addEventListener("error", () => reject(new Error("the script that draws figures did not load")));
});

function element(tag, text, className) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

// The answer to a request, and the revision of the study that it holds at least.
async function fetched(url) {
  const response = await fetch(url, { cache: "no-store" });
  if (!response.headers.get("Content-Type")?.startsWith("application/json")) throw new Error((await response.text()).trim());
  const answer = await response.json();
  if (response.status === 503) { // a long journal is being read
    byId("status")?.replaceChildren(answer.error);
    await new Promise((resolve) => { setTimeout(resolve, 1000); });
    return fetched(url);
  }
  if (!response.ok) throw new Error(answer.error ?? response.statusText);
  return { answer, revision: response.headers.get("Paceline-Revision") };
}

const answerOf = async (url) => (await fetched(url)).answer;

// Draw a figure in a section, or hide the section if there is nothing to draw.
async function draw(section, figure) {
  const plot = section.querySelector(".plot");
  if (figure === null) {
    section.hidden = true;
    return false;
  }
  await plotlyLoaded;
  section.hidden = false;
  const layout = { ...withoutControls(figure.layout), autosize: true, uirevision: "kept" };
  delete layout.width;
  delete layout.title; // the section has a heading
  layout.margin = { ...layout.margin, t: Math.max(layout.margin.t - 26, 30) };
  if (layout.height) plot.style.height = `${layout.height}px`;
  delete layout.height;
  if (narrowQuery.matches) {
    layout.margin = { ...layout.margin, l: Math.min(layout.margin?.l ?? 52, 52), r: 12 };
    layout.font = { ...layout.font, size: 11 };
    layout.legend = { ...layout.legend, orientation: "h", x: 0, xanchor: "left", y: -0.18, yanchor: "top" };
    layout.dragmode = false; // a finger scrolls the page
  }
  const config = { responsive: true, displaylogo: false, displayModeBar: narrowQuery.matches ? false : "hover" };
  await Plotly.react(plot, figure.data, layout, config);
  await showControls(plot, figure.layout);
  plot.dataset.drawn = String(Number(plot.dataset.drawn ?? 0) + 1);
  return true;
}

// Run `work`, never twice at once. Calls that come meanwhile are done once, after it.
function oneAtATime(work) {
  let running = false;
  let again = false;
  return async function start() {
    if (running) { again = true; return; }
    running = true;
    try {
      do { again = false; await work(); } while (again);
    } finally {
      running = false;
    }
  };
}

// Follow a stream of server-sent events while the page can be seen; `grown` is called with each new revision.
function follow(url, grown) {
  const live = byId("live");
  let source = null;
  function start() {
    source = new EventSource(url());
    source.addEventListener("open", () => { live.textContent = "live"; live.className = "live on"; });
    source.addEventListener("error", () => { live.textContent = "connection lost, trying again"; live.className = "live off"; });
    source.addEventListener("grown", (message) => grown(JSON.parse(message.data).revision));
  }
  function stop() {
    source?.close();
    source = null;
  }
  if (!document.hidden) start();
  document.addEventListener("visibilitychange", () => { stop(); if (!document.hidden) start(); });
  addEventListener("pagehide", stop);
}

function ago(seconds) {
  if (seconds < 90) return "just now";
  if (seconds < 5400) return `${Math.round(seconds / 60)} min ago`;
  if (seconds < 129600) return `${Math.round(seconds / 3600)} h ago`;
  return `${Math.round(seconds / 86400)} days ago`;
}

function stateText(summary) {
  if (summary.state !== "running" || !summary.written) return summary.state;
  const quiet = Date.now() / 1000 - summary.written;
  return quiet < 90 ? "running" : `last event ${ago(quiet)}`;
}

function showBar(bar, summary) {
  bar.hidden = !summary.total;
  const done = Math.min(100, Math.round((100 * (summary.done ?? 0)) / (summary.total || 1)));
  bar.firstElementChild.style.width = `${done}%`;
  bar.setAttribute("aria-valuenow", String(done));
  if (summary.progress) bar.setAttribute("aria-valuetext", summary.progress);
}
