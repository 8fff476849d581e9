// Draws every figure of the page in the reader's colours: light on paper, and what they prefer on a screen.
const pairs = JSON.parse(document.getElementById("colours").textContent).pairs;
const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");

const config = {
  responsive: true,
  displaylogo: false,
  displayModeBar: window.innerWidth < 600 ? false : "hover",
  modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]],
};

function exchanged(part) {
  if (Array.isArray(part)) return part.map(exchanged);
  if (part && typeof part === "object")
    return Object.fromEntries(Object.entries(part).map(([key, item]) => [key, exchanged(item)]));
  return typeof part === "string" ? pairs[part.toLowerCase()] || part : part;
}

function draw(dark) {
  return Promise.all(
    [...document.querySelectorAll(".figure")].map(async (place) => {
      const figure = JSON.parse(document.getElementById("data-" + place.id).textContent);
      const { data, layout } = dark ? exchanged(figure) : figure;
      const shown = withoutControls(layout);
      place.style.height = `${shown.height}px`;
      await Plotly.react(place, data, shown, config);
      await showControls(place, layout);
    })
  ).then(() => document.documentElement.setAttribute("data-drawn", dark ? "dark" : "light"));
}

draw(prefersDark.matches);
prefersDark.addEventListener("change", () => draw(prefersDark.matches));
window.addEventListener("beforeprint", () => draw(false));
window.addEventListener("afterprint", () => draw(prefersDark.matches));
