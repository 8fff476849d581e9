// Draws every figure of the page: in the reader's preferred colours on a screen, in light ones on paper.
const pairs = JSON.parse(document.getElementById("colours").textContent).pairs;
const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");

const config = {
  responsive: true,
  displaylogo: false,
  displayModeBar: window.innerWidth < 600 ? false : "hover",
  modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]],
};

// A copy of the data of a figure in dark colours.
function recolour(part) {
  if (Array.isArray(part)) return part.map(recolour);
  if (part && typeof part === "object")
    return Object.fromEntries(Object.entries(part).map(([key, item]) => [key, recolour(item)]));
  return typeof part === "string" ? pairs[part.toLowerCase()] || part : part;
}

function draw(dark) {
  return Promise.all(
    [...document.querySelectorAll(".figure")].map(async (plot) => {
      const figure = JSON.parse(document.getElementById("data-" + plot.id).textContent);
      const { data, layout } = dark ? recolour(figure) : figure;
      const drawn = withoutControls(layout);
      plot.style.height = `${drawn.height}px`;
      await Plotly.react(plot, data, drawn, config);
      await showControls(plot, layout);
    })
  ).then(() => document.documentElement.setAttribute("data-drawn", dark ? "dark" : "light"));
}

draw(prefersDark.matches);
prefersDark.addEventListener("change", () => draw(prefersDark.matches));
window.addEventListener("beforeprint", () => draw(false));
window.addEventListener("afterprint", () => draw(prefersDark.matches));
