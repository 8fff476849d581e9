// Plotly's sliders and buttons need a pointer. Pages replace them with controls of the browser, below the plot, which
// also work by keyboard.
"use strict";

const SLIDER_ROOM = 68; // pixels that a figure keeps free for plotly's slider

function withoutControls({ sliders, updatemenus, ...layout }) {
  if (!sliders?.length) return layout;
  return { ...layout, height: layout.height - SLIDER_ROOM, margin: { ...layout.margin, b: layout.margin.b - SLIDER_ROOM } };
}

// Show the controls of a figure that was just drawn in `plot`, with the choices that the reader made before.
async function showControls(plot, { sliders = [], updatemenus = [] }) {
  if (!sliders.length && !updatemenus.length) return;
  let row = plot.nextElementSibling;
  if (!row?.classList.contains("controls")) {
    row = document.createElement("div");
    row.className = "controls";
    plot.after(row);
  }
  for (const menu of updatemenus) await showButtons(plot, row, menu.buttons);
  for (const slider of sliders) await showSlider(plot, row, slider);
}

async function showButtons(plot, row, buttons) {
  if (!row.querySelector("button")) row.append("steps: ", ...buttons.map(({ label }, i) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = label;
    button.setAttribute("aria-pressed", String(i === 0)); // the scale that the figure is drawn with
    button.addEventListener("click", () => press(plot, row, button));
    return button;
  }));
  row.buttons = Object.fromEntries(buttons.map((button) => [button.label, button]));
  const pressed = row.querySelector("button[aria-pressed=true]");
  if (pressed !== row.querySelector("button")) await press(plot, row, pressed);
}

function press(plot, row, pressed) {
  for (const button of row.querySelectorAll("button")) button.setAttribute("aria-pressed", String(button === pressed));
  const { method, args } = row.buttons[pressed.textContent];
  return Plotly[method](plot, ...args);
}

async function showSlider(plot, row, { active, steps, currentvalue }) {
  let input = row.querySelector("input");
  if (!input) {
    input = document.createElement("input");
    input.type = "range";
    const label = document.createElement("label");
    label.append(currentvalue.prefix, input, document.createElement("output"));
    input.addEventListener("input", () => {
      row.label = row.steps[input.value].label;
      return slide(plot, row, input);
    });
    row.append(label);
  }
  const previous = steps.findIndex(({ label }) => label === row.label);
  row.steps = steps;
  input.max = String(steps.length - 1);
  input.value = String(previous < 0 ? active : previous);
  await slide(plot, row, input);
}

function slide(plot, row, input) {
  const { label, method, args } = row.steps[input.value];
  input.setAttribute("aria-valuetext", label);
  input.nextElementSibling.textContent = label;
  return Plotly[method](plot, ...args);
}
